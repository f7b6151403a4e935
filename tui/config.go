package tui

import (
	"io"

	"sbx/engine"
)

// Config is what a dashboard needs. Only Engine is required.
type Config struct {
	Engine engine.Engine
	// Name is the engine's, for the title: "local", "prod-eu".
	Name string
	// Where says what is being connected to, on the first frame:
	// "10.0.4.9:7443", or "" for one in this process.
	Where string
	// Quit is what leaving means. Its zero value leaves without asking.
	Quit QuitText
	// ReadOnly is why this client may only look, in words: "your token may only
	// read". "" means that it may act.
	ReadOnly string

	// Me is the owner that "mine" means; "": this process's user.
	Me string

	// Keys are the user's own keys.
	Keys KeysFile
	// Notices are said when the dashboard opens: what of the keys file can't be
	// had.
	Notices []string
	// Open is a sandbox to begin with, by name, id or prefix; Pane is its tab:
	// one of [Panes].
	Open, Pane string

	// Mouse is what the mouse does; "" is MouseOn.
	Mouse Mouse

	// Theme is a theme's name; "" or "auto" follows the terminal's background.
	Theme string
	// ThemeDir holds the user's own themes; "" has none.
	ThemeDir string
	// NoColor draws with attributes only.
	NoColor bool
	// ASCII draws without any character beyond ASCII. It is also chosen when
	// the locale isn't UTF-8.
	ASCII bool
	// Still replaces spinners by signs that don't move.
	Still bool

	// Input and Output are the terminal; nil: this process's.
	Input  io.Reader
	Output io.Writer
	// Environ is the environment that tells the terminal's abilities and the
	// locale; nil: this process's.
	Environ []string
}

// QuitText is what leaving the dashboard does to the engine, in the words of
// whoever opened it. With no Title, leaving asks nothing.
type QuitText struct {
	Title string   // "Leave sbx?"
	Body  []string // what runs here, and who is attached
	Leave string   // what y does: "leave them to a background engine"
	Stop  string   // what s does: "stop them"; "": not offered
}

// Choice is what the person who left wants to become of the engine.
type Choice string

// The choices. Whoever leaves by ctrl+C twice, or by the end of the context,
// has chosen nothing: no sandbox is ever stopped by closing a window.
const (
	Unasked      Choice = ""
	LeaveRunning Choice = "leave"
	StopAll      Choice = "stop"
)
