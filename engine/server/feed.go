package server

import (
	"context"
	"encoding/json"
	"sync"

	"sbx/engine"
)

// ringLimits bound the ring of encoded events.
type ringLimits struct{ events, bytes int }

var defaultRing = ringLimits{events: 8192, bytes: 8 << 20}

// feed is the journal's newest part, read and encoded once for all sockets: a
// thousand screens cost the engine one reader. A socket that is further behind
// than the ring reaches reads the engine itself until it has caught up.
type feed struct {
	limits ringLimits // zero: the default

	mu  sync.Mutex
	tap *tap // nil while nobody listens
}

// tap reads the journal. Its goroutine is its sockets': the last one to leave
// waits for it.
type tap struct {
	limits  ringLimits
	sockets int // guarded by feed.mu
	stop    context.CancelFunc
	done    chan struct{}
	ready   chan struct{} // closed when it knows where the journal is, or has failed

	mu   sync.Mutex
	pos  engine.Position // of the last event read
	ring [][]byte        // the events up to pos, encoded
	size int
	more chan struct{} // closed by the next event
	err  error         // what ended it
}

func (f *feed) join(ctx context.Context, e engine.Engine) (*tap, func(), error) {
	f.mu.Lock()
	t := f.tap
	if t == nil {
		t = &tap{limits: f.limits, done: make(chan struct{}), ready: make(chan struct{}), more: make(chan struct{})}
		if t.limits == (ringLimits{}) {
			t.limits = defaultRing
		}
		run, stop := context.WithCancel(context.Background())
		t.stop = stop
		f.tap = t
		go f.run(run, t, e)
	}
	t.sockets++
	f.mu.Unlock()
	select {
	case <-t.ready:
		return t, func() { f.leave(t) }, nil
	case <-ctx.Done():
		f.leave(t)
		return nil, nil, ctx.Err()
	}
}

func (f *feed) leave(t *tap) {
	f.mu.Lock()
	t.sockets--
	last := t.sockets == 0
	if last && f.tap == t {
		f.tap = nil
	}
	f.mu.Unlock()
	if last {
		t.stop()
		<-t.done
	}
}

// run reads the journal from now on, until nobody listens or it fails. A
// failed tap serves nobody new.
func (f *feed) run(ctx context.Context, t *tap, e engine.Engine) {
	defer close(t.done)
	err := t.read(ctx, e)
	f.mu.Lock()
	if f.tap == t {
		f.tap = nil
	}
	f.mu.Unlock()
	t.fail(err)
}

func (t *tap) read(ctx context.Context, e engine.Engine) error {
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.pos = snap.Position
	t.mu.Unlock()
	close(t.ready)
	for ev, err := range e.Events(ctx, snap.Position) {
		if err != nil {
			return err
		}
		b, err := json.Marshal(ev)
		if err != nil {
			return engine.Errorf(engine.Internal, "encode event %d: %w", ev.Seq, err)
		}
		if !t.add(ev.Seq, b) {
			return engine.Errorf(engine.Internal, "event %d does not follow the one before", ev.Seq)
		}
	}
	return engine.Errorf(engine.Unavailable, "the journal ended")
}

// add puts the next event into the ring, which counts on there being no gap.
func (t *tap) add(seq engine.Seq, b []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq != t.pos.Seq+1 {
		return false
	}
	t.pos.Seq = seq
	t.ring = append(t.ring, b)
	t.size += len(b)
	for len(t.ring) > t.limits.events || t.size > t.limits.bytes && len(t.ring) > 1 {
		t.size -= len(t.ring[0])
		t.ring[0] = nil // or the array would keep it
		t.ring = t.ring[1:]
	}
	close(t.more)
	t.more = make(chan struct{})
	return true
}

func (t *tap) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	select {
	case <-t.ready:
	default:
		close(t.ready)
	}
	close(t.more)
	t.more = make(chan struct{})
}

// position is that of the newest event.
func (t *tap) position() (engine.Position, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pos, t.err
}

// after appends to items the events after seq, as many as fit one frame.
// behind is not 0 for a reader that the ring has left behind: what it lacks
// ends there. With no events, more is closed when there are some.
func (t *tap) after(seq engine.Seq, items [][]byte) (_ [][]byte, behind engine.Seq, more <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.pos.Seq - engine.Seq(len(t.ring)) // the position before the ring's first event
	if seq < first {
		return items, first, t.more, t.err
	}
	if seq >= t.pos.Seq {
		return items, 0, t.more, t.err
	}
	size := 0
	for _, b := range t.ring[seq-first:] {
		if size += len(b) + 1; size > maxFrame && len(items) > 0 {
			break
		}
		items = append(items, b)
	}
	return items, 0, t.more, nil
}
