package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"sbx/themes"
	"sbx/tui/clean"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// rows is how many rows the lines have: below the head.
func (l *logs) rows() int { return max(1, l.height-2) }

// lastFirst is the first line that shows when the end shows.
func (l *logs) lastFirst() int {
	rows, i := l.rows(), l.ring.size()
	for i > 0 {
		if rows -= l.heightOf(i - 1); rows < 0 {
			break
		}
		i--
	}
	return i
}

// first is the first line that shows.
func (l *logs) first() int {
	if l.follow {
		return l.lastFirst()
	}
	return min(l.ring.index(l.top), max(0, l.ring.size()-1))
}

func (l *logs) heightOf(i int) int {
	if !l.wrap {
		return 1
	}
	line := l.ring.at(i)
	if line.gap != nil {
		return 1
	}
	line.prepare()
	w := max(1, l.textWidth())
	return max(1, (ansi.StringWidth(line.shown)+w-1)/w)
}

func (l *logs) textWidth() int {
	w := l.width - 4
	if l.times {
		w -= 9
	}
	return w
}

// View is the head, a title, and the lines.
func (l *logs) View() string {
	p := &panel{w: l.w, width: l.width, height: l.height}
	l.headLine(p)
	l.titleLine(p)
	if l.ring.size() == 0 {
		p.add(p.pen().Gap(2).Put(themes.Muted, l.emptyWords()))
		return p.text()
	}
	for i := l.first(); i < l.ring.size() && !p.full(); i++ {
		l.draw(p, i)
	}
	return p.text()
}

func (l *logs) emptyWords() string {
	sb, _ := l.w.sandbox(l.id)
	switch {
	case l.err != nil:
		return l.err.Error() + " — r tries again"
	case l.ring.only != "":
		return fmt.Sprintf("0 of %d lines match %q — Esc clears", l.ring.count(), l.ring.only)
	case !sb.State.Live() && sb.ID != "":
		return fmt.Sprintf("%s since %s · S starts it", sb.State, stamp(l.w.now, sb.StateChanged))
	}
	return "nothing written yet"
}

func (l *logs) headLine(p *panel) {
	pen := p.pen().Gap(1)
	on := map[bool]string{true: l.w.glyphs.Running, false: l.w.glyphs.Cold}
	pen.Put(themes.Muted, "app  show ").Put(themes.Text, "time "+on[l.times]+" wrap "+on[l.wrap]).Gap(3)
	field := func(name, value string, typing bool) {
		pen.Put(themes.Muted, name+" ")
		switch {
		case typing:
			drawInput(pen, l.input.Value(), l.input.Position())
		case value == "":
			pen.Put(themes.Muted, "none")
		default:
			pen.Put(themes.Text, value)
		}
		pen.Gap(3)
	}
	field("search", l.find, l.Typing() && l.asking == '/')
	field("only", l.ring.only, l.Typing() && l.asking == '&')
	p.add(pen)
}

// drawInput is a text being typed, with its cursor.
func drawInput(pen *draw.Pen, value string, at int) {
	runes := []rune(value)
	at = max(0, min(at, len(runes)))
	pen.Put(themes.Text, string(runes[:at]))
	under := " "
	if at < len(runes) {
		under = string(runes[at])
	}
	pen.Put(themes.BadgeType, under)
	if at < len(runes) {
		pen.Put(themes.Text, string(runes[at+1:]))
	}
}

func (l *logs) titleLine(p *panel) {
	note := plural(l.ring.count(), "line")
	if l.ring.only != "" {
		note = fmt.Sprintf("%d of %s", l.ring.size(), note)
	}
	if l.ring.lost > 0 {
		note += fmt.Sprintf(" · %d bytes fell off unread", l.ring.lost)
	}
	role := themes.Muted
	switch {
	case l.err != nil:
		note, role = l.err.Error()+" · r tries again", themes.Error
	case l.held:
		note, role = "paused · Space goes on · "+note, themes.Warning
	case l.follow:
		note = "▼ following · " + note
	default:
		note = "F follows · " + note
	}
	p.title("Log of app", note, role, true)
}

// draw is one line, in as many rows as it takes when wrapping. The gutter marks
// all of it as content, so that no line can pass for a part of the dashboard.
func (l *logs) draw(p *panel, i int) {
	line := l.ring.at(i)
	if line.gap != nil {
		p.add(p.pen().Gap(1).Put(themes.Warning, line.gap.words(l.w.now)))
		return
	}
	line.prepare()
	found := l.ring.number(i) == l.found
	parts := []string{line.shown}
	if l.wrap && l.heightOf(i) > 1 {
		parts = strings.Split(ansi.Hardwrap(ansi.Strip(line.shown), l.textWidth(), true), "\n")
	}
	for n, part := range parts {
		ground := style.Plain
		if found {
			ground = style.Selected
		}
		pen := draw.On(l.w.styles, ground, p.width)
		l.gutter(pen, line, n == 0)
		l.text(pen, line, part)
		p.add(pen)
	}
}

func (l *logs) gutter(pen *draw.Pen, line *logLine, first bool) {
	switch {
	case line.level == levelError:
		pen.Put(themes.Error, "┃")
	case line.level == levelWarn:
		pen.Put(themes.Warning, "│")
	default:
		pen.Put(themes.Border, "│")
	}
	pen.Gap(1)
	if !l.times {
		return
	}
	if first && !line.Time.IsZero() {
		pen.Cell(themes.Muted, clock(line.Time), 9)
	} else {
		pen.Gap(9)
	}
}

var levelRoles = [...]themes.Role{levelNone: themes.Text, levelWarn: themes.Warning, levelError: themes.Error}

func (l *logs) text(pen *draw.Pen, line *logLine, part string) {
	role := levelRoles[line.level]
	if l.find == "" || !contains(part, l.find) {
		if clean.Plain(part) || l.w.link.state == lost {
			pen.Put(role, ansi.Strip(part))
			return
		}
		pen.Colored(role, part)
		return
	}
	rest := ansi.Strip(part) // the match counts more than the line's own colours
	for pen.Left() > 0 {
		i := strings.Index(strings.ToLower(rest), strings.ToLower(l.find))
		if i < 0 || i+len(l.find) > len(rest) {
			break
		}
		pen.Put(role, rest[:i]).Put(themes.Match, rest[i:i+len(l.find)])
		rest = rest[i+len(l.find):]
	}
	pen.Put(role, rest)
}
