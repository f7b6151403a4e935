package tui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// laneHead is what stands left of a lane: cursor, sign, sandbox, signal.
const laneHead = 30

// View is the timeline, the list where there is room, the selected run, and
// what several have in common.
func (n *incidents) View() string {
	p := &panel{w: n.w, width: n.width, height: n.height}
	list := n.list()
	if len(list) == 0 {
		return n.none(p)
	}
	e := n.selected()
	lanes := n.lanes()
	n.scroll(len(list), lanes)
	n.timeline(p, list, lanes)
	if n.height >= 36 {
		p.blank()
		n.table(p, list, lanes)
	}
	p.blank()
	n.detail(p, e)
	p.blank()
	n.patterns(p, list)
	return p.text()
}

// none says that nothing happened, or why that isn't known.
func (n *incidents) none(p *panel) string {
	p.title("Timeline", rangeNames[n.zoom], themes.Muted, true)
	p.blank()
	switch {
	case n.err != nil:
		p.add(p.pen().Gap(2).Put(themes.Error, "history: "+n.err.Error()).Gap(2).Put(themes.Key, n.w.keys.Retry.Help().Key).Put(themes.Text, " tries again"))
	default:
		p.add(p.pen().Gap(2).Put(themes.Text, "no heal run in the last "+rangeNames[n.zoom]))
		p.add(p.pen().Gap(2).Put(themes.Key, n.w.keys.ZoomOut.Help().Key).Put(themes.Muted, " looks further back"))
	}
	return p.text()
}

// lanes is how many rows the timeline has.
func (n *incidents) lanes() int {
	if n.height >= 36 {
		return max(4, min(12, (n.height-16)/2))
	}
	return max(3, n.height-12)
}

func (n *incidents) scroll(rows, height int) {
	n.top = max(min(n.top, n.place), n.place-height+1)
	n.top = max(0, min(n.top, rows-height))
}

// axis is where on a lane a moment lies.
type axis struct {
	from time.Time
	step time.Duration // of a column
	cols int
}

func (n *incidents) axis() axis {
	cols := max(10, n.width-laneHead-1)
	span := n.span()
	end := n.w.asOf().Add(-span / 10 * time.Duration(n.back))
	return axis{from: end.Add(-span), step: span / time.Duration(cols), cols: cols}
}

// at is the column of a moment, which may lie outside.
func (a axis) at(t time.Time) int { return int(t.Sub(a.from) / max(1, a.step)) }

func (n *incidents) timeline(p *panel, list []*episode, lanes int) {
	a := n.axis()
	to := "now"
	if n.back > 0 {
		to = clock(a.from.Add(n.span()))
	}
	p.title("Timeline", fmt.Sprintf("%s → %s · one column = %s", a.from.Local().Format("15:04"), to, span(a.step)), themes.Muted, true)
	p.add(n.clockLine(p, a))
	for _, e := range list[n.top:min(len(list), n.top+lanes)] {
		ground := style.Plain
		if e.run.ID == n.cursor {
			ground = style.Selected
		}
		pen := p.pen().Again(ground)
		if e.run.ID == n.cursor {
			pen.Put(themes.BorderFocus, "▌")
		} else {
			pen.Gap(1)
		}
		glyph, role := n.sign(e)
		pen.Put(role, glyph).Gap(1).Cell(themes.Text, e.name, 15).Gap(1).Cell(themes.Muted, n.signal(e), 10).Gap(1)
		n.lane(pen, e, a)
		p.add(pen)
	}
}

// clockLine are the times above the lanes, as many as are whole.
func (n *incidents) clockLine(p *panel, a axis) *draw.Pen {
	pen := p.pen().Gap(laneHead)
	unit := 10 * time.Minute
	for _, u := range []time.Duration{30 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour} {
		if int(unit/max(1, a.step)) < 12 {
			unit = u
		}
	}
	format := "15:04"
	if unit >= 24*time.Hour {
		format = "Jan 2"
	}
	x := 0
	for t := a.from.Truncate(unit).Add(unit); ; t = t.Add(unit) {
		col, text := a.at(t), t.Local().Format(format)
		if col+len(text) > a.cols {
			return pen
		}
		if col >= x {
			pen.Gap(col-x).Put(themes.Muted, text)
			x = col + len(text)
		}
	}
}

