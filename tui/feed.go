package tui

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

const (
	// frameGap is how far apart updates are at least: twenty a second.
	frameGap = 50 * time.Millisecond
	// heartbeat is how often samples are asked for.
	heartbeat = time.Second
	// backlog is how much waits for the next frame before the journal's reader
	// has to wait itself. Nothing is dropped: the journal is the queue.
	backlog = 4096
)

// frameMsg is what the engine told since the frame before.
type frameMsg struct {
	snap   *engine.Snapshot // a new beginning; events are those after it
	events []engine.Event
	gauges *engine.Gauges
	lost   bool
	cause  error // of lost; nil: silence
}

// news is one thing that a reader of the engine hands on.
type news struct {
	snap   *engine.Snapshot
	event  engine.Event
	gauges *engine.Gauges
	err    error
}

// feed reads the engine and tells the program, at its pace. It has three
// goroutines: the journal's reader, the gauges' reader and the teller.
type feed struct {
	engine engine.Journal
	send   func(tea.Msg)

	mu   sync.Mutex
	kick chan struct{}              // closed by retry
	cuts map[int]context.CancelFunc // of the readers at work
}

// run feeds until ctx ends, and returns when all it started has ended.
func (f *feed) run(ctx context.Context) {
	ch := make(chan news, backlog)
	var wg sync.WaitGroup
	wg.Go(func() { f.safely(func() { f.tries(ctx, ch, 0, f.journal) }) })
	wg.Go(func() { f.safely(func() { f.tries(ctx, ch, 1, f.gauges) }) })
	f.safely(func() { f.tell(ctx, ch) })
	wg.Wait()
}

// safely runs a part of the feed; if it panics, the program is told.
func (f *feed) safely(part func()) {
	if fell := caught(func() tea.Msg {
		part()
		return nil
	}); fell != nil {
		f.send(fell)
	}
}

// retry cuts the tries under way, which may be waiting themselves, and begins
// new ones at once.
func (f *feed) retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cut := range f.cuts {
		cut()
	}
	if f.kick != nil {
		close(f.kick)
		f.kick = nil
	}
}

// begin is the context of one try of reader i.
func (f *feed) begin(ctx context.Context, i int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cuts == nil {
		f.cuts = map[int]context.CancelFunc{}
	}
	f.cuts[i] = cancel
	return ctx, cancel
}

// pause waits for d, the end of ctx, or retry.
func (f *feed) pause(ctx context.Context, d time.Duration) {
	f.mu.Lock()
	if f.kick == nil {
		f.kick = make(chan struct{})
	}
	kick := f.kick
	f.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-kick:
	case <-timer.C:
	}
}

// tries reads again and again, waiting 1 2 4 8 15 s between failures.
func (f *feed) tries(ctx context.Context, ch chan<- news, i int, read func(context.Context, chan<- news) error) {
	for failed := 0; ctx.Err() == nil; {
		try, cancel := f.begin(ctx, i)
		err := read(try, ch)
		cut := try.Err() != nil
		cancel()
		if cut || errors.Is(err, engine.Compacted) {
			failed = 0
			continue
		}
		wait := backoff(failed)
		failed++
		if !offer(ctx, ch, news{err: engine.AsError(err).After(wait)}) {
			return
		}
		f.pause(ctx, wait)
	}
}

func backoff(failed int) time.Duration {
	steps := []time.Duration{1, 2, 4, 8, 15}
	d := steps[min(failed, len(steps)-1)] * time.Second
	return d - d/5 + rand.N(2*d/5) // ±20 %, so that a hundred dashboards don't knock at once
}

// journal hands on a snapshot and every event after it. A nil error asks for a
// new snapshot.
func (f *feed) journal(ctx context.Context, ch chan<- news) error {
	snap, err := f.engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	pos := snap.Position
	if !offer(ctx, ch, news{snap: snap}) {
		return ctx.Err()
	}
	for ev, err := range f.engine.Events(ctx, pos) {
		if err != nil {
			return err
		}
		if !offer(ctx, ch, news{event: ev}) {
			return ctx.Err()
		}
	}
	return engine.Errorf(engine.Unavailable, "the journal ended")
}

// gauges hands on samples; their absence is what tells that the engine is lost.
func (f *feed) gauges(ctx context.Context, ch chan<- news) error {
	for g, err := range f.engine.Gauges(ctx, heartbeat) {
		n := news{gauges: &g}
		if err != nil {
			if engine.AsCode(err) != engine.Unavailable {
				return err
			}
			n = news{err: err}
		}
		if !offer(ctx, ch, n) {
			return ctx.Err()
		}
	}
	return engine.Errorf(engine.Unavailable, "the engine hung up")
}

func offer(ctx context.Context, ch chan<- news, n news) bool {
	select {
	case ch <- n:
		return true
	case <-ctx.Done():
		return false
	}
}

// tell gathers what has come and sends it as one message, at most twenty a
// second, and notices silence.
func (f *feed) tell(ctx context.Context, ch <-chan news) {
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		var frame frameMsg
		select {
		case <-ctx.Done():
			return
		case <-quiet.C:
			frame.lost = true
			quiet.Reset(silence)
		case n := <-ch:
			frame.take(n)
			frame.drain(ch)
		}
		if frame.gauges != nil {
			quiet.Reset(silence)
		}
		f.send(frame)
		gap := time.NewTimer(frameGap)
		select {
		case <-ctx.Done():
			gap.Stop()
			return
		case <-gap.C:
		}
	}
}

func (m *frameMsg) drain(ch <-chan news) {
	for range backlog {
		select {
		case n := <-ch:
			m.take(n)
		default:
			return
		}
	}
}

func (m *frameMsg) take(n news) {
	switch {
	case n.err != nil:
		m.lost, m.cause = true, n.err
	case n.snap != nil:
		m.snap, m.events = n.snap, nil
	case n.gauges != nil:
		m.gauges, m.lost, m.cause = n.gauges, false, nil
	default:
		m.events = append(m.events, n.event)
	}
}
