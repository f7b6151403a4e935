package healer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// killGrace is what a command of a run gets between TERM and KILL: nothing of
// it is to be saved, and a cut run must be over within a second.
const killGrace = 200 * time.Millisecond

// exec runs a command in the box to its end and returns what it wrote, at most
// limit bytes of it. Nothing that it started is left when exec returns. The
// exit's TimedOut is set when it was cut by timeout.
func (h *heal) exec(ctx context.Context, cmd driver.Command, timeout time.Duration, limit int) (string, engine.Exit, error) {
	out := newPipe(limit)
	exit, err := h.execInto(ctx, cmd, timeout, out)
	return out.text(), exit, err
}

// execInto is exec with the output in out. Of both streams: they are one.
func (h *heal) execInto(ctx context.Context, cmd driver.Command, timeout time.Duration, out *pipe) (engine.Exit, error) {
	proc, err := h.box.Start(ctx, engine.ProcessID(engine.NewID(engine.ProcessPrefix)), cmd, out, nil)
	if err != nil {
		return engine.Exit{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	exit, waitErr := proc.Wait(waiting)
	cancel()

	// What the command left behind goes with it, cut or not. Killing has its
	// own time: the caller's may be over.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := proc.Kill(ending, killGrace); err != nil && waitErr == nil {
		waitErr = err
	}
	select {
	case <-out.closed:
	case <-ending.Done(): // a writer that could not be killed; what it wrote so far will do
	}
	switch {
	case ctx.Err() != nil:
		return exit, context.Cause(ctx)
	case errors.Is(waitErr, context.DeadlineExceeded):
		return engine.Exit{Code: engine.ExitTimeout, TimedOut: true}, nil
	}
	return exit, waitErr
}

// pipe keeps the beginning and the end of what is written to it.
type pipe struct {
	limit  int
	closed chan struct{}

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring, once it is full
	next  int
	total int64
	done  bool
}

func newPipe(limit int) *pipe { return &pipe{limit: limit, closed: make(chan struct{})} }

// Write takes all of b; only the first and last limit/2 bytes in all are kept.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	p.total += int64(n)
	half := p.limit / 2
	if room := half - len(p.head); room > 0 {
		take := min(room, len(b))
		p.head = append(p.head, b[:take]...)
		b = b[take:]
	}
	if len(b) > half {
		b = b[len(b)-half:]
	}
	for len(b) > 0 {
		if len(p.tail) < half {
			take := min(half-len(p.tail), len(b))
			p.tail = append(p.tail, b[:take]...)
			b = b[take:]
			continue
		}
		k := copy(p.tail[p.next:], b)
		p.next = (p.next + k) % half
		b = b[k:]
	}
	return n, nil
}

// Close says that nothing more will be written.
func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.done = true
		close(p.closed)
	}
	return nil
}

func (p *pipe) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	b.Write(p.head)
	if left := p.total - int64(len(p.head)) - int64(len(p.tail)); left > 0 {
		b.WriteString(leftOut(left))
	}
	b.Write(p.tail[p.next:])
	b.Write(p.tail[:p.next])
	return b.String()
}

// whole is everything that was written; ok is false if it was more than fits.
func (p *pipe) whole() (string, bool) {
	p.mu.Lock()
	total := p.total
	p.mu.Unlock()
	return p.text(), total <= int64(p.limit)
}
