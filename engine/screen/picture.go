package screen

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/vt"

	"sbx/engine"
)

// A Piece is what was printed on a terminal while it had one size.
type Piece struct {
	Size   engine.TermSize
	Output []byte
}

// Picture is what shows, on a terminal of the last piece's size, what the
// pieces left on one that had the modes before: text, colours, cursor, and the
// modes now. It first clears what is there.
func Picture(before, now Modes, pieces []Piece) []byte {
	size := engine.DefaultTermSize
	if len(pieces) > 0 {
		size = pieces[len(pieces)-1].Size
	}
	rows, col, row := draw(before, pieces)
	var b bytes.Buffer
	begin, after := now.restore()
	// Another screen may be on the viewer's terminal from before a cut.
	b.WriteString("\x1b[!p\x1b[?1049l" + begin + "\x1b[r\x1b[m\x1b(B\x1b)B\x0f\x1b[H\x1b[2J")
	for y, line := range rows {
		if y < size.Rows && line != "" {
			fmt.Fprintf(&b, "\x1b[%dH%s\x1b[m", y+1, line)
		}
	}
	if now.Title != "" {
		fmt.Fprintf(&b, "\x1b]2;%s\x1b\\", printable(now.Title))
	}
	b.WriteString(after)
	if now.is(6) { // positions count from the top of the region
		row = max(0, row-top(now.region))
	}
	fmt.Fprintf(&b, "\x1b[%d;%dH", row+1, col+1)
	return b.Bytes()
}

func top(region string) int {
	n := 0
	if _, err := fmt.Sscanf(region, "%d", &n); err != nil || n < 1 {
		return 0
	}
	return n - 1
}

// printable is s without what could act on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// draw draws pieces, and returns the lines and where the cursor is.
func draw(before Modes, pieces []Piece) (lines []string, col, row int) {
	if len(pieces) == 0 {
		return nil, 0, 0
	}
	first := pieces[0].Size
	emu := vt.NewEmulator(first.Cols, first.Rows)
	emu.SetScrollbackSize(1)
	// It answers questions through a pipe, and waits until that is read.
	answers, _ := emu.InputPipe().(io.Closer)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, emu) // answers go nowhere
	}()
	defer func() {
		if answers != nil {
			_ = answers.Close() // ends the copy
			<-drained
		}
		if p := recover(); p != nil { // of a library, over hostile bytes: an empty screen is better than none
			lines, col, row = nil, 0, 0
		}
	}()
	begin, after := before.restore()
	_, _ = emu.WriteString(begin + after) // it never fails while open
	f := feeder{emu: emu, modes: before.clone()}
	for _, p := range pieces {
		if emu.Width() != p.Size.Cols || emu.Height() != p.Size.Rows {
			emu.Resize(p.Size.Cols, p.Size.Rows)
		}
		f.feed(p.Output)
	}
	at := emu.CursorPosition()
	return strings.Split(emu.Render(), "\n"), at.X, at.Y
}

// A feeder feeds an emulator, and spares it what has scrolled away before
// anybody could see it: lines that were printed plainly, on the main screen.
type feeder struct {
	emu   *vt.Emulator
	modes Modes
	scan  scanner

	run   []byte // text and colours, of which only the end counts
	lines int
	pen   []byte // where the run begins
}

func (f *feeder) feed(p []byte) {
	f.scan.scan(p, func(t token, _ int) {
		run := t.kind == text || t.kind == control && t.raw[len(t.raw)-1] == 'm'
		if run && f.scrolls() {
			if len(f.run) == 0 {
				f.pen = append(f.pen[:0], f.modes.pen...)
			}
			f.run = append(f.run, t.raw...)
			if f.lines += bytes.Count(t.raw, []byte("\n")); f.lines > 4*f.emu.Height() {
				f.shorten()
			}
			f.modes.take(t)
			return
		}
		f.flush()
		f.modes.take(t)
		if !asks(t) {
			_, _ = f.emu.Write(t.raw) // it never fails while open
		}
	})
	f.flush()
}

// scrolls reports whether a line feed at the bottom makes the topmost line go
// for good.
func (f *feeder) scrolls() bool {
	return f.modes.region == "" && !f.modes.insert && !f.modes.Alternate()
}

// shorten keeps the last lines of a run, and the colours of what goes.
func (f *feeder) shorten() {
	keep := 2 * f.emu.Height()
	cut := len(f.run)
	for range keep {
		i := bytes.LastIndex(f.run[:cut], []byte("\r\n"))
		if i < 0 {
			return
		}
		cut = i
	}
	cut += len("\r\n")
	gone := Modes{pen: bytes.Clone(f.pen), shifted: f.modes.shifted}
	var s scanner
	s.scan(f.run[:cut], func(t token, _ int) { gone.take(t) })
	rest := append([]byte(nil), "\r\n\x1b[m"...)
	rest = append(append(rest, gone.pen...), f.run[cut:]...)
	f.run, f.lines = rest, bytes.Count(rest, []byte("\n"))
}

func (f *feeder) flush() {
	if len(f.run) > 0 {
		_, _ = f.emu.Write(f.run) // it never fails while open
	}
	f.run, f.lines = f.run[:0], 0
}

// asks reports whether a token asks the terminal for an answer, or is of no
// use for what it looks like.
func asks(t token) bool {
	switch t.kind {
	case device:
		return true
	case command:
		return bytes.Contains(t.body, []byte("?"))
	case escape:
		return string(t.body) == "Z"
	case control:
		switch t.raw[len(t.raw)-1] {
		case 'c', 'n', 't', 'x':
			return true
		case 'p', 'q', 'u':
			return bytes.ContainsAny(t.body, "$>?")
		}
	}
	return false
}
