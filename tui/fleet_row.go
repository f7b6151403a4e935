package tui

import (
	"slices"
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
	// noModel: the engine has none, so that a run ends with the playbooks.
	noModel bool
}

// row is one sandbox in the fleet's table.
type row struct {
	health, life                  sign
	lifeShort                     string
	name, id, owner               string
	healer, healerShort           string
	healerRole                    themes.Role
	signal, port, mem, seen, last string
	since                         string
	live                          bool
	cpu                           []uint8 // levels of the little chart, newest last
}

// rowOf is what the table says of a sandbox.
func rowOf(s *style.Set, f facts) row {
	g := &s.Glyphs
	r := row{
		health: healthSign(g, f.sb), life: lifeSign(g, f.sb.State), lifeShort: lifeShort(f.sb.State),
		name: f.sb.Name, id: engine.Short(f.sb.ID), owner: f.sb.Owner,
		seen: ago(f.now, f.sb.Active), last: f.last, live: f.sb.State.Live(),
	}
	if r.health.word != noHealth {
		r.since = ago(f.now, f.sb.HealthChanged)
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
	if f.app.Port > 0 && r.live {
		r.port = strconv.Itoa(f.app.Port)
	}
	if !r.live {
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
		return strconv.Itoa(r.Attempt) + "/" + strconv.Itoa(r.MaxAttempts) + " " + attemptBar(g, r.Attempt, r.MaxAttempts) + " "
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
	case f.sb.Health == engine.Broken && r.Outcome == engine.NotHealed && f.noModel:
		return "no model", themes.Error
	case f.sb.Health == engine.Broken && r.Outcome == engine.NotHealed:
		return "gave up", themes.Error
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

// columnID is one column of the fleet.
type columnID int

const (
	colHealth columnID = iota
	colSince
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
// matters least goes first: last event, port, cpu, mem, owner, since, signal,
// life. Names and owners get no more than the longest needs.
func columns(width, longestName, longestOwner int, hidden map[columnID]bool) []column {
	narrow := width < narrowWidth+15
	life, name := 10, 18
	if narrow {
		life, name = 5, 13
	}
	list := []column{
		{colHealth, "HEALTH", 11},
		{colSince, "SINCE", 6},
		{colLife, "LIFE", life},
		{colSandbox, "SANDBOX", name},
		{colOwner, "OWNER", max(7, min(13, longestOwner+2))},
		{colHealer, "HEALER", 19},
		{colSignal, "SIGNAL", 10},
		{colPort, "PORT", 6},
		{colCPU, "CPU", 6},
		{colMem, "MEM", 5},
		{colSeen, "SEEN", 5},
		{colLast, "LAST EVENT", 24},
	}
	list = slices.DeleteFunc(list, func(c column) bool { return hidden[c.id] })
	for _, id := range []columnID{colLast, colPort, colCPU, colMem, colOwner, colSince, colSignal, colLife} {
		if total(list) <= width {
			break
		}
		list = slices.DeleteFunc(list, func(c column) bool { return c.id == id })
	}
	const idWidth = 9 // of the id behind the name, and blanks
	return widen(list, width-total(list), map[columnID]int{
		colSandbox: min(22, max(0, longestName+idWidth-name)), colOwner: max(0, min(8, longestOwner-11)), colHealer: 8, colLast: 200,
	})
}

// widen shares what is left among the columns whose text is long: to each at
// most what it wants.
func widen(list []column, spare int, wants map[columnID]int) []column {
	for i := range list {
		n := min(spare, wants[list[i].id])
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
