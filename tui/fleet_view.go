package tui

import (
	"strconv"
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
	cols := f.columns()
	lines = append(lines, f.heads(cols))
	rail := railOf(f.height-1, f.rows(), f.top)
	pen := f.w.pen(f.width)
	for y := range f.height - 1 {
		lines = append(lines, f.line(pen, cols, f.top+y, rail, y))
	}
	return strings.Join(lines, "\n")
}

// columns are those that fit and that nobody hid.
func (f *fleet) columns() []column {
	return columns(f.width-gutter-railWidth, f.w.fleet.widest.name, f.w.fleet.widest.owner, f.w.hidden)
}

func (f *fleet) heads(cols []column) string {
	p := f.w.pen(f.width).Gap(gutter)
	f.heading = f.heading[:0]
	for _, c := range cols {
		f.heading = append(f.heading, heading{c.id, f.width - p.Left(), c.width})
		title := c.title
		if c.id == f.sortColumn() {
			title += "▾"
		}
		p.Cell(themes.Muted, title, c.width)
	}
	return p.String()
}

// sortColumns are the columns that the fleet is sorted by.
var sortColumns = [sortings]columnID{colHealth, colSandbox, colLife, colOwner, colSeen}

func (f *fleet) sortColumn() columnID { return sortColumns[f.w.fleet.sort] }

// line is row n of the list: a group's title, a sandbox, or nothing.
func (f *fleet) line(p *draw.Pen, cols []column, n int, rail rail, y int) string {
	e, sec := f.at(n)
	switch {
	case e == nil && sec == nil && n == 0:
		return p.Again(style.Plain).Gap(gutter).Put(themes.Text, f.filter.none(len(f.w.fleet.entries))).String()
	case e == nil && sec == nil:
		return p.Again(style.Plain).String()
	case e == nil:
		return f.sectionLine(p, sec, rail, y)
	}
	sb := f.w.snap.Sandboxes[e.id]
	ground := style.Plain
	if e.id == f.cursor {
		ground = style.Selected
	}
	p.Again(ground)
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

// sectionRole is the colour of a group's title: that of what it says of health,
// if it does.
func (f *fleet) sectionRole(s *section) themes.Role {
	if f.w.fleet.group != byHealth {
		return themes.Accent
	}
	return [...]themes.Role{themes.Error, themes.HealthHealing, themes.HealthReady}[s.need]
}

func (f *fleet) sectionLine(p *draw.Pen, s *section, rail rail, y int) string {
	p.Again(style.Plain).Gap(1).Put(themes.Border, "─ ").Put(f.sectionRole(s), s.title)
	p.Put(themes.Muted, " "+strconv.Itoa(s.n)+" ")
	p.Rule(themes.Border, "─", p.Left()-railWidth).To(railWidth - 1)
	rail.draw(p, y)
	return p.String()
}

// facts are what a row of a sandbox is made of, as things are now.
func (w *world) facts(sb engine.Sandbox) facts {
	t := w.trace(sb.ID)
	return facts{
		noModel: w.snap.About.Model == "",
		sb:      sb, run: w.snap.Runs[sb.ID], signal: w.snap.Signals[sb.ID], app: w.app(sb.ID),
		mem: t.memory, cpu: t.cpu, last: w.past.last[sb.ID],
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
		if r.live {
			drawBars(p, r.cpu, n)
		} else {
			p.Gap(n)
		}
	case colMem:
		p.Cell(themes.Text, r.mem, n)
	case colSince:
		p.Cell(themes.Muted, r.since, n)
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

// drawBars is a little chart of n columns on its axis, newest at the right. An
// idle sandbox has the axis alone, however long it is watched.
func drawBars(p *draw.Pen, levels []uint8, n int) {
	levels = tail(levels, n)
	p.Bars(themes.Border, n-len(levels), 0)
	for _, v := range levels {
		if v = quiet(v); v > 0 {
			p.Bars(themes.Chart, 1, v)
		} else {
			p.Bars(themes.Border, 1, 0)
		}
	}
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
