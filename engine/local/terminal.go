package local

import (
	"context"
	"iter"
	"strings"

	"sbx/engine"
)

// userShell runs the shell that the driver says is the user's.
const userShell = `exec "${SHELL:-/bin/sh}"`

// openTerminal writes the row of a terminal; the supervisor opens it.
func openTerminal(by engine.Actor, b engine.OpenTerminal) (effect, error) {
	if strings.TrimSpace(b.Command.Shell) == "" {
		b.Command.Shell = userShell
	}
	if b.Size.Zero() {
		b.Size = engine.DefaultTermSize
	}
	if b.Name != "" {
		if err := engine.CheckName(b.Name); err != nil {
			return nil, err
		}
	}
	if b.Command.Timeout != 0 {
		return nil, engine.Errorf(engine.Invalid, "a terminal has no timeout").WithHint("run it with: sbx exec --timeout")
	}
	if err := b.Size.Check(); err != nil {
		return nil, err
	}
	if err := checkCommand(b.Command); err != nil {
		return nil, err
	}
	return once(engine.Process{
		Sandbox: b.Sandbox, Kind: engine.Interactive, Name: b.Name, Command: b.Command, By: by,
		Terminal: &engine.TerminalState{Size: b.Size, Recorded: b.Record},
	}), nil
}

// AttachTerminal attaches a viewer.
func (e *Engine) AttachTerminal(context.Context, engine.ProcessID, engine.Attachment) (engine.Terminal, error) {
	return nil, engine.Errorf(engine.Unavailable, "terminals are not there yet")
}

// Recording yields what a terminal printed.
func (e *Engine) Recording(context.Context, engine.ProcessID) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) {
		yield(engine.Recorded{}, engine.Errorf(engine.Unavailable, "terminals are not there yet"))
	}
}