// lane draws attempts as "1━━✗2━━✓", and "▸" where one goes on.
func (n *incidents) lane(pen *draw.Pen, e *episode, a axis) {
	signs, roles := make([]string, a.cols), make([]themes.Role, a.cols)
	put := func(col int, sign string, role themes.Role) {
		if col >= 0 && col < a.cols {
			signs[col], roles[col] = sign, role
		}
	}
	now := n.w.asOf()
	bar := func(from, to time.Time, first string, role themes.Role) int {
		x, end := a.at(from), a.at(to)
		for col := max(0, x); col <= min(end, a.cols-1); col++ {
			put(col, "━", role)
		}
		put(x, first, role)
		return end
	}
	glyph, role := n.sign(e)
	end := bar(e.run.Started, e.end(now), "p", role)
	for _, at := range e.attempts {
		if at.Number == 0 {
			continue
		}
		to, mark, r := at.Ended, n.w.glyphs.Broken, themes.Error
		switch {
		case at.Outcome == "":
			to, mark, r = e.end(now), "", themes.HealthHealing
		case at.Outcome == engine.Healed:
			mark, r = n.w.glyphs.Ready, themes.HealthReady
		}
		last := bar(at.Started, to, strconv.Itoa(at.Number), r)
		if mark != "" && last > a.at(at.Started) {
			put(last, mark, r)
		}
	}
	if e.run.Open() {
		glyph = n.w.glyphs.Folded
	}
	put(min(max(end, a.at(e.run.Started)+1), a.cols-1), glyph, role)
	for i, s := range signs {
		if s == "" {
			pen.Gap(1)
			continue
		}
		pen.Put(roles[i], s)
	}
}

// table is the list below the lanes: the same runs, in words.
func (n *incidents) table(p *panel, list []*episode, rows int) {
	p.title("Heal runs", "", themes.Muted, false)
	pen := p.pen().Gap(3)
	for _, h := range []struct {
		title string
		width int
	}{{"START", 10}, {"SANDBOX", 18}, {"SIGNAL", 13}, {"ATTEMPTS", 10}, {"OUTCOME", 13}, {"TOOK", 8}, {"STEPS", 7}, {"COST", 8}, {"COMMIT", 9}, {"INCIDENT", 12}, {"WATCHED BY", 14}} {
		pen.Cell(themes.Muted, h.title, h.width)
	}
	p.add(pen)
	for _, e := range list[n.top:min(len(list), n.top+rows)] {
		r := e.run
		pen := p.pen()
		if r.ID == n.cursor {
			pen.Again(style.Selected).Put(themes.BorderFocus, "▌")
		} else {
			pen.Gap(1)
		}
		glyph, role := n.sign(e)
		pen.Put(role, glyph).Gap(1).Cell(themes.Text, clock(r.Started), 10).Cell(themes.Text, e.name, 18).Cell(themes.Text, n.signal(e), 13)
		pen.Cell(role, n.tries(e), 10).Cell(role, outcomeWord(r), 13).Cell(themes.Muted, span(e.end(n.w.asOf()).Sub(r.Started)), 8)
		pen.Cell(themes.Muted, dashIf(r.Spent.Steps == 0, strconv.Itoa(r.Spent.Steps)), 7).Cell(themes.Muted, dashIf(r.Spent.Dollars == 0, fmt.Sprintf("$%.2f", r.Spent.Dollars)), 8)
		pen.Cell(themes.Muted, dashIf(r.Commit == "", r.Commit[:min(7, len(r.Commit))]), 9).Cell(themes.Muted, dashIf(r.Incident == "", engine.Short(r.Incident)), 12)
		watcher, watchRole := n.watcher(r)
		pen.Cell(watchRole, watcher, 14)
		p.add(pen)
	}
}

func dashIf(none bool, text string) string {
	if none {
		return "—"
	}
	return text
}

