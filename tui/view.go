package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sbx/engine"
	"sbx/themes"
)

// View is the whole screen.
func (a *App) View() tea.View {
	v := tea.NewView(a.content())
	v.AltScreen = true
	v.WindowTitle = a.title()
	v.Cursor = a.cursor()
	if a.w.cfg.Mouse != MouseOff {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

func (a *App) content() string {
	a.hits = a.hits[:0]
	switch {
	case a.width <= 0 || a.height <= 0:
		return ""
	case a.layout.small:
		return a.tooSmall()
	}
	parts := []string{a.bar(), a.head(), a.body(), a.status()}
	if a.layout.hints.w > 0 {
		parts = append(parts, a.hints())
	}
	screen := strings.Join(parts, "\n")
	if a.overlay != nil {
		screen = lay(screen, a.overlay.View(), a.width, a.height)
	}
	return screen
}

func (a *App) body() string {
	height := a.layout.status.y - a.layout.main.y
	switch {
	case a.w.snap == nil:
		return a.skeleton(height)
	case a.screen == onSandbox:
		return a.sandbox.View()
	case a.screen == onIncidents:
		return a.incidents.View()
	case len(a.w.fleet.entries) == 0:
		return a.noSandboxes(height)
	}
	main := a.fleet.View()
	l := a.layout
	if l.side.h > 0 && l.side.x == 0 {
		main += "\n" + a.w.inspect(a.fleet.cursor, a.actions, l.side.w, l.side.h)
	}
	if l.strip.h > 0 {
		main += "\n" + a.w.strip(l.strip.w, l.strip.h)
	}
	if l.side.x > 0 {
		main = beside(a.w, main, a.w.inspect(a.fleet.cursor, a.actions, l.side.w, l.side.h))
	}
	return main
}

// skeleton is the first frame: where things will be.
func (a *App) skeleton(height int) string {
	p := &panel{w: a.w, width: a.width, height: height}
	p.add(p.pen().Gap(gutter).Cell(themes.Muted, "HEALTH", 11).Cell(themes.Muted, "LIFE", 10).
		Cell(themes.Muted, "SANDBOX", 18).Put(themes.Muted, "OWNER"))
	for range height - 2 {
		pen := p.pen().Gap(gutter)
		for _, n := range []int{8, 7, 14, 12} {
			pen.Rule(themes.Border, "░", n).Gap(3)
		}
		p.add(pen)
	}
	return p.text()
}

// noSandboxes says what an empty fleet means, and the way on.
func (a *App) noSandboxes(height int) string {
	p := &panel{w: a.w, width: a.width, height: height}
	for range max(0, height/2-6) {
		p.blank()
	}
	line := func(role themes.Role, text string) { p.add(p.pen().Gap(10).Put(role, text)) }
	line(themes.Title, "No sandboxes yet")
	p.blank()
	line(themes.Text, "The engine is running and healthy; nothing has been started.")
	about := a.w.snap.About
	if about.Model == "" {
		line(themes.Warning, "The healer has no model: "+first(about.NoModel, "playbooks only")+".")
	}
	p.blank()
	line(themes.Muted, "from a shell:")
	line(themes.Text, "sbx create --template node")
	line(themes.Text, "sbx create --from ./my-app")
	p.blank()
	p.add(p.pen().Gap(10).Put(themes.Key, "?").Gap(2).Put(themes.Text, "keys").Gap(4).Put(themes.Key, "q").Gap(2).Put(themes.Text, "leave"))
	return p.text()
}

// tooSmall is what there is room for.
func (a *App) tooSmall() string {
	p := &panel{w: a.w, width: a.width, height: a.height}
	g, f := a.w.glyphs, &a.w.fleet
	p.add(p.pen().Put(themes.Title, "sbx "+a.w.cfg.Name))
	p.add(p.pen().Put(themes.Error, fmt.Sprintf("%s%d ", g.Broken, f.health[engine.Broken])).
		Put(themes.HealthHealing, fmt.Sprintf("%s%d ", g.Healing, f.health[engine.Healing])).
		Put(themes.HealthReady, fmt.Sprintf("%s%d", g.Ready, f.health[engine.Ready])))
	p.blank()
	p.add(p.pen().Put(themes.Text, fmt.Sprintf("Needs %d×%d,", leastWidth, leastHeight)))
	p.add(p.pen().Put(themes.Text, fmt.Sprintf("has %d×%d.", a.width, a.height)))
	for len(p.lines) < a.height-1 {
		p.blank()
	}
	p.add(p.pen().Put(themes.Key, "q").Put(themes.Text, " quit"))
	return p.text()
}

// lay puts a box over the middle of the screen.
func lay(screen, box string, width, height int) string {
	lines, over := strings.Split(screen, "\n"), strings.Split(box, "\n")
	if len(over) > height {
		over = over[:height]
	}
	w := ansi.StringWidth(over[0])
	x, y := max(0, (width-w)/2), max(0, (height-len(over))*2/5)
	for i, l := range over {
		if y+i >= len(lines) {
			break
		}
		under := lines[y+i]
		left := ansi.Truncate(under, x, "")
		left += strings.Repeat(" ", x-ansi.StringWidth(left))
		right := ansi.TruncateLeft(under, x+w, "")
		lines[y+i] = left + "\x1b[0m" + l + right
	}
	return strings.Join(lines, "\n")
}

// cursor is the terminal's own, while a program in a sandbox has the keys.
func (a *App) cursor() *tea.Cursor {
	if a.screen != onSandbox || a.sandbox.tab != tabTerminal || a.overlay != nil || a.layout.small {
		return nil
	}
	t := a.terminal()
	if !t.typing || t.viewer == nil {
		return nil
	}
	x, y, ok := t.viewer.screen.Cursor()
	if !ok || x >= t.width || y >= t.height-1 {
		return nil
	}
	return tea.NewCursor(x, a.layout.main.y+1+y)
}
