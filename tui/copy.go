package tui

import (
	"net/url"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/clean"
)

// copyLimit bounds what is given to the terminal's clipboard: many of them drop
// more than this in silence.
const copyLimit = 64 << 10

// copyMenu offers what can be copied here.
func (a *App) copyMenu() {
	sb, ok := a.w.sandbox(a.selected())
	if !ok {
		a.say(themes.Info, "there is nothing to copy")
		return
	}
	c := newChooser(a.w, "Copy of "+sb.Name)
	offer := func(key, words, text string) {
		if text != "" {
			c.offer(key, words, func() tea.Cmd { return a.copy(words, text) })
		}
	}
	idKey := "y"
	if t, ok := a.pane().(texter); ok {
		line, all := t.texts()
		if line != "" {
			offer("y", "the line", line)
			idKey = "i"
		}
		offer("a", "all of this pane", all)
	}
	offer(idKey, "id  "+string(sb.ID), string(sb.ID))
	offer("n", "name  "+sb.Name, sb.Name)
	link := a.link(sb)
	offer("u", "link  "+link, link)
	cmd := a.shell(sb)
	offer("c", "command  "+cmd, cmd)
	a.show(c)
}

// texter is a pane whose text can be copied and saved: the line that the eye is
// on, if there is one, and all of it.
type texter interface {
	texts() (line, all string)
}

// pane is the tab that shows, or the fleet.
func (a *App) pane() Component {
	switch a.screen {
	case onSandbox:
		return a.sandbox.pane()
	case onIncidents:
		return a.incidents
	}
	return a.fleet
}

func (a *App) copy(words, text string) tea.Cmd {
	text = cleanLines(text)
	if len(text) > copyLimit {
		text = text[len(text)-copyLimit:]
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
		words = "the end of " + strings.TrimPrefix(words, "all of ")
	}
	name, _, _ := strings.Cut(words, "  ")
	if n := strings.Count(text, "\n"); n > 1 {
		name += ", " + plural(n, "line")
	}
	a.say(themes.Info, "copied "+name+" (OSC 52)")
	return tea.SetClipboard(text)
}

// cleanLines is a text with nothing in it that a terminal would obey when it is
// pasted there.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = clean.Line(l)
	}
	return strings.Join(lines, "\n")
}

// link names a sandbox wherever it lives: sbx://host/sb-….
func (a *App) link(sb engine.Sandbox) string {
	host := "local"
	if u, err := url.Parse(a.w.cfg.Where); err == nil && u.Host != "" {
		host = u.Host
	}
	return "sbx://" + host + "/" + string(sb.ID)
}

// shell is the command that shows in a shell what the screen shows.
func (a *App) shell(sb engine.Sandbox) string {
	cmd := "sbx show "
	if a.screen == onSandbox {
		switch a.sandbox.tab {
		case tabHealer:
			cmd = "sbx logs --healer "
		case tabLogs:
			cmd = "sbx logs --follow "
		case tabTerminal:
			cmd = "sbx shell "
		case tabFiles:
			cmd = "sbx files ls "
		case tabChat:
			cmd = "sbx chat --history "
		}
	}
	cmd += quoted(sb.Name)
	if a.w.cfg.Where != "" {
		cmd += " --engine " + quoted(a.w.cfg.Where)
	}
	return cmd
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