// watcher is who said to be on the run's incident; nobody is told in red while
// it is open.
func (n *incidents) watcher(r engine.HealRun) (string, themes.Role) {
	in, ok := n.w.snap.Incidents[r.Incident]
	switch {
	case !ok:
		return "", themes.Muted
	case in.Watcher.Name == "":
		return "nobody", themes.Error
	}
	return in.Watcher.Name + ", " + in.Watched.Local().Format("15:04"), themes.Text
}

// tries is a sign for each attempt.
func (n *incidents) tries(e *episode) string {
	var b strings.Builder
	for i := range max(e.run.MaxAttempts, e.run.Attempt) {
		sign := n.w.glyphs.Cold
		switch {
		case i >= e.run.Attempt:
		case i == e.run.Attempt-1 && e.run.Outcome == engine.Healed:
			sign = n.w.glyphs.Ready
		case i == e.run.Attempt-1 && e.run.Open():
			sign = n.w.glyphs.Healing
		default: // as it stands if the attempt's own record is gone
			sign = n.w.glyphs.Broken
		}
		for _, a := range e.attempts {
			if a.Number != i+1 {
				continue
			}
			switch a.Outcome {
			case "":
				sign = n.w.glyphs.Healing
			case engine.Healed:
				sign = n.w.glyphs.Ready
			default:
				sign = n.w.glyphs.Broken
			}
		}
		b.WriteString(sign)
	}
	return b.String()
}

// detail is the selected run in a few lines.
func (n *incidents) detail(p *panel, e *episode) {
	r := e.run
	note := outcomeWord(r) + " " + span(e.end(n.w.asOf()).Sub(r.Started))
	_, role := n.sign(e)
	p.title(cmp.Or(engine.Short(r.Incident), engine.Short(r.ID))+" · "+e.name, note, role, false)
	p.fact("signal", themes.Text, cmp.Or(e.signal.Observed, r.Cause))
	if in, ok := n.w.snap.Incidents[r.Incident]; ok {
		p.fact("incident", themes.Text, fmt.Sprintf("%s: %s, %s", in.Title, plural(len(in.Members), "sandbox"), cmp.Or(in.Reason, string(in.State))))
	}
	for _, a := range e.attempts {
		words := sentences(oneLine(cmp.Or(a.Summary, a.Why)))
		pen := p.pen().Gap(1).Cell(themes.Muted, attemptName(a.Number), 11).Cell(themes.Muted, span(timeOr(a.Ended, n.w.asOf()).Sub(a.Started)), 7)
		p.add(pen.Put(themes.Text, words))
	}
	if r.Summary != "" {
		p.fact("outcome", themes.Text, sentences(oneLine(r.Summary)))
	}
	p.fact("next", themes.Text, oneLine(r.Next))
}

func timeOr(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}

// patterns are what several sandboxes have in common.
func (n *incidents) patterns(p *panel, list []*episode) {
	found := patternsOf(list)
	if len(found) == 0 {
		return
	}
	p.title("Patterns, "+rangeNames[n.zoom], "", themes.Muted, false)
	for _, f := range found {
		p.add(p.pen().Gap(1).Put(themes.Warning, plural(f.sandboxes, "sandbox")).Put(themes.Text, " fail on “"+f.cause+"” since "+clock(f.since)))
	}
}

// head is the line above: the range, and how it went.
func (n *incidents) head(width int) string {
	p := n.w.pen(width).Gap(1)
	p.Put(themes.Muted, "range ")
	for i, name := range rangeNames {
		if i == n.zoom {
			p.Put(themes.BadgeNav, " "+name+" ")
			continue
		}
		p.Gap(1).Put(themes.Text, name).Gap(1)
	}
	t := tallyOf(n.list())
	words := fmt.Sprintf("%d open · %d closed", t.open, t.closed)
	if t.closed > 0 {
		words += fmt.Sprintf(" · %d healed without you (%d %%)", t.healed, 100*t.healed/t.closed)
	}
	if t.median > 0 {
		words += " · median " + span(t.median)
	}
	if draw.Width(words)+2 > p.Left() {
		words = fmt.Sprintf("%d open · %d/%d healed", t.open, t.healed, t.closed)
	}
	return p.Ends(themes.Muted, words+" ").String()
}
