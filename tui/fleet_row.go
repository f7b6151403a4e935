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

// facts are all that a row of the fleet is made of.
type facts struct {
	sb     engine.Sandbox
	run    engine.HealRun
	signal engine.Signal
	app    engine.Process
	mem    engine.Size
	cpu    []uint8
	last   string
	now    time.Time
	spin   string
}

// row is one sandbox in the fleet's table.
type row struct {
	health, life                  sign
	lifeShort                     string
	name, id, owner               string
	healer, healerShort           string
	healerRole                    themes.Role
	signal, port, mem, seen, last string
	cpu                           []uint8 // levels of the little chart, newest last
}

// rowOf is what the table says of a sandbox.
func rowOf(s *style.Set, f facts) row {
	g := &s.Glyphs
	r := row{
		health: healthSign(g, f.sb), life: lifeSign(g, f.sb.State), lifeShort: lifeShort(f.sb.State),
		name: f.sb.Name, id: engine.Short(f.sb.ID), owner: f.sb.Owner,
		seen: ago(f.now, f.sb.Active), last: f.last,
	}
	if f.sb.Health == engine.Healing {
		r.health.glyph = f.spin
	}
	if f.sb.Owner == "" && f.sb.State == engine.Warm {
		r.owner = "(pool)"
	}
	r.healer, r.healerRole = healerWords(g, f, span(f.now.Sub(f.run.Started)))
	r.healerShort, _ = healerWords(g, f, ago(f.now, f.run.Started))
	if f.sb.Health == engine.Healing || f.sb.Health == engine.Broken {
		r.signal = signalWord(f.signal)
	}
	if f.app.Port > 0 {
		r.port = strconv.Itoa(f.app.Port)
	}
	if !f.sb.State.Live() {
		r.mem = "—"
		return r
	}
	r.mem = memory(f.mem)
	r.cpu = tail(f.cpu, sparkLen)
	return r
}

// healerWords is the healer's column: what it does and for how long, did, or is
// kept from.
func healerWords(g *style.Glyphs, f facts, since string) (string, themes.Role) {
	r := f.run
	bar := func() string {
		return fmt.Sprintf("%d/%d %s ", r.Attempt, r.MaxAttempts, attemptBar(g, r.Attempt, r.MaxAttempts))
	}
	switch {
	case r.ID != "" && r.Open() && r.State == engine.RunQueued:
		return "queued " + since, themes.Warning
	case r.ID != "" && r.Open() && r.State == engine.RunWaiting:
		return "waits for the model", themes.Warning
	case r.ID != "" && r.Open() && r.Attempt == 0:
		return first(r.Doing, "playbooks") + " " + since, themes.Warning
	case r.ID != "" && r.Open():
		return bar() + r.Doing + " " + since, themes.Warning
	case f.sb.Health == engine.Broken && r.Outcome == engine.OverBudget:
		return bar() + "budget", themes.Error
	case f.sb.Health == engine.Broken && r.MaxAttempts > 0 && r.Attempt > 0:
		return bar() + "gave up", themes.Error
	case f.sb.Health == engine.Broken:
		return first(f.sb.Reason, "gave up"), themes.Error
	case f.sb.Maintenance.Active(f.now):
		return pausedWords(f.sb.Maintenance, f.now), themes.Warning
	case r.Outcome == engine.Healed:
		return "healed " + stamp(f.now, r.Ended), themes.Muted
	}
	return "", themes.Muted
}

func pausedWords(m engine.Maintenance, now time.Time) string {
	if m.Until.IsZero() {
		return "paused"
	}
	return "paused " + ago(m.Until, now) + " more"
}

// attemptBar is ▰▰▱: attempts made of those that there may be.
func attemptBar(g *style.Glyphs, n, most int) string {
	most = min(most, 5)
	n = min(n, most)
	return strings.Repeat(g.Done, max(0, n)) + strings.Repeat(g.Todo, max(0, most-n))
}

// sparkLen is how many columns the table's little chart has, newest at the right.
const sparkLen = 5

func sparks(s *style.Set, levels []uint8) string {
	var b strings.Builder
	for _, v := range levels {
		b.WriteString(s.Spark(int(v) * 8 / 101))
	}
	return b.String()
}

// columnID is one column of the fleet.
type columnID int

const (
	colHealth columnID = iota
	colLife
	colSandbox
	colOwner
	colHealer
	colSignal
	colPort
	colCPU
	colMem
	colSeen
	colLast
)

type column struct {
	id    columnID
	title string
	width int
}

// columns are those that fit, each with its width and a blank after it. What
// matters least goes first: last event, cpu, mem, port, owner, signal, life.
func columns(width int) []column {
	narrow := width < narrowWidth+15
	life, name := 10, 18
	if narrow {
		life, name = 5, 13
	}
	list := []column{
		{colHealth, "HEALTH", 11},
		{colLife, "LIFE", life},
		{colSandbox, "SANDBOX", name},
		{colOwner, "OWNER", 13},
		{colHealer, "HEALER", 19},
		{colSignal, "SIGNAL", 10},
		{colPort, "PORT", 6},
		{colCPU, "CPU", 6},
		{colMem, "MEM", 5},
		{colSeen, "SEEN", 5},
		{colLast, "LAST EVENT", 24},
	}
	for _, id := range []columnID{colLast, colCPU, colMem, colPort, colOwner, colSignal, colLife} {
		if total(list) <= width {
			break
		}
		for i := range list {
			if list[i].id == id {
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
	}
	return widen(list, width-total(list))
}

// widen shares what is left among the columns whose text is long.
func widen(list []column, spare int) []column {
	share := map[columnID]int{colSandbox: 14, colOwner: 8, colHealer: 8, colLast: 200}
	if list[len(list)-1].id == colLast {
		share[colSandbox], share[colOwner], share[colHealer] = 6, 4, 4
	}
	for i := range list {
		n := min(spare, share[list[i].id])
		list[i].width += n
		spare -= n
	}
	return list
}

func total(list []column) int {
	n := 0
	for _, c := range list {
		n += c.width
	}
	return n
}
