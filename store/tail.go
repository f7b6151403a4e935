package store

import (
	"sync"

	"sbx/engine"
)

// How much of the journal's end is kept in memory.
const (
	tailEvents = 1024
	tailBytes  = 4 << 20
)

// A tail is the end of the journal in memory: readers that are up to date, as
// nearly all are, share it and its decoded events instead of each reading the
// table.
type tail struct {
	mu    sync.Mutex
	last  engine.Seq
	recs  []*record // without a gap, ending with last
	bytes int
	wake  chan struct{} // nil if nobody waits
}

// end is the number of the last event that is committed.
func (t *tail) end() engine.Seq {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// more is closed by the next commit that has events.
func (t *tail) more() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wake == nil {
		t.wake = make(chan struct{})
	}
	return t.wake
}

// after returns the events after a number; ok is false if the tail doesn't
// reach back to it.
func (t *tail) after(seq engine.Seq) (recs []*record, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int(t.last - seq)
	if n < 0 || n > len(t.recs) {
		return nil, false
	}
	// Shared, not copied: publish never changes what it has handed out.
	return t.recs[len(t.recs)-n:], true
}

// publish shows committed events to readers.
func (t *tail) publish(recs []*record) {
	if len(recs) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recs = append(t.recs, recs...)
	t.last = recs[len(recs)-1].seq
	for _, r := range recs {
		t.bytes += len(r.body)
	}
	t.trim()
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// trim forgets the oldest. Cutting off the front leaves it in the array until
// append moves to a new one, which it does soon.
func (t *tail) trim() {
	for len(t.recs) > tailEvents || t.bytes > tailBytes {
		t.bytes -= len(t.recs[0].body)
		t.recs = t.recs[1:]
	}
}
