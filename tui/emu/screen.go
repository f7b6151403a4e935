// Package emu draws what a program prints on a terminal into lines that are
// safe to show, and spells keys as such a program expects them.
//
// The one rule: what is printed is hostile. It reaches the screen as cells with
// colours and nothing else: no link, no title, no answer to a question.
package emu

import (
	"io"
	"strings"
	"sync"
	"unicode"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Scrollback is how many lines above the screen are kept.
const Scrollback = 1000

// Screen is a terminal's screen. Its methods may be called from anywhere.
type Screen struct {
	drained chan struct{}
	answers io.Closer

	mu    sync.Mutex
	vt    *vt.Emulator
	modes map[ansi.Mode]bool
	shown bool // the cursor
	bells int
	fell  bool // the emulator panicked: what it shows is not to be trusted
}

// NewScreen is an empty screen of that size. Close it.
func NewScreen(cols, rows int) *Screen {
	s := &Screen{drained: make(chan struct{}), modes: map[ansi.Mode]bool{}, shown: true}
	s.vt = vt.NewEmulator(max(1, cols), max(1, rows))
	s.vt.SetScrollbackSize(Scrollback)
	s.vt.SetCallbacks(vt.Callbacks{
		EnableMode:       func(m ansi.Mode) { s.modes[m] = true },
		DisableMode:      func(m ansi.Mode) { delete(s.modes, m) },
		CursorVisibility: func(on bool) { s.shown = on },
		Bell:             func() { s.bells++ },
	})
	s.answers, _ = s.vt.InputPipe().(io.Closer)
	go func() { // ends with Close; it answers questions through a pipe, and waits until that is read
		defer close(s.drained)
		_, _ = io.Copy(io.Discard, s.vt)
	}()
	return s
}

// Close ends what the screen runs.
func (s *Screen) Close() {
	if s.answers != nil {
		_ = s.answers.Close() // of a pipe
		<-s.drained
	}
}

// Write draws what the program printed.
func (s *Screen) Write(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fell {
		return
	}
	defer func() {
		if recover() != nil { // of a library, over hostile bytes
			s.fell = true
		}
	}()
	_, _ = s.vt.Write(p) // it never fails while open
}

// Resize changes the size.
func (s *Screen) Resize(cols, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cols > 0 && rows > 0 && (cols != s.vt.Width() || rows != s.vt.Height()) {
		s.vt.Resize(cols, rows)
	}
}

// Is reports whether the program has set a mode.
func (s *Screen) Is(m ansi.Mode) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.modes[m]
}

// Fell reports whether the screen could not be drawn any further.
func (s *Screen) Fell() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fell
}

// Cursor is where the cursor is; ok is false while the program hides it.
func (s *Screen) Cursor() (x, y int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.vt.CursorPosition()
	return at.X, at.Y, s.shown
}

// Back is how many lines there are above the screen.
func (s *Screen) Back() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.ScrollbackLen()
}

// Lines are height lines of exactly width cells, back lines above the screen's
// end.
func (s *Screen) Lines(width, height, back int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, 0, height)
	back = max(0, min(back, s.vt.ScrollbackLen()))
	for y := range height {
		at := y - back
		lines = append(lines, drawLine(width, s.cells(at)))
	}
	return lines
}

// Text is everything: what is above the screen, and the screen.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for y := -s.vt.ScrollbackLen(); y < s.vt.Height(); y++ {
		cell := s.cells(y)
		var line strings.Builder
		for x := range s.vt.Width() {
			if c := cell(x); c != nil && c.Width > 0 {
				line.WriteString(safe(c.Content, c.Width))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// cells are those of a line; negative ones lie above the screen.
func (s *Screen) cells(y int) func(x int) *uv.Cell {
	switch {
	case y < 0:
		at := s.vt.ScrollbackLen() + y
		return func(x int) *uv.Cell { return s.vt.ScrollbackCellAt(x, at) }
	case y >= s.vt.Height():
		return func(int) *uv.Cell { return nil }
	}
	return func(x int) *uv.Cell {
		if x >= s.vt.Width() {
			return nil
		}
		return s.vt.CellAt(x, y)
	}
}

// drawLine draws cells with their colours; a wide one that doesn't fit is left
// out.
func drawLine(width int, cell func(x int) *uv.Cell) string {
	var b strings.Builder
	var pen uv.Style
	for x := 0; x < width; {
		c := cell(x)
		if c == nil || c.Width <= 0 || x+c.Width > width {
			c = &uv.EmptyCell
		}
		if !c.Style.Equal(&pen) {
			b.WriteString(ansi.ResetStyle)
			if !c.Style.IsZero() {
				b.WriteString(c.Style.String())
			}
			pen = c.Style
		}
		b.WriteString(safe(c.Content, c.Width))
		x += c.Width
	}
	if !pen.IsZero() {
		b.WriteString(ansi.ResetStyle)
	}
	return b.String()
}

// mostMarks is how many combining marks one cell may carry.
const mostMarks = 8

// safe is a cell's content, if that is one character of that width; else blanks.
func safe(content string, width int) string {
	n := 0
	for _, r := range content {
		if !unicode.IsPrint(r) && !unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) {
			return strings.Repeat(" ", width)
		}
		n++
	}
	if n == 0 || n > mostMarks+1 || ansi.StringWidth(content) != width || ansi.StringWidthWc(content) != width {
		return strings.Repeat(" ", width)
	}
	return content
}
