package screen

import "unicode/utf8"

// window is how much of what was printed last a picture is made from, if the
// screen wasn't cleared since: what was drawn before that and never again is
// not in it. stride is how far the places are apart that one can begin at.
const (
	window = 256 << 10
	stride = 32 << 10
)

// A Track follows what a terminal prints, from the beginning of what is kept
// of it. The zero value is at position 0. It needs little memory and time:
// nothing is drawn.
type Track struct {
	scan  scanner
	modes Modes
	pos   int64
	// cleared is where all that there was to see was cleared last, on the main
	// screen and on the alternate one; marks are places in the window, oldest
	// first.
	cleared [2]Mark
	marks   []Mark
	began   bool
}

// A Mark is a place in a terminal's output and the modes that it had there.
type Mark struct {
	Position int64
	Modes    Modes
}

// Position is that of what comes next.
func (t *Track) Position() int64 { return t.pos }

// Modes are those that are set now.
func (t *Track) Modes() Modes { return t.modes.clone() }

// Title is what the program calls its window now: hostile.
func (t *Track) Title() string { return t.modes.Title }

// Skip goes on at pos: what lies between was lost.
func (t *Track) Skip(pos int64) {
	if pos <= t.pos {
		return
	}
	t.scan = scanner{}
	t.pos = pos
	t.marks, t.began = nil, false
}

// Write takes what comes next.
func (t *Track) Write(p []byte) {
	from := t.pos
	if !t.began {
		t.began = true
		m := t.mark(t.pos)
		t.cleared = [2]Mark{m, m}
		t.marks = append(t.marks, m)
	}
	t.scan.scan(p, func(tok token, end int) {
		if t.modes.take(tok) {
			// Modes that the clearing sets count for what is drawn after it.
			t.cleared[t.shown()] = t.mark(from + int64(end))
		}
		at := from + int64(end)
		// Not in the middle of a character: the mark begins with text.
		if t.scan.idle() && tok.raw[len(tok.raw)-1] < utf8.RuneSelf && at-t.marks[len(t.marks)-1].Position >= stride {
			t.marks = append(t.marks, t.mark(at))
			if len(t.marks) > window/stride {
				t.marks = append(t.marks[:0], t.marks[1:]...)
			}
		}
	})
	t.pos = from + int64(len(p))
}

func (t *Track) mark(pos int64) Mark { return Mark{Position: pos, Modes: t.modes.clone()} }

// Begin is where to begin to draw the screen as it is now.
func (t *Track) Begin() Mark {
	switch {
	case !t.began:
		return t.mark(t.pos)
	case t.pos-t.cleared[t.shown()].Position <= window:
		return t.cleared[t.shown()]
	}
	return t.marks[0]
}

// shown is the number of the screen that is shown.
func (t *Track) shown() int {
	if t.modes.Alternate() {
		return 1
	}
	return 0
}
