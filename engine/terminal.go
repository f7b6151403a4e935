package engine

import (
	"context"
	"io"
	"iter"
	"time"
)

// Terminals are interactive programs that outlive whoever looks at them. One
// is a [Process] of kind [Interactive]: [OpenTerminal] opens it, [KillProcess]
// closes it, its exit is told by events, and what it prints is its log, with
// positions like any other. Any number of viewers may be attached; a slow one
// stalls neither the program nor another viewer.
type Terminals interface {
	// AttachTerminal is one viewer's way to a terminal, until it is closed.
	AttachTerminal(ctx context.Context, id ProcessID, how Attachment) (Terminal, error)
	// Recording yields what a terminal printed, as far as it is kept, and its
	// sizes, in order and with their times: to the millisecond if it was opened
	// to be recorded, else to about a second. It doesn't wait for more.
	Recording(ctx context.Context, id ProcessID) iter.Seq2[Recorded, error]
}

// Terminal is an attached viewer. Read gives what the program prints, raw and
// hostile, and io.EOF when the program has ended: its exit is in its row then.
// Write types. Closing detaches; the program goes on.
type Terminal interface {
	io.ReadWriteCloser
	// Resize says how large this viewer's window is now. The program sees the
	// smallest of all its viewers' windows; a zero size doesn't count (a window
	// that nobody looks at), and that of a viewer counts until it detaches. A
	// late word can only undo what this viewer said itself.
	Resize(size TermSize) error
	// Position is that of what Read gives next: what to attach from after a
	// cut. It is [FromScreen] while a screen is being given.
	Position() LogPosition
}

// Attachment is how to attach to a terminal.
type Attachment struct {
	// From is where to begin: a position, or [FromScreen].
	From LogPosition
	// Live: a viewer that falls far behind is given the screen as it then is,
	// instead of all that led there. Without it every byte is given, and what
	// fell off before it was read is a [Compacted] error.
	Live bool
	// Size is that of the viewer's window; zero: it doesn't count.
	Size TermSize
	// Watch: this viewer types nothing and has no say in the size. Viewers by
	// role can do no other.
	Watch bool
}

// FromScreen begins with what puts the screen as it is now on a terminal: its
// text, colours, cursor and modes.
const FromScreen LogPosition = -1

// TermSize is a terminal's size in cells.
type TermSize struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// The sizes that a terminal can have, and has where nobody says.
const (
	MaxTermCols = 1000
	MaxTermRows = 500
)

// DefaultTermSize is that of a terminal nobody has looked at yet.
var DefaultTermSize = TermSize{Cols: 80, Rows: 24}

// Zero reports whether the size is unknown.
func (s TermSize) Zero() bool { return s.Cols == 0 && s.Rows == 0 }

// Check refuses what is no size. Zero is none, and allowed.
func (s TermSize) Check() error {
	if s.Zero() || s.Cols >= 1 && s.Cols <= MaxTermCols && s.Rows >= 1 && s.Rows <= MaxTermRows {
		return nil
	}
	return Errorf(Invalid, "a terminal can't have %d columns and %d rows", s.Cols, s.Rows).
		WithHint("it has 1 to %d columns and 1 to %d rows", MaxTermCols, MaxTermRows)
}

// Least is the smaller of both in each direction; a zero size doesn't count.
func (s TermSize) Least(t TermSize) TermSize {
	switch {
	case s.Zero():
		return t
	case t.Zero():
		return s
	}
	return TermSize{Cols: min(s.Cols, t.Cols), Rows: min(s.Rows, t.Rows)}
}

// TerminalState is what is particular to a process of kind [Interactive].
type TerminalState struct {
	Size TermSize `json:"size"`
	// Title is what the program called its window when it was last looked at,
	// at most [MaxTitle] bytes: hostile until sanitised.
	Title    string `json:"title,omitempty"`
	Recorded bool   `json:"recorded,omitempty"` // see [Terminals.Recording]
	// Viewers is how many are attached now, Used when one last was: attached,
	// and every minute while one is.
	Viewers int       `json:"viewers,omitempty"`
	Used    time.Time `json:"used,omitzero"`
}

// MaxTitle bounds a terminal's title.
const MaxTitle = 256

// Recorded is a moment of a terminal: something that it printed, or a size.
type Recorded struct {
	At     time.Time `json:"at"`
	Output []byte    `json:"output,omitempty"`
	Size   TermSize  `json:"size,omitzero"`
	// Lost is how many bytes before this moment are not kept any more.
	Lost int64 `json:"lost,omitempty"`
}

// OpenShell opens a terminal with the sandbox's shell in it, or command, and
// returns its process as it was accepted: starting. Attach to it from 0.
func OpenShell(ctx context.Context, e Engine, body OpenTerminal) (Process, error) {
	r, err := e.Do(ctx, NewAction(body))
	if err != nil {
		return Process{}, err
	}
	return e.ProcessByID(ctx, r.Process)
}
