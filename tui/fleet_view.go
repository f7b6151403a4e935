package tui

import (
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// gutter is the cursor, the mark and a blank; railWidth the scroll bar.
const (
	gutter    = 3
	railWidth = 2
)

// View shows the table: its head, and the rows that fit below it.
func (f *fleet) View() string {
	lines := make([]string, 0, f.height)
	cols := columns(f.width - gutter - railWidth)
	lines = append(lines, f.heads(cols))
	rail := railOf(f.height-1, f.rows(), f.top)
	for y := range f.height - 1 {
		lines = append(lines, f.line(cols, f.top+y, rail, y))
	}
	return strings.Join(lines, "\n")
}

func (f *fleet) heads(cols []column) string {
	p := f.w.pen(f.width).Gap(gutter)
	for _, c := range cols {
		title := c.title
		if c.id == f.sortColumn() {
			title += "▾"
		}
		p.Cell(themes.Muted, title, c.width)
	}
	return p.String()
}

func (f *fleet) sortColumn() columnID {
	return [sortings]columnID{colHealth, colSandbox, colLife, colOwner, colSeen}[f.w.fleet.sort]
}

// line is row n of the list: a group's title, a sandbox, or nothing.
func (f *fleet) line(cols []column, n int, rail rail, y int) string {
	e, g := f.at(n)
	switch {
	case e == nil && g < 0 && n == 0:
		return f.w.pen(f.width).Gap(gutter).Put(themes.Text, f.filter.none(len(f.w.fleet.entries))).String()
	case e == nil && g < 0:
		return f.w.pen(f.width).String()
	case e == nil:
		return f.groupLine(group(g), rail, y)
	}
	sb := f.w.snap.Sandboxes[e.id]
	ground := style.Plain
	if e.id == f.cursor {
		ground = style.Selected
	}
	p := draw.On(f.w.styles, ground, f.width)
	if e.id == f.cursor {
		p.Put(themes.BorderFocus, "▌")
	} else {
		p.Gap(1)
	}
	if f.w.marks[e.id] {
		p.Cell(themes.Mark, f.w.glyphs.Mark, 2)
	} else {
		p.Gap(2)
	}
	r := rowOf(f.w.styles, f.w.facts(sb))
	for _, c := range cols {
		drawCell(p, c, r)
	}
	p.To(railWidth - 1)
	rail.draw(p, y)
	return p.String()
}

var groupRoles = [groups]themes.Role{themes.Error, themes.HealthHealing, themes.HealthReady}

func (f *fleet) groupLine(g group, rail rail, y int) string {
	p := f.w.pen(f.width).Gap(1).Put(themes.Border, "─ ").Put(groupRoles[g], groupTitles[g])
	p.Put(themes.Muted, fmt.Sprintf(" %d ", f.counts[g]))
	p.Rule(themes.Border, "─", p.Left()-railWidth).To(railWidth - 1)
	rail.draw(p, y)
	return p.String()
}

// facts are what a row of a sandbox is made of, as things are now.
func (w *world) facts(sb engine.Sandbox) facts {
	return facts{
		sb: sb, run: w.snap.Runs[sb.ID], signal: w.snap.Signals[sb.ID], app: w.app(sb.ID),
		mem: w.gauges.Sandboxes[sb.ID].Memory, cpu: w.trace(sb.ID).cpu, last: w.past.last[sb.ID],
		now: w.asOf(), spin: w.spinner(),
	}
}

func drawCell(p *draw.Pen, c column, r row) {
	n := c.width - 1
	switch c.id {
	case colHealth:
		end := p.Left() - n
		p.Put(r.health.role, r.health.glyph).Put(r.health.role, " ").Put(r.health.role, r.health.word)
		if r.health.role == themes.HealthBroken {
			p.Put(r.health.role, " ") // the badge is a block, not a word
		}
		p.To(end)
	case colLife:
		if n < 8 {
			p.Put(r.life.role, r.life.glyph).Cell(r.life.role, r.lifeShort, n-1)
			break
		}
		p.Put(r.life.role, r.life.glyph).Gap(1).Cell(r.life.role, r.life.word, n-2)
	case colSandbox:
		drawName(p, r, n)
	case colOwner:
		p.Cell(themes.Muted, r.owner, n)
	case colHealer:
		text := r.healer
		if draw.Width(text) > n {
			text = r.healerShort
		}
		p.Cell(r.healerRole, text, n)
	case colSignal:
		p.Cell(themes.Text, r.signal, n)
	case colPort:
		p.Cell(themes.Muted, r.port, n)
	case colCPU:
		p.Gap(n - len(r.cpu))
		for _, v := range r.cpu {
			p.Put(themes.Chart, p.Spark(v))
		}
	case colMem:
		p.Cell(themes.Text, r.mem, n)
	case colSeen:
		p.Cell(themes.Muted, r.seen, n)
	case colLast:
		p.Cell(themes.Muted, r.last, n)
	}
	p.Gap(1)
}

// drawName is the name, and the id behind it where there is room for both.
func drawName(p *draw.Pen, r row, n int) {
	if w := draw.Width(r.name); w+1+len(r.id) <= n {
		p.Put(themes.Text, r.name).Gap(1).Cell(themes.Muted, r.id, n-w-1)
		return
	}
	p.Cell(themes.Text, r.name, n)
}

// rail is a scroll bar.
type rail struct{ from, to, height int }

// railOf is the bar of a list of n lines of which height show from top on.
func railOf(height, n, top int) rail {
	if n <= height || height <= 0 {
		return rail{}
	}
	size := max(1, height*height/n)
	from := (height - size) * top / max(1, n-height)
	return rail{from: from, to: from + size, height: height}
}

func (r rail) draw(p *draw.Pen, y int) {
	switch {
	case r.height == 0:
		p.Gap(1)
	case y >= r.from && y < r.to:
		p.Put(themes.BorderFocus, "┃")
	default:
		p.Put(themes.Border, "│")
	}
}
