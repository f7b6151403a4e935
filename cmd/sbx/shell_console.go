package main

import (
	"os"
	"sync"

	"github.com/charmbracelet/x/term"

	"sbx/engine"
)

// A console is the operator's own terminal. Raw hands its keys on as they are;
// whoever makes it raw restores it on every way out.
type console struct {
	in, out *os.File

	mu    sync.Mutex
	saved *term.State // nil: it is as it was
}

// console is the terminal that this command was started on.
func (c *cli) console() (*console, error) {
	in, okIn := c.in.(*os.File)
	out, okOut := c.out.(*os.File)
	if !okIn || !okOut || !isTerminal(in) || !isTerminal(out) {
		return nil, usagef("sbx shell needs a terminal for its input and output: without one, run a command with sbx exec, or feed one with sbx attach")
	}
	return &console{in: in, out: out}, nil
}

// size is that of its window; an unknown one is zero.
func (k *console) size() engine.TermSize {
	cols, rows, err := term.GetSize(k.out.Fd())
	if err != nil || cols < 1 || rows < 1 {
		return engine.TermSize{}
	}
	return engine.TermSize{Cols: min(cols, engine.MaxTermCols), Rows: min(rows, engine.MaxTermRows)}
}

func (k *console) raw() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	saved, err := term.MakeRaw(k.in.Fd())
	if err != nil {
		return err
	}
	k.saved = saved
	return nil
}

// restore puts it back as it was, without the keys that nobody has read:
// answers to what a program asked among them, which a shell would take for
// commands. Restoring again does nothing.
func (k *console) restore() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.saved == nil {
		return
	}
	_ = flushInput(k.in)                 // what can't be flushed is read
	_ = term.Restore(k.in.Fd(), k.saved) // there is no other way to try
	k.saved = nil
}
