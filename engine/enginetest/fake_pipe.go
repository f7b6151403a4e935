package enginetest

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"sbx/engine"
)

// Pipe is a command's stdout and stdin.
func (f *Fake) Pipe(ctx context.Context, id engine.ProcessID, after engine.LogPosition) (engine.Pipe, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.process(id)
	if err != nil {
		return nil, err
	}
	if p.row.Kind != engine.Spawned {
		return nil, engine.Errorf(engine.Invalid, "%s is supervised", p.row.Name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return &fakePipe{f: f, p: p, ctx: ctx, cancel: cancel, after: int(after)}, nil
}

type fakePipe struct {
	f      *Fake
	p      *proc
	ctx    context.Context
	cancel context.CancelCauseFunc
	after  int
}

func (p *fakePipe) Read(b []byte) (int, error) {
	for {
		p.f.mu.Lock()
		o, wake := &p.p.out, p.f.wake
		n := copy(b, o.data[min(p.after, len(o.data)):])
		ended := o.ended
		p.after += n
		p.f.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		if err := pause(p.ctx, wake); err != nil {
			return 0, context.Cause(p.ctx)
		}
	}
}

func (p *fakePipe) Write(b []byte) (int, error) {
	if err := p.refuse(); err != nil {
		return 0, err
	}
	select {
	case p.p.turn <- struct{}{}:
	case <-p.ctx.Done():
		return 0, context.Cause(p.ctx)
	}
	defer func() { <-p.p.turn }()
	in, released := p.p.input, make(chan struct{})
	stop := context.AfterFunc(p.ctx, func() {
		defer close(released)
		_ = in.SetWriteDeadline(time.Unix(1, 0)) // what is closed has no need of it
	})
	n, err := in.Write(b)
	if !stop() {
		<-released
		_ = in.SetWriteDeadline(time.Time{}) // the next writer's is its own
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE):
		return n, engine.Errorf(engine.Conflict, "the command's input is closed")
	case p.ctx.Err() != nil:
		return n, context.Cause(p.ctx)
	}
	return n, err
}

// refuse is why nothing can be written.
func (p *fakePipe) refuse() error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	switch {
	case p.ctx.Err() != nil:
		return context.Cause(p.ctx)
	case p.p.row.State.Over():
		return engine.Errorf(engine.Conflict, "the command has exited")
	case p.p.input == nil:
		return engine.Errorf(engine.Conflict, "the command reads no input")
	}
	return nil
}

func (p *fakePipe) CloseInput() error {
	if err := p.refuse(); err != nil {
		return err
	}
	if err := p.p.input.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (p *fakePipe) Close() error {
	p.cancel(io.ErrClosedPipe)
	return nil
}
