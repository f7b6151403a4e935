package tui

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

// inbox is where a feed's frames go.
type inbox struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	frames []frameMsg
}

func feeding(t *testing.T, j engine.Journal) (*inbox, *feed) {
	ctx, cancel := context.WithCancel(t.Context())
	in := &inbox{cancel: cancel, done: make(chan struct{})}
	f := &feed{engine: j}
	f.send = func(msg tea.Msg) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.frames = append(in.frames, msg.(frameMsg))
	}
	go func() {
		defer close(in.done)
		f.run(ctx)
	}()
	return in, f
}

// wait lets time pass and hands over the frames that came.
func (in *inbox) wait(d time.Duration) []frameMsg {
	time.Sleep(d)
	synctest.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	list := in.frames
	in.frames = nil
	return list
}

func (in *inbox) close() {
	in.cancel()
	<-in.done
}

func countEvents(list []frameMsg) (n int) {
	for _, m := range list {
		n += len(m.events)
	}
	return n
}

func TestABurstOfEventsIsAFewFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(10, time.Now())
		in, _ := feeding(t, fake)
		defer in.close()
		in.wait(time.Second)
		const burst = 20_000
		fake.change(func() {
			for range burst {
				seq := fake.snap.Position.Seq + 1
				fake.snap.Position.Seq = seq
				fake.journal = append(fake.journal, engine.Event{Seq: seq, Body: engine.SandboxChanged{Sandbox: seedSandbox(1, time.Now())}})
			}
		})
		list := in.wait(time.Second)
		if n := countEvents(list); n != burst {
			t.Errorf("%d of %d events arrived", n, burst)
		}
		if len(list) > 21 {
			t.Errorf("they came in %d frames within a second", len(list))
		}
	})
}

func TestEventsContinueTheSnapshotWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(10, time.Now())
		in, _ := feeding(t, fake)
		defer in.close()
		w := newWorld(Config{})
		for i := range 40 {
			sb := seedSandbox(i%12, time.Now())
			sb.Keep = i%2 == 0
			fake.tell(engine.SandboxChanged{Sandbox: sb})
			for _, m := range in.wait(time.Duration(i) * time.Millisecond) {
				if m.snap != nil {
					w.take(m.snap)
				}
				for _, ev := range m.events {
					w.apply(ev)
				}
			}
		}
		for _, m := range in.wait(time.Second) {
			for _, ev := range m.events {
				w.apply(ev)
			}
		}
		if w.snap.Position != fake.snap.Position || len(w.snap.Sandboxes) != len(fake.snap.Sandboxes) {
			t.Errorf("the dashboard is at %v with %d sandboxes, the engine at %v with %d",
				w.snap.Position, len(w.snap.Sandboxes), fake.snap.Position, len(fake.snap.Sandboxes))
		}
	})
}

// silentEngine answers and then says nothing more.
type silentEngine struct{ *fakeEngine }

func (silentEngine) Gauges(ctx context.Context, _ time.Duration) iter.Seq2[engine.Gauges, error] {
	return func(yield func(engine.Gauges, error) bool) {
		if yield(engine.Gauges{At: time.Now()}, nil) {
			<-ctx.Done()
		}
	}
}

func TestThreeSecondsOfSilenceIsALostEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, _ := feeding(t, silentEngine{seeded(3, time.Now())})
		defer in.close()
		for _, m := range in.wait(silence - time.Millisecond) {
			if m.lost {
				t.Error("lost too early")
			}
		}
		list := in.wait(time.Second)
		if len(list) != 1 || !list[0].lost || list[0].cause != nil {
			t.Errorf("frames are %+v", list)
		}
	})
}

func TestFailuresAreToldWithTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(3, time.Now())
		fake.away = engine.Errorf(engine.Unavailable, "connection refused")
		in, f := feeding(t, fake)
		defer in.close()
		list := in.wait(100 * time.Millisecond)
		if len(list) == 0 || !list[0].lost || !errors.Is(list[0].cause, engine.Unavailable) {
			t.Fatalf("frames are %+v", list)
		}
		in.wait(4 * time.Second)
		fake.change(func() { fake.away = nil })
		in.wait(time.Millisecond)
		f.retry()
		back := in.wait(200 * time.Millisecond)
		snap := false
		for _, m := range back {
			snap = snap || m.snap != nil
		}
		if !snap {
			t.Errorf("retry did not bring a snapshot at once: %+v", back)
		}
	})
}

// compactedEngine loses its journal once.
type compactedEngine struct {
	*fakeEngine
	failed bool
}

func (c *compactedEngine) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	if !c.failed {
		c.failed = true
		return func(yield func(engine.Event, error) bool) {
			yield(engine.Event{}, engine.Errorf(engine.Compacted, "gone"))
		}
	}
	return c.fakeEngine.Events(ctx, after)
}

func TestACompactedJournalBeginsWithANewSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(3, time.Now())
		in, _ := feeding(t, &compactedEngine{fakeEngine: fake})
		defer in.close()
		in.wait(time.Second)
		fake.tell(engine.SandboxRemoved{ID: seedID(1)})
		list := in.wait(time.Second)
		for _, m := range list {
			if m.lost {
				t.Errorf("a compacted journal counts as lost: %v", m.cause)
			}
		}
		if countEvents(list) != 1 {
			t.Errorf("frames are %+v", list)
		}
	})
}

func TestStreamsEndWhenTheirPaneIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(6, time.Now())
		ctx, cancel := context.WithCancel(t.Context())
		c := &commands{engine: fake, ctx: ctx}
		s, cmd := c.follow(engine.LogQuery{Follow: true})
		msg := cmd().(linesMsg)
		if len(msg.lines) != len(fake.lines) {
			t.Errorf("%d of %d lines", len(msg.lines), len(fake.lines))
		}
		s.stop()
		if msg := c.more(s)().(linesMsg); !msg.end {
			t.Errorf("after stop it goes on: %+v", msg)
		}
		_, again := c.follow(engine.LogQuery{Follow: true})
		again()
		cancel()
		c.wait() // returns: nothing is left behind, or the bubble would not end
		if msg := c.act("x", engine.StartHeal{})(); msg != nil {
			t.Errorf("a command runs after the end: %v", msg)
		}
	})
}
