package main

import (
	"fmt"
	"strings"
	"time"

	"sbx/engine"
)

// story tells the healer's records in words that an on-call person can use:
// one line a fact, with times, attempts, tool calls, diffs folded, tokens and
// cost. Live events and history read the same.
type story struct {
	// name gives a sandbox's name; nil when there is only one.
	name func(engine.SandboxID) string
	// full: tool results and diffs unfolded; diffs: those alone.
	full, diffs bool
	// plan: a plan's diff unfolded, at its end.
	plan bool
	// told is what was last said of each incident, so that only news is told.
	told map[engine.IncidentID]string
}

// tell is the lines of one record, the first with its time; none for what is
// only of passing interest.
func (s story) tell(ev engine.Event) []string { return s.stamp(ev, s.facts(ev)) }

func (s story) facts(ev engine.Event) []string {
	var lines []string
	switch b := ev.Body.(type) {
	case engine.SignalRaised:
		lines = []string{fmt.Sprintf("signal   %s: %s", signalName(b.Signal.Kind), b.Signal.Observed)}
	case engine.SignalJudged:
		if v := b.Signal.Verdict; v != nil {
			lines = []string{fmt.Sprintf("verdict  %s: %s", v.Action, v.Reason)}
		}
	case engine.HealStarted:
		lines = []string{fmt.Sprintf("run      %s opened by %s: %s", engine.Short(b.Run.ID), b.Run.By, b.Run.Cause)}
	case engine.HealAttempted:
		lines = tellAttempt(b.Attempt)
	case engine.HealStepped:
		if b.Step.State != engine.StepRunning {
			lines = s.tellStep(b.Step)
		}
	case engine.HealFinished:
		lines = s.tellEnd(b.Run)
	case engine.HealNoted:
		lines = tellNote(b.Note)
	case engine.IncidentChanged:
		lines = s.tellIncident(b.Incident)
	}
	return lines
}

// stamp puts the time, and in a fleet the sandbox, before the first line and
// aligns the others under it.
func (s story) stamp(ev engine.Event, lines []string) []string {
	head := clock(ev.Time, time.Now())
	if s.name != nil {
		head += fmt.Sprintf("  %-14s", s.name(ev.Body.Of()))
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		if i > 0 {
			head = strings.Repeat(" ", len([]rune(head)))
		}
		out[i] = cleanLine(head + "  " + l)
	}
	return out
}

// clock is a time of day, with its day if that isn't today.
func clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04:05")
}

// signalName is a signal in words, never a code (UX §3.4).
func signalName(k engine.SignalKind) string {
	switch k {
	case engine.ExitSignal:
		return "crash"
	case engine.HealthSignal:
		return "health failed"
	case engine.StalledSignal:
		return "log stuck"
	case engine.PressureSignal:
		return "memory or load"
	case engine.WakeSignal:
		return "woke from sleep"
	case engine.HandSignal:
		return "by hand"
	}
	return string(k)
}

func attemptName(n int) string {
	if n == 0 {
		return "playbooks"
	}
	return fmt.Sprintf("attempt %d", n)
}

func tellAttempt(a engine.Attempt) []string {
	if a.Outcome == "" {
		if a.Spent.Tokens() > 0 || a.Why != "" {
			return nil // it goes on: its steps tell how
		}
		if a.Model != "" {
			return []string{fmt.Sprintf("%s begins with %s", attemptName(a.Number), a.Model)}
		}
		return []string{attemptName(a.Number) + " begin"}
	}
	line := fmt.Sprintf("%s: %s after %s", attemptName(a.Number), a.Outcome, took(a.Ended.Sub(a.Started)))
	if cost := spentText(a.Spent); cost != "" {
		line += " · " + cost
	}
	lines := []string{line}
	if a.Summary != "" {
		lines = append(lines, indent(firstLines(a.Summary, 3))...)
	}
	return lines
}

func spentText(s engine.Spent) string {
	if s.Tokens() == 0 {
		return ""
	}
	return fmt.Sprintf("%d steps, %d tokens, $%.4f", s.Steps, s.Tokens(), s.Dollars)
}

