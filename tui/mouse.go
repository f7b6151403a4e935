package tui

import (
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
)

// Mouse is what the mouse does in the dashboard. Shift and drag is always the
// terminal's own selection.
type Mouse string

// What the mouse can do.
const (
	MouseOn    Mouse = "on"
	MouseWheel Mouse = "wheel" // it scrolls and nothing else
	MouseOff   Mouse = "off"   // all of it is the terminal's
)

// wheelLines is how far a notch of the wheel goes; double how soon a second
// click opens.
const (
	wheelLines = 3
	double     = 400 * time.Millisecond
)

// hit is a part of the screen that a click does something on.
type hit struct {
	at rect
	do func() tea.Cmd
}

// click is where the last click was, and when.
type click struct {
	id engine.SandboxID
	at time.Time
}

// heading is the head of a column.
type heading struct {
	id   columnID
	x, w int
}

// clickable notes that what the pen has drawn since from was Left does
// something.
func (a *App) clickable(y int, p *draw.Pen, from int, do func() tea.Cmd) {
	a.hits = append(a.hits, hit{rect{a.width - from, y, from - p.Left(), 1}, do})
}

// pressing is a click on a key's hint: the same as the key, if there is one.
func (a *App) pressing(b key.Binding) func() tea.Cmd {
	return func() tea.Cmd {
		if len(b.Keys()) == 0 {
			return nil // words for two keys
		}
		return a.key(pressOf(b.Keys()[0]))
	}
}

func (a *App) tabHit(t tab, p *draw.Pen, from int) {
	a.clickable(a.layout.head.y, p, from, func() tea.Cmd { return a.open(a.sandbox.id, t) })
}

func (a *App) hintsRow() int {
	if a.layout.hints.w > 0 {
		return a.layout.hints.y
	}
	return a.layout.status.y
}

// wheel scrolls what is under the pointer: the overlay, the fleet or the pane.
func (a *App) wheel(msg tea.MouseWheelMsg) tea.Cmd {
	if a.layout.small || a.w.snap == nil || a.w.cfg.Mouse == MouseOff {
		return nil
	}
	n := wheelLines
	switch msg.Button {
	case tea.MouseWheelUp:
		n = -wheelLines
	case tea.MouseWheelDown:
	default:
		return nil
	}
	if a.overlay == nil && a.screen == onFleet {
		if a.layout.main.has(msg.X, msg.Y) {
			a.fleet.wheel(n)
		}
		return nil
	}
	if a.overlay == nil && a.sandbox.tab == tabTerminal && a.screen == onSandbox {
		a.terminal().scroll(-n)
		return nil
	}
	arrow := tea.KeyPressMsg{Code: tea.KeyDown}
	if n < 0 {
		arrow.Code = tea.KeyUp
	}
	var cmds []tea.Cmd
	for range wheelLines {
		switch {
		case a.overlay != nil:
			cmds = append(cmds, a.overlay.Update(arrow))
		case !typing(a.current()):
			cmds = append(cmds, a.current().Update(arrow))
		}
	}
	return tea.Batch(cmds...)
}

// clicked does what stands under the pointer. An overlay keeps clicks from what
// is below it.
func (a *App) clicked(msg tea.MouseClickMsg) tea.Cmd {
	if a.overlay != nil || a.layout.small || a.w.snap == nil || a.w.cfg.Mouse == MouseWheel || a.w.cfg.Mouse == MouseOff {
		return nil
	}
	for _, h := range a.hits {
		if msg.Button == tea.MouseLeft && h.at.has(msg.X, msg.Y) {
			return h.do()
		}
	}
	if a.screen != onFleet || !a.layout.main.has(msg.X, msg.Y) {
		return nil
	}
	return a.clickedFleet(msg)
}

func (a *App) clickedFleet(msg tea.MouseClickMsg) tea.Cmd {
	y := msg.Y - a.layout.main.y - 1
	if y < 0 {
		a.fleet.sortBy(msg.X)
		return nil
	}
	e, _ := a.fleet.at(a.fleet.top + y)
	if e == nil {
		return nil
	}
	a.fleet.touched = true
	a.fleet.jump(e.id)
	switch msg.Button {
	case tea.MouseRight:
		a.commandPalette()
	case tea.MouseLeft:
		again := a.click.id == e.id && a.w.now.Sub(a.click.at) < double
		a.click = click{e.id, a.w.now}
		if again {
			a.click = click{}
			return a.open(e.id, tabOverview)
		}
	}
	return nil
}

// has reports whether a cell is within the rectangle.
func (r rect) has(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// wheel scrolls the table by n lines. The cursor stays where it is, or goes with
// the edge of what shows.
func (f *fleet) wheel(n int) {
	f.touched = true
	height := max(1, f.height-1)
	top := max(0, min(f.top+n, f.rows()-height))
	line := f.place + f.titles(f.place)
	switch {
	case line <= top && top > 0: // a line of context stays above it
		f.move(top + 1 - line)
	case line >= top+height:
		f.move(top + height - 1 - line)
	}
	f.top = top
	f.scroll()
}

// sortBy sorts by the column at x, if the fleet can be sorted by it.
func (f *fleet) sortBy(x int) {
	for _, h := range f.heading {
		if x < h.x || x >= h.x+h.w {
			continue
		}
		for s := range sortings {
			if sortColumns[s] == h.id {
				f.arrange(s, f.w.fleet.group)
			}
		}
	}
}

// mouseEntry turns the mouse off and on from the palette.
func (a *App) mouseEntry() paletteEntry {
	to := MouseOff
	if a.w.cfg.Mouse == MouseOff {
		to = MouseOn
	}
	return paletteEntry{title: "mouse " + string(to), note: "until sbx is left; tui.mouse in config.toml keeps it", run: func() tea.Cmd {
		a.w.cfg.Mouse = to
		a.say(themes.Info, "mouse "+string(to))
		return nil
	}}
}
