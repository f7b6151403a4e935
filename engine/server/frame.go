package server

import (
	"context"
	"encoding/json"
	"iter"
	"sync"

	"sbx/engine"
)

// maxFrame is when a frame is sent even though more is there. One event or
// line that is larger travels alone.
const maxFrame = 256 << 10

// frame is {"name":[items…]}, written over buf.
func frame(buf []byte, name string, items [][]byte) []byte {
	buf = append(buf[:0], `{"`...)
	buf = append(buf, name...)
	buf = append(buf, `":[`...)
	for i, it := range items {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, it...)
	}
	return append(buf, "]}"...)
}

// pump sends what seq yields to write, as much at a time as is there, without
// ever waiting for more than one. While write is busy seq may run ahead by a
// frame; then it waits.
func pump[T any](ctx context.Context, seq func(context.Context) iter.Seq2[T, error], write func(items [][]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	box := newOutbox()
	var (
		wg    sync.WaitGroup
		ended error
	)
	wg.Go(func() {
		defer box.close()
		ended = box.fill(ctx, toJSON(seq(ctx)))
	})
	var err error
	for err == nil {
		items, ok := box.take()
		if !ok {
			break
		}
		err = write(items)
	}
	cancel()
	wg.Wait()
	if err != nil {
		return err
	}
	return ended
}

func toJSON[T any](seq iter.Seq2[T, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for v, err := range seq {
			if err != nil {
				yield(nil, err)
				return
			}
			b, err := json.Marshal(v)
			if err != nil {
				err = engine.Errorf(engine.Internal, "encode: %w", err)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// outbox is what was encoded and not yet sent: at most a frame of it.
type outbox struct {
	mu     sync.Mutex
	items  [][]byte
	size   int
	closed bool

	filled, taken chan struct{} // of one place each: something changed
}

func newOutbox() *outbox {
	return &outbox{filled: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

func (o *outbox) fill(ctx context.Context, seq iter.Seq2[[]byte, error]) error {
	for b, err := range seq {
		if err != nil {
			return err
		}
		if err := o.put(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (o *outbox) put(ctx context.Context, b []byte) error {
	for {
		o.mu.Lock()
		room := o.size == 0 || o.size+len(b) <= maxFrame
		if room {
			o.items = append(o.items, b)
			o.size += len(b) + 1
		}
		o.mu.Unlock()
		if room {
			poke(o.filled)
			return nil
		}
		select {
		case <-o.taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take waits until something is there and returns all of it; false when
// nothing will come any more.
func (o *outbox) take() ([][]byte, bool) {
	for {
		o.mu.Lock()
		items, closed := o.items, o.closed
		o.items, o.size = nil, 0
		o.mu.Unlock()
		if len(items) > 0 {
			poke(o.taken)
			return items, true
		}
		if closed {
			return nil, false
		}
		<-o.filled
	}
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	poke(o.filled)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