var stepSign = map[engine.StepState]string{engine.StepOK: "ok", engine.StepFailed: "FAILED"}

func (s story) tellStep(st engine.Step) []string {
	switch st.Kind {
	case engine.StepThought:
		return indent(firstLines(st.Text, pick(s.full, 1000, 4)))
	case engine.StepNote:
		return indent(firstLines(st.Text, pick(s.full, 1000, 2)))
	}
	line := fmt.Sprintf("  %d.%-3d %-8s %s  %s %s", st.Attempt, st.Number, st.Name, oneLine(st.Argument, 100), took(st.Ended.Sub(st.Started)), stepSign[st.State])
	if add, del := diffCount(st.Diff); add+del > 0 {
		line += fmt.Sprintf(" +%d -%d", add, del)
	}
	lines := []string{line}
	if text := firstLines(st.Text, pick(s.full || st.State == engine.StepFailed, 12, 1)); st.Kind != engine.StepTool || s.full || st.State == engine.StepFailed || st.Diff == "" {
		lines = append(lines, indent(indent(text))...)
	}
	if (s.full || s.diffs) && st.Diff != "" {
		lines = append(lines, indent(indent(strings.Split(strings.TrimRight(st.Diff, "\n"), "\n")))...)
	}
	return lines
}

func (s story) tellEnd(r engine.HealRun) []string {
	end := map[engine.Outcome]string{
		engine.Healed:      "READY    healed",
		engine.NotHealed:   "BROKEN   gave up",
		engine.OverBudget:  "BROKEN   budget spent",
		engine.Cancelled:   "stopped  cancelled",
		engine.Interrupted: "stopped  interrupted",
		engine.Planned:     "PLAN     made, nothing was changed",
	}[r.Outcome]
	if r.Plan && r.Outcome != engine.Planned {
		end = "no plan  " + string(r.Outcome)
	}
	line := fmt.Sprintf("%s after %s (%s)", end, took(r.Ended.Sub(r.Started)), engine.Short(r.ID))
	if r.FixedBy != "" {
		line += ", fixed by " + r.FixedBy
	}
	if r.Commit != "" {
		line += ", commit " + r.Commit[:min(len(r.Commit), 10)]
	}
	if cost := spentText(r.Spent); cost != "" {
		line += " · " + cost
	}
	lines := []string{line}
	for _, more := range []struct{ word, text string }{
		{"", r.Summary},
		{"would: ", strings.Join(r.Would, "; ")},
		{"not committed: ", r.NotCommitted},
		{"kept, because somebody changed it meanwhile: ", strings.Join(r.KeptByUser, ", ")},
		{"next: ", r.Next},
	} {
		if more.text != "" {
			lines = append(lines, indent(firstLines(more.word+more.text, 6))...)
		}
	}
	if r.Diff == "" {
		return lines
	}
	if s.plan || s.full || s.diffs {
		return append(lines, indent(strings.Split(strings.TrimRight(r.Diff, "\n"), "\n"))...)
	}
	add, del := diffCount(r.Diff)
	return append(lines, fmt.Sprintf("  diff: +%d -%d", add, del))
}

func indent(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}

// firstLines is the first n lines of a text that aren't empty, and how many
// were left out.
func firstLines(text string, n int) []string {
	var lines []string
	left := 0
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\r\n")
		switch {
		case strings.TrimSpace(l) == "":
		case len(lines) < n:
			lines = append(lines, oneLine(l, 400))
		default:
			left++
		}
	}
	if left > 0 && n > 0 {
		lines[len(lines)-1] += fmt.Sprintf(" … (%d more lines)", left)
	}
	return lines
}

func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func diffCount(diff string) (add, del int) {
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
		case strings.HasPrefix(l, "+"):
			add++
		case strings.HasPrefix(l, "-"):
			del++
		}
	}
	return add, del
}

func pick[T any](cond bool, a, b T) T {
	if cond {
		return a
	}
	return b
}
