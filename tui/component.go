package tui

import (
	"charm.land/bubbles/v2/help"
	tea "charm.land/bubbletea/v2"
)

// A Component is one part of the screen. It changes in place, never blocks,
// and shows itself at the size it was last given.
type Component interface {
	help.KeyMap
	Update(msg tea.Msg) tea.Cmd
	View() string
	SetSize(width, height int)
}

// A Typist wants plain keys for itself just now: a filter, a search, a name to
// be typed.
type Typist interface{ Typing() bool }

// typing reports whether c is a Typist that types.
func typing(c Component) bool {
	t, ok := c.(Typist)
	return ok && t.Typing()
}
