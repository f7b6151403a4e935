package local

import (
	"context"
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
func (e *Engine) AttachTerminal(ctx context.Context, id engine.ProcessID, how engine.Attachment) (engine.Terminal, error) {
	p, err := e.ProcessByID(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case p.Kind != engine.Interactive:
		return nil, engine.Errorf(engine.Invalid, "%s has no terminal", id).WithHint("attach to its output with: sbx attach %s", id)
	case how.From < 0 && how.From != engine.FromScreen:
		return nil, engine.Errorf(engine.Invalid, "%d is no position in a log", how.From)
	}
	if err := how.Size.Check(); err != nil {
		return nil, err
	}
	if how.Watch {
		how.Size = engine.TermSize{}
	}
	h, err := e.terminals.join(e, p)
	if err != nil {
		return nil, err
	}
	v := &viewer{e: e, hub: h, how: how, id: id, at: how.From, drawing: how.From == engine.FromScreen}
	v.ctx, v.stop = context.WithCancelCause(ctx)
	v.unstop = context.AfterFunc(h.ctx, func() {
		v.stop(engine.Errorf(engine.Unavailable, "the engine is stopping").WithHint("the terminal may go on: attach again"))
	})
	h.put(v, how.Size)
	return v, nil
}
