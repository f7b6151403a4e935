package tui

import (
	"fmt"
	"slices"
	"strings"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/clean"
	"sbx/tui/draw"
)

// View is the terminal's screen under a title that says where keys go.
func (t *termPane) View() string {
	p := &panel{w: t.w, width: t.width, height: t.height}
	title, note, role := t.title()
	p.title(title, note, role, true)
	if t.viewer == nil {
		t.none(p)
		return p.text()
	}
	for _, l := range t.viewer.screen.Lines(t.width, t.height-1, t.back) {
		p.put(l)
	}
	return p.text()
}

func (t *termPane) title() (title, note string, role themes.Role) {
	list := t.open()
	sb, _ := t.w.sandbox(t.id)
	title, role = "Terminal", themes.Muted
	if i := slices.IndexFunc(list, func(p engine.Process) bool { return p.ID == t.current }); i >= 0 {
		title = fmt.Sprintf("Terminal %d of %d", i+1, len(list))
		if s := list[i].Terminal; s != nil && s.Title != "" {
			title += " · " + clean.Cut(clean.Line(s.Title), 40)
		}
	}
	leave := t.w.keys.LeaveTerm.Help().Key
	switch {
	case t.typing:
		return title + " — every key goes to " + sb.Name, leave + " leaves", themes.Error
	case t.w.link.state == lost:
		return title, "engine unreachable; the shell keeps running there", themes.Warning
	case t.viewer == nil:
		return title, "", role
	case t.over():
		return title, t.how() + " · Enter starts a new shell · " + t.w.keys.CloseTerm.Help().Key + " closes", themes.Warning
	case t.viewer.screen.Fell():
		return title, "what it printed can't be drawn; sbx shell shows it", themes.Error
	case t.back > 0:
		return title, fmt.Sprintf("%s up of %d · G end", plural(t.back, "line"), t.viewer.screen.Back()), themes.Accent
	case sb.Health == engine.Healing:
		return title, "the healer works here; typing doesn't abort it", themes.Warning
	}
	return title, t.w.keys.Type.Help().Key + " types", role
}

// how is how the program ended.
func (t *termPane) how() string {
	if p, ok := t.w.snap.Processes[t.current]; ok && p.Exit != nil {
		return p.Exit.String()
	}
	return "ended"
}

// none is the tab without a terminal: why, and the way on.
func (t *termPane) none(p *panel) {
	p.blank()
	line := func(role themes.Role, text string) {
		for _, l := range draw.Wrap(text, min(96, t.width-4), 4) {
			p.add(p.pen().Gap(2).Put(role, l))
		}
	}
	sb, _ := t.w.sandbox(t.id)
	switch {
	case t.opening:
		line(themes.Muted, "opening a shell…")
	case t.err != nil:
		line(themes.Error, t.err.Error())
		if hint := engine.Hint(t.err); hint != "" {
			line(themes.Muted, hint)
		}
		p.add(p.pen().Gap(2).Put(themes.Key, t.w.keys.Retry.Help().Key).Put(themes.Text, " tries again"))
	case !sb.State.Live():
		line(themes.Text, fmt.Sprintf("%s since %s · %s starts it", sb.State, stamp(t.w.now, sb.StateChanged), t.w.keys.Stop.Help().Key))
	default:
		line(themes.Text, "No terminal is open here.")
		p.add(p.pen().Gap(2).Put(themes.Key, t.w.keys.Type.Help().Key).Put(themes.Text, "  opens a shell in the sandbox; it goes on when you look elsewhere or leave"))
		p.add(p.pen().Gap(2).Put(themes.Muted, "the same in a shell: "+strings.TrimSpace("sbx shell "+quoted(sb.Name))))
	}
}
