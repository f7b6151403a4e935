package engine

import (
	"context"
	"io"
	"sync"
)

// inlet is a handle's way to the process's stdin: a pipe that is opened when
// there is something to say, and whose output nobody reads.
type inlet struct {
	open bool // the command was spawned with an input

	turn chan struct{} // held while writing and closing
	pipe Pipe
	wg   sync.WaitGroup

	mu   sync.Mutex
	gone bool
	hang context.CancelFunc // of the pipe
}

// SendStdin writes to the process's stdin, and returns when that was taken on
// its way. A process that has exited, or whose input is closed, is a
// [Conflict]. One that doesn't read makes it wait until ctx ends; how much was
// written then can't be known.
func (h *Handle) SendStdin(ctx context.Context, data []byte) error {
	return h.say(ctx, func(p Pipe) error {
		_, err := p.Write(data)
		return err
	})
}

// CloseStdin ends the process's stdin.
func (h *Handle) CloseStdin(ctx context.Context) error {
	err := h.say(ctx, Pipe.CloseInput)
	if err == nil {
		h.input.mu.Lock()
		defer h.input.mu.Unlock()
		h.input.gone = true
	}
	return err
}

// say does something with the pipe, when it is its turn.
func (h *Handle) say(ctx context.Context, do func(Pipe) error) error {
	in := &h.input
	if !in.open {
		return Errorf(Conflict, "process %s reads no input", h.id).WithHint("spawn it with stdin")
	}
	select {
	case in.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-in.turn }()
	if err := h.connect(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = in.pipe.Close() }) // releases a Write
	err := do(in.pipe)
	if !stop() {
		in.pipe = nil // the next one opens another
		return context.Cause(ctx)
	}
	return err
}

// connect opens the pipe. It stays open for as long as the process runs.
func (h *Handle) connect(ctx context.Context) error {
	h.mu.Lock()
	from, over, failed := h.outPosition, h.row.State.Over(), h.failed
	h.mu.Unlock()
	switch {
	case over:
		return Errorf(Conflict, "process %s has exited", h.id)
	case failed != nil:
		return failed
	}
	in := &h.input
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.gone {
		return Errorf(Conflict, "the input of process %s is closed", h.id)
	}
	if in.pipe != nil {
		return nil
	}
	life, hang := context.WithCancel(context.WithoutCancel(ctx)) // hangUp ends it
	stop := context.AfterFunc(ctx, hang)
	pipe, err := h.e.Pipe(life, h.id, from)
	if !stop() || err != nil {
		hang()
		if err == nil {
			_ = pipe.Close() // nothing was said
			err = context.Cause(ctx)
		}
		return err
	}
	in.pipe, in.hang = pipe, hang
	in.wg.Go(func() { // so that the engine can say that stdin takes no more
		defer hang()
		_, _ = io.Copy(io.Discard, pipe) // it is read elsewhere
		_ = pipe.Close()
	})
	return nil
}

// hangUp ends the pipe for good.
func (in *inlet) hangUp() {
	in.mu.Lock()
	in.gone = true
	if in.hang != nil {
		in.hang()
	}
	in.mu.Unlock()
	in.wg.Wait()
}
