package local

import (
	"context"
	"io"
	"sync"

	"sbx/engine"
	"sbx/engine/process"
)

// pipe is a spawned process's stdout and stdin.
type pipe struct {
	io.ReadCloser
	e    *Engine
	id   engine.ProcessID
	ctx  context.Context // of the pipe's whole life: io.Writer has no other place for it
	stop context.CancelCauseFunc

	mu sync.Mutex     // held while waiting for the process to run
	in *process.Input // as soon as it does
}

// Pipe is a stream over a spawned process.
func (e *Engine) Pipe(ctx context.Context, id engine.ProcessID, after engine.LogPosition) (engine.Pipe, error) {
	p, err := e.ProcessByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if p.Kind == engine.Interactive {
		return nil, engine.Errorf(engine.Invalid, "%s is a terminal, not a pipe", id).WithHint("attach to it with: sbx shell --attach %s", id)
	}
	if p.Kind != engine.Spawned {
		return nil, engine.Errorf(engine.Invalid, "%s is supervised: its input is closed and its output is its log", p.Name)
	}
	ctx, stop := context.WithCancelCause(ctx)
	out, err := e.logs.Bytes(ctx, id, engine.Stdout, after)
	if err != nil {
		stop(err)
		return nil, err
	}
	return &pipe{ReadCloser: out, e: e, id: id, ctx: ctx, stop: stop}, nil
}

// Write writes to the process's stdin, as soon as it runs.
func (p *pipe) Write(b []byte) (int, error) {
	in, err := p.input()
	if err != nil {
		return 0, err
	}
	return in.WriteContext(p.ctx, b)
}

// CloseInput ends the process's stdin.
func (p *pipe) CloseInput() error {
	in, err := p.input()
	if err != nil {
		return err
	}
	return in.Close()
}

// Close hangs up; the process goes on.
func (p *pipe) Close() error {
	p.stop(io.ErrClosedPipe)
	return p.ReadCloser.Close()
}

func (p *pipe) input() (*process.Input, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := context.Cause(p.ctx); err != nil {
		return nil, err
	}
	if p.in != nil {
		return p.in, nil
	}
	in, err := p.e.input(p.ctx, p.id)
	if err != nil {
		if p.ctx.Err() != nil {
			err = context.Cause(p.ctx)
		}
		return nil, err
	}
	p.in = in
	return in, nil
}

// input is the stdin of a process, as soon as it runs.
func (e *Engine) input(ctx context.Context, id engine.ProcessID) (*process.Input, error) {
	pos, err := e.store.Position(ctx) // before the read, so that no change slips between
	if err != nil {
		return nil, err
	}
	p, err := e.ProcessByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if p.State == engine.ProcessStarting {
		if err := e.untilStarted(ctx, id, pos.Seq); err != nil {
			return nil, err
		}
	}
	return e.procs.Input(id)
}

func (e *Engine) untilStarted(ctx context.Context, id engine.ProcessID, after engine.Seq) error {
	for ev, err := range e.store.Events(ctx, after) {
		if err != nil {
			return err
		}
		switch b := ev.Body.(type) {
		case engine.ProcessChanged:
			if b.Process.ID == id && b.Process.State != engine.ProcessStarting {
				return nil
			}
		case engine.SandboxRemoved:
			if _, err := e.ProcessByID(ctx, id); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
