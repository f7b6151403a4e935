package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/style"
)

// span is a length of time as a column shows it: 4s, 1m26s, 2h05m, 3d4h.
func span(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m" + two(d%time.Minute/time.Second) + "s"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h" + two(d%time.Hour/time.Minute) + "m"
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// two is a number in two digits.
func two(d time.Duration) string {
	if d < 10 {
		return "0" + strconv.Itoa(int(d))
	}
	return strconv.Itoa(int(d))
}

// ago is how long since t in whole minutes of the clock: now, 6m, 3h, 4d. All
// ages on a screen change when its clock does, so that a calm one changes once
// a minute and not whenever some sandbox is a minute older.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "—"
	}
	began := t.Truncate(time.Minute)
	if began.Before(t) {
		began = began.Add(time.Minute) // nothing is older than it is
	}
	switch d := now.Truncate(time.Minute).Sub(began); {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	default:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
}

// stamp is the time of day of t; the day, if it was not today.
func stamp(now, t time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("02 Jan")
	}
	return t.Format("15:04")
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// memory is a size in five cells at most: 0.8G, 210M, 12K.
func memory(s engine.Size) string {
	var buf [16]byte
	switch {
	case s <= 0:
		return "—"
	case s >= 1000*engine.MiB:
		return string(append(strconv.AppendFloat(buf[:0], float64(s)/float64(engine.GiB), 'f', 1, 64), 'G'))
	case s >= engine.MiB:
		return string(append(strconv.AppendInt(buf[:0], int64(s/engine.MiB), 10), 'M'))
	}
	return string(append(strconv.AppendInt(buf[:0], int64(max(1, s/engine.KiB)), 10), 'K'))
}

func count(n int64) string {
	switch {
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "M"
	case n >= 1e4:
		return strconv.Itoa(int(n/1e3)) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// price is what a run has cost where there is little room: "64k tokens · $0.09".
func price(s engine.Spent) string {
	s.Steps = 0
	return cost(s)
}

// cost is what a run or attempt has cost: "13 steps · 12k tokens · $0.09".
func cost(s engine.Spent) string {
	var parts []string
	if s.Steps > 0 {
		parts = append(parts, plural(s.Steps, "step"))
	}
	if t := s.Tokens(); t > 0 {
		parts = append(parts, count(t)+" tokens")
	}
	if s.Dollars > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", s.Dollars))
	}
	return strings.Join(parts, " · ")
}

// since is "just now", or "6m ago".
func since(now, t time.Time) string {
	if a := ago(now, t); a != "now" {
		return a + " ago"
	}
	return "just now"
}

// sentences is a text whose sentences all begin with a capital: what playbooks
// and errors say, of which it is put together, doesn't. Names stay as they are.
func sentences(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < 'a' || c > 'z' || i > 0 && (i < 2 || b[i-1] != ' ' || b[i-2] != '.') {
			continue
		}
		word, _, _ := strings.Cut(s[i:], " ")
		if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz,:;.") == "" && !strings.Contains(strings.TrimRight(word, ",:;."), ".") {
			b[i] = c &^ 0x20
		}
	}
	return string(b)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "x") {
		return strconv.Itoa(n) + " " + noun + "es"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// sign is a glyph, its word and the role of both.
type sign struct {
	glyph, word string
	role        themes.Role
}

// noHealth is said of a sandbox that isn't up: there is nothing to probe.
const noHealth = "—"

func healthSign(g *style.Glyphs, sb engine.Sandbox) sign {
	switch {
	case sb.Health == engine.Healing:
		return sign{g.Healing, "healing", themes.HealthHealing}
	case sb.Health == engine.Broken:
		return sign{g.Broken, "broken", themes.HealthBroken}
	case sb.State == engine.Cold || sb.State == engine.Warming:
		return sign{g.None, noHealth, themes.HealthNone}
	case sb.Health == engine.Ready:
		return sign{g.Ready, "ready", themes.HealthReady}
	case sb.Health == engine.Starting:
		return sign{g.None, "starting", themes.LifeWarming}
	}
	return sign{g.Unknown, "unknown", themes.HealthUnknown}
}

func lifeSign(g *style.Glyphs, s engine.State) sign {
	switch s {
	case engine.Cold:
		return sign{g.Cold, "cold", themes.LifeCold}
	case engine.Warming:
		return sign{g.Warming, "warming", themes.LifeWarming}
	case engine.Warm:
		return sign{g.Warm, "warm", themes.LifeWarm}
	case engine.Waiting:
		return sign{g.Waiting, "waiting", themes.LifeWaiting}
	case engine.Running:
		return sign{g.Running, "running", themes.LifeRunning}
	}
	return sign{g.Unknown, string(s), themes.Muted}
}

// lifeShort is a state in three letters, for narrow screens.
func lifeShort(s engine.State) string {
	switch s {
	case engine.Cold:
		return "cld"
	case engine.Warming:
		return "wmg"
	case engine.Warm:
		return "wrm"
	case engine.Waiting:
		return "wai"
	}
	return "run"
}

// signalWord names a signal in a narrow column.
func signalWord(s engine.Signal) string {
	switch s.Kind {
	case engine.ExitSignal:
		if s.Exit != nil && s.Exit.OOM {
			return "no memory"
		}
		if s.Exit != nil {
			return s.Exit.String()
		}
		return "crash loop"
	case engine.HealthSignal:
		if n := len(s.Probes); n > 1 {
			return "health×" + strconv.Itoa(n)
		}
		return "health"
	case engine.StalledSignal:
		return "log stuck"
	case engine.PressureSignal:
		return "pressure"
	case engine.WakeSignal:
		return "woke"
	case engine.HandSignal:
		return "by hand"
	}
	return string(s.Kind)
}

// verdictWords say what a signal led to, and why.
func verdictWords(v *engine.Verdict) string {
	if v == nil {
		return "not judged yet"
	}
	return string(v.Action) + ": " + v.Reason
}

// attemptName is "attempt 2", or "playbooks" for what comes before the model.
func attemptName(n int) string {
	if n == 0 {
		return "playbooks"
	}
	return "attempt " + strconv.Itoa(n)
}

// oneLine is the first line of a text that isn't blank.
func oneLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func first(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}
