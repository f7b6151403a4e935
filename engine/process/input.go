package process

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// Input is a live command's stdin. Many may hold it: what each writes stays in
// one piece, and one comes after another.
type Input struct {
	id   engine.ProcessID
	w    io.WriteCloser
	turn chan struct{} // held while writing: the deadline is the writer's own
	// life ends when the process does.
	life context.Context
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool
}

func newInput(id engine.ProcessID, w io.WriteCloser) *Input {
	life, end := context.WithCancel(context.Background())
	return &Input{id: id, w: w, turn: make(chan struct{}, 1), life: life, end: end}
}

// Write is WriteContext without an end.
func (in *Input) Write(b []byte) (int, error) { return in.WriteContext(context.Background(), b) }

// WriteContext writes all of b, and waits while the process doesn't read, until
// ctx or the process ends. What has exited or closed its input is a Conflict.
func (in *Input) WriteContext(ctx context.Context, b []byte) (int, error) {
	if err := in.over(); err != nil {
		return 0, err
	}
	select {
	case in.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-in.life.Done():
		return 0, in.over()
	}
	defer func() { <-in.turn }()
	release := in.bound(ctx)
	n, err := in.w.Write(b)
	release()
	switch {
	case err == nil:
		return n, nil
	case in.over() != nil:
		return n, in.over()
	case ctx.Err() != nil:
		return n, context.Cause(ctx)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, os.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return n, engine.Errorf(engine.Conflict, "process %s has closed its input", in.id)
	}
	return n, err
}

// bound makes a write that waits return when ctx or the process ends. release
// undoes that, and leaves nothing of it to the next writer.
func (in *Input) bound(ctx context.Context) (release func()) {
	w, ok := in.w.(interface{ SetWriteDeadline(time.Time) error })
	if !ok {
		return func() {} // then only the end of the process releases it
	}
	// A writer that can't have one has no other way either.
	interrupt := func() { _ = w.SetWriteDeadline(time.Unix(1, 0)) }
	both, cancel := context.WithCancel(ctx)
	stopLife := context.AfterFunc(in.life, cancel)
	done := make(chan struct{})
	stop := context.AfterFunc(both, func() {
		defer close(done)
		interrupt()
	})
	return func() {
		stopLife()
		if !stop() {
			<-done
			_ = w.SetWriteDeadline(time.Time{})
		}
		cancel()
	}
}

// over is why nothing can be written any more.
func (in *Input) over() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.life.Err() != nil:
		return engine.Errorf(engine.Conflict, "process %s has exited", in.id)
	case in.closed:
		return engine.Errorf(engine.Conflict, "the input of process %s is closed", in.id)
	}
	return nil
}

// Close ends the process's stdin, for all who hold it. Closing it again does
// nothing more.
func (in *Input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || in.life.Err() != nil {
		return nil
	}
	in.closed = true
	return in.w.Close()
}

// Input is the stdin of a live command that was spawned with one.
func (s *Supervisor) Input(id engine.ProcessID) (*Input, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.actors[id]
	switch {
	case a == nil || a.exited:
		return nil, engine.Errorf(engine.Conflict, "process %s has exited", id)
	case a.proc == nil:
		return nil, engine.Errorf(engine.Unavailable, "process %s is not running yet", id).After(50 * time.Millisecond)
	case a.input == nil:
		return nil, engine.Errorf(engine.Conflict, "process %s reads no input", id).WithHint("spawn it with stdin")
	}
	return a.input, nil
}

// begun remembers a process that lives. The caller holds mu.
func (a *actor) begun(p driver.Proc) {
	a.proc, a.exited = p, false
	if w := p.Input(); w != nil {
		a.input = newInput(a.id, w)
	}
}

// clear forgets a process that has ended.
func (a *actor) clear() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.input != nil {
		a.input.end()
	}
	a.proc, a.input, a.exited = nil, nil, true
}

// Resize gives the terminal of a live process a size.
func (s *Supervisor) Resize(ctx context.Context, id engine.ProcessID, size engine.TermSize) error {
	s.mu.Lock()
	var proc driver.Proc
	if a := s.actors[id]; a != nil {
		proc = a.proc
	}
	s.mu.Unlock()
	if proc == nil {
		return engine.Errorf(engine.Conflict, "process %s is not running", id)
	}
	return proc.Resize(ctx, size)
}
