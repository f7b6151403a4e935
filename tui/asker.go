package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sbx/themes"
	"sbx/tui/draw"
)

// showMsg asks for an overlay from a part that can't show one itself.
type showMsg struct{ over overlay }

func showing(o overlay) tea.Cmd { return func() tea.Msg { return showMsg{o} } }

// asker asks for one line of text.
type asker struct {
	w           *world
	title, note string
	input       textinput.Model
	width       int
	closed      bool
	do          func(text string) tea.Cmd
}

func newAsker(w *world, title, note, value string, do func(text string) tea.Cmd) *asker {
	a := &asker{w: w, title: title, note: note, input: textinput.New(), do: do}
	a.input.Prompt = ""
	a.input.SetValue(value)
	a.input.CursorEnd()
	a.input.Focus()
	return a
}

func (a *asker) done() bool { return a.closed }

// Typing is always so.
func (a *asker) Typing() bool { return true }

// SetSize is the size of the screen.
func (a *asker) SetSize(width, _ int) { a.width = width }

// ShortHelp are the asker's keys.
func (a *asker) ShortHelp() []key.Binding {
	return []key.Binding{as(a.w.keys.Open, "do it"), as(a.w.keys.Back, "cancel")}
}

// FullHelp are the same.
func (a *asker) FullHelp() [][]key.Binding { return [][]key.Binding{a.ShortHelp()} }

// Update takes the text.
func (a *asker) Update(msg tea.Msg) tea.Cmd {
	if press, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(press, a.w.keys.Back):
			a.closed = true
			return nil
		case key.Matches(press, a.w.keys.Open):
			text := strings.TrimSpace(a.input.Value())
			if a.closed = text != ""; !a.closed {
				return nil
			}
			return a.do(text)
		}
	}
	a.input, _ = a.input.Update(msg)
	return nil
}

// View is the box.
func (a *asker) View() string {
	b := newBox(a.w, min(dialogWidth, a.width-4), a.title)
	b.line(func(p *draw.Pen) { drawInput(p, a.input.Value(), a.input.Position()) })
	b.line(func(p *draw.Pen) { p.Put(themes.Muted, a.note) })
	return b.close()
}
