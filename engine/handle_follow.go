package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// linger is how long the streams of a process that has ended may take to end.
// They do at once, unless somebody else holds them open: a server that a
// command left in the background would make it last for ever. Then what was
// written until now is read, and no more.
const linger = 200 * time.Millisecond

// follow reads both streams and the journal until the process is over. It
// reports false if its end isn't known.
//
//	journal ─► running ─► over ─┬─ streams end ──────────────────┐
//	                            └─ linger ─► read what is there ─┴─► done
func (h *Handle) follow(ctx context.Context, pos Position) bool {
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	var (
		wg   sync.WaitGroup
		errs [2]error
	)
	for i, stream := range []Stream{Stdout, Stderr} {
		if !h.wants(stream) {
			continue
		}
		wg.Go(func() {
			if errs[i] = h.read(ctx, following, stream); errs[i] != nil {
				unwatch()
			}
		})
	}
	p, err := untilOver(watching, h.e, h.id, pos, h.see)
	if err == nil {
		h.see(p)
		defer time.AfterFunc(linger, unfollow).Stop()
	} else {
		unfollow()
	}
	wg.Wait()
	h.input.hangUp()
	if lost := errors.Join(errs[0], errs[1]); lost != nil && ctx.Err() == nil {
		err = lost
	}
	h.settle(err)
	return err == nil
}

// see takes note of the row. Rows may come twice.
func (h *Handle) see(p Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.row.State.Over() {
		h.row = p
	}
	if p.PID != 0 {
		h.pid = p.PID
	}
	if p.PID != 0 || p.State.Over() {
		closeOnce(h.running)
	}
}

// settle says that there is nothing more to know, or why.
func (h *Handle) settle(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = errors.Join(h.failed, err)
	closeOnce(h.running)
}

// closeOnce closes what only the holder of the handle's mu closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// wants reports whether anybody wants to know what a stream says.
func (h *Handle) wants(stream Stream) bool {
	if stream == Stderr && h.kind == Interactive {
		return false // a terminal's has its sizes
	}
	if stream == Stdout && h.options.OnStdout != nil || stream == Stderr && h.options.OnStderr != nil {
		return true
	}
	return h.options.Keep > 0
}

// read reads a stream to its end, or to where it is when following ends.
func (h *Handle) read(ctx, following context.Context, stream Stream) error {
	q := LogQuery{Sandbox: h.sandbox, Process: string(h.id), Stream: stream, Follow: true}
	err := h.lines(following, &q, -1)
	if following.Err() == nil || ctx.Err() != nil {
		return err
	}
	end, err := LogEnd(ctx, h.e, h.sandbox, h.id, stream)
	if err != nil || q.After >= end {
		return err
	}
	q.Follow = false
	return h.lines(ctx, &q, end)
}

// lines hands over what a query finds, and leaves it at what comes next. With
// an end, it reads no further.
func (h *Handle) lines(ctx context.Context, q *LogQuery, end LogPosition) error {
	for line, err := range h.e.Logs(ctx, *q) {
		if err != nil {
			return err
		}
		h.take(q.Stream, line)
		q.After = line.Next
		if end >= 0 && q.After >= end {
			return nil
		}
	}
	return nil
}

func (h *Handle) take(stream Stream, line LogLine) {
	h.mu.Lock()
	into, call := &h.out, h.options.OnStdout
	if stream == Stderr {
		into, call = &h.err, h.options.OnStderr
	} else {
		h.outPosition = line.Next
	}
	into.add(line)
	h.mu.Unlock()
	if call == nil {
		return
	}
	h.calls.Lock()
	defer h.calls.Unlock()
	call(line)
}
