package tui

import (
	"fmt"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
)

// tab is one view of a sandbox.
type tab int

const (
	tabOverview tab = iota
	tabHealer
	tabLogs
	tabFiles
	tabTerminal
	tabChat
)

// Panes are the names of a sandbox's tabs, in their order.
func Panes() []string { return []string{"overview", "healer", "logs", "files", "terminal", "chat"} }

// pane is what a tab shows. show begins looking at a sandbox, hide ends it and
// whatever it had running.
type pane interface {
	Component
	show(id engine.SandboxID) tea.Cmd
	hide()
}

// tabEntry is a tab in the registry: a new one is a line in newSandbox.
type tabEntry struct {
	tab   tab
	key   key.Binding
	title string
	pane  pane
}

// sandbox is the screen of one sandbox: its tabs, one of which shows.
type sandbox struct {
	w    *world
	id   engine.SandboxID
	tab  tab
	tabs []tabEntry
}

func newSandbox(w *world, c *commands, acts []action) *sandbox {
	return &sandbox{w: w, tabs: []tabEntry{
		{tabOverview, w.keys.Overview, "Overview", newOverview(w, c, acts)},
		{tabHealer, w.keys.Healer, "Healer", newHealer(w, c)},
		{tabLogs, w.keys.Logs, "Logs", newLogs(w, c)},
		{tabFiles, w.keys.Files, "Files", newFiles(w, c)},
		{tabTerminal, w.keys.Terminal, "Terminal", newTermPane(w, c)},
		{tabChat, w.keys.Chat, "Chat", newChat(w, c)},
	}}
}

func (s *sandbox) pane() pane { return s.tabs[s.tab].pane }

// show looks at a sandbox's tab.
func (s *sandbox) show(id engine.SandboxID, t tab) tea.Cmd {
	s.pane().hide()
	s.id, s.tab = id, t
	return s.pane().show(id)
}

func (s *sandbox) hide() { s.pane().hide() }

// Typing reports whether the tab that shows wants plain keys.
func (s *sandbox) Typing() bool { return typing(s.pane()) }

// ShortHelp are the keys of the tab that shows.
func (s *sandbox) ShortHelp() []key.Binding {
	k := s.w.keys
	if s.Typing() {
		return s.pane().ShortHelp()
	}
	return append(s.pane().ShortHelp(), bind(k.Overview.Help().Key+"-"+k.Chat.Help().Key, "tabs"), bind(k.PrevBox.Help().Key+" "+k.NextBox.Help().Key, "sandbox"), k.Problem, as(k.Back, "fleet"))
}

// FullHelp are those of the tab that shows.
func (s *sandbox) FullHelp() [][]key.Binding { return s.pane().FullHelp() }

// SetSize is the size of every tab.
func (s *sandbox) SetSize(width, height int) {
	for _, t := range s.tabs {
		t.pane.SetSize(width, height)
	}
}

// Update hands a message to the tab that shows.
func (s *sandbox) Update(msg tea.Msg) tea.Cmd { return s.pane().Update(msg) }

// View is the tab that shows, or what became of the sandbox.
func (s *sandbox) View() string { return s.pane().View() }

// head is the line of tabs, and how the sandbox is.
func (s *sandbox) head(width int, drawn func(t tab, p *draw.Pen, from int)) string {
	p := s.w.pen(width)
	for _, t := range s.tabs {
		from := p.Left()
		label := fmt.Sprintf(" %s %s ", t.key.Help().Key, t.title)
		if t.tab == s.tab {
			p.Put(themes.BadgeNav, label)
			continue
		}
		p.Gap(1).Put(themes.Key, t.key.Help().Key).Gap(1).Put(themes.Text, t.title).Gap(1)
		drawn(t.tab, p, from)
	}
	sb, ok := s.w.sandbox(s.id)
	if !ok {
		return p.Ends(themes.Error, "this sandbox was removed ").String()
	}
	h, life := healthSign(s.w.glyphs, sb), lifeSign(s.w.glyphs, sb.State)
	if sb.Health == engine.Healing {
		h.glyph = s.w.spinner()
		if r, ok := s.w.run(s.id); ok && r.Attempt > 0 {
			h.word += fmt.Sprintf(" %d/%d", r.Attempt, r.MaxAttempts)
		}
	}
	healthText, lifeText := h.glyph+" "+h.word, life.glyph+" "+life.word
	rest := first(sb.Owner, string(sb.ID))
	if width >= wideWidth {
		rest += " · { } other sandboxes"
	}
	need := draw.Width(healthText) + draw.Width(lifeText) + draw.Width(rest) + 7
	if need > p.Left() {
		rest, need = "", need-draw.Width(rest)
	}
	p.To(need).Put(h.role, " "+healthText+" ").Gap(1).Put(life.role, lifeText).Gap(2).Put(themes.Muted, rest)
	return p.String()
}
