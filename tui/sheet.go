package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/themes"
	"sbx/tui/draw"
)

// sheet shows messages over the screen, newest first.
type sheet struct {
	w             *world
	title         string
	list          []toast
	top           int
	width, height int
	closed        bool
}

func newSheet(w *world, title string, list []toast) *sheet {
	return &sheet{w: w, title: title, list: list}
}

func (s *sheet) done() bool { return s.closed }

// SetSize is the size of the screen.
func (s *sheet) SetSize(width, height int) { s.width, s.height = width, height }

// ShortHelp are the sheet's keys.
func (s *sheet) ShortHelp() []key.Binding {
	return []key.Binding{bind("j/k", "scroll"), bind("Esc", "close")}
}

// FullHelp are the same.
func (s *sheet) FullHelp() [][]key.Binding { return [][]key.Binding{s.ShortHelp()} }

// Update scrolls and closes.
func (s *sheet) Update(msg tea.Msg) tea.Cmd {
	press, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	k := s.w.keys
	switch {
	case key.Matches(press, k.Down):
		s.top++
	case key.Matches(press, k.Up):
		s.top--
	case key.Matches(press, k.Back, k.Quit, k.Open):
		s.closed = true
	}
	s.top = max(0, min(s.top, len(s.list)-s.room()))
	return nil
}

func (s *sheet) room() int { return max(3, min(20, s.height-6)) }

// View is the box.
func (s *sheet) View() string {
	b := newBox(s.w, min(120, s.width-4), s.title)
	if len(s.list) == 0 {
		b.line(func(p *draw.Pen) { p.Put(themes.Muted, "none yet") })
	}
	for i := s.top; i < min(len(s.list), s.top+s.room()); i++ {
		t := s.list[len(s.list)-1-i]
		for n, l := range draw.Wrap(t.text, b.inner()-10, 3) {
			b.line(func(p *draw.Pen) {
				if n == 0 {
					p.Cell(themes.Muted, clock(t.at), 10)
				} else {
					p.Gap(10)
				}
				p.Put(t.role, l)
			})
		}
	}
	return b.close()
}
