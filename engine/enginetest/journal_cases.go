package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

var journalCases = []testCase{
	{"SnapshotSaysWhoIsThere", snapshotSaysWho},
	{"SnapshotHasWhatWasCreated", snapshotHasHome},
	{"SnapshotAndEventsMakeTheNextSnapshot", snapshotLaw},
	{"EventsComeInOrderWithoutAGap", eventsInOrder},
	{"EventsResumeFromAnyPosition", eventsResume},
	{"EventsWaitForMore", eventsWait},
	{"EventsNameTheirActionAndActor", eventsNameActor},
	{"EventsOfAnotherEpochAreCompacted", eventsOfAnotherEpoch},
	{"GaugesYieldAtOnceAndGoOn", gaugesGoOn},
	{"StreamsEndWithTheirContext", streamsEnd},
}

func snapshotSaysWho(t *testing.T, s *suite) {
	about := s.snapshot(t).About
	if about.Protocol != engine.Protocol || about.Version == "" {
		t.Errorf("about is %+v, want a version and the protocol %d", about, engine.Protocol)
	}
}

func snapshotHasHome(t *testing.T, s *suite) {
	snap := s.snapshot(t)
	sb, ok := snap.Sandboxes[s.home.ID]
	if !ok || sb.Name != s.home.Name || sb.State != engine.Waiting || sb.Health != engine.Ready {
		t.Errorf("the sandbox is %+v, want it ready and waiting", sb)
	}
	if app := snap.App(s.home.ID); app.State != engine.ProcessRunning {
		t.Errorf("its app is %q, want it running", app.State)
	}
}

// stir makes some events that leave home as it was.
func (s *suite) stir(t *testing.T) {
	t.Helper()
	for i := range 4 {
		s.do(t, engine.KeepSandbox{Sandbox: s.home.ID, Keep: i%2 == 1})
	}
}

func snapshotLaw(t *testing.T, s *suite) {
	before := s.snapshot(t)
	s.stir(t)
	if _, err := engine.Exec(s.ctx(t), s.Engine, s.home.ID, engine.Command{Shell: "true"}, func(engine.LogLine) {}); err != nil {
		t.Fatalf("exec: %v", err)
	}
	after := s.snapshot(t)
	for _, ev := range s.between(t, before.Position, after.Position) {
		before.Apply(ev)
	}
	if diff := cmp.Diff(after, before); diff != "" {
		t.Errorf("the later snapshot (-) isn't the earlier one with the events applied (+):\n%s", diff)
	}
}

// between are the events after from, up to to.
func (s *suite) between(t *testing.T, from, to engine.Position) []engine.Event {
	t.Helper()
	var list []engine.Event
	if from.Seq >= to.Seq {
		return nil
	}
	for ev, err := range s.Engine.Events(s.ctx(t), from) {
		if err != nil {
			t.Fatalf("events after %s: %v", from, err)
		}
		if list = append(list, ev); ev.Seq >= to.Seq {
			break
		}
	}
	return list
}

func eventsInOrder(t *testing.T, s *suite) {
	from := s.snapshot(t).Position
	s.stir(t)
	to := s.snapshot(t).Position
	list := s.between(t, from, to)
	if len(list) < 4 {
		t.Fatalf("got %d events, want at least the 4 that were made", len(list))
	}
	for i, ev := range list {
		if want := from.Seq + engine.Seq(i) + 1; ev.Seq != want {
			t.Fatalf("event %d of %d has the seq %d, want %d", i, len(list), ev.Seq, want)
		}
	}
}

func eventsResume(t *testing.T, s *suite) {
	from := s.snapshot(t).Position
	s.stir(t)
	to := s.snapshot(t).Position
	whole := s.between(t, from, to)
	for i, ev := range whole[:len(whole)-1] {
		rest := s.between(t, engine.Position{Epoch: from.Epoch, Seq: ev.Seq}, to)
		if diff := cmp.Diff(whole[i+1:], rest); diff != "" {
			t.Fatalf("resumed after %d (-want +got):\n%s", ev.Seq, diff)
		}
	}
}

func eventsWait(t *testing.T, s *suite) {
	from := s.snapshot(t).Position
	got := make(chan engine.Event, 1)
	ctx, cancel := context.WithCancel(s.ctx(t))
	defer cancel()
	go func() {
		defer close(got)
		for ev, err := range s.Engine.Events(ctx, from) {
			if b, ok := ev.Body.(engine.SandboxChanged); err == nil && ok && b.Sandbox.ID == s.home.ID {
				got <- ev
				return
			}
		}
	}()
	s.stir(t)
	select {
	case ev, ok := <-got:
		if !ok || ev.Seq <= from.Seq {
			t.Errorf("got event %d, want one after %d", ev.Seq, from.Seq)
		}
	case <-time.After(soon):
		t.Error("a reader that waits was not woken")
	}
	cancel()
	for range got { // until it has ended
	}
}

func eventsNameActor(t *testing.T, s *suite) {
	from := s.snapshot(t).Position
	a := engine.NewAction(engine.KeepSandbox{Sandbox: s.home.ID, Keep: false})
	r, err := s.Engine.Do(s.ctx(t), a)
	if err != nil {
		t.Fatal(err)
	}
	s.do(t, engine.KeepSandbox{Sandbox: s.home.ID, Keep: true})
	for _, ev := range s.between(t, from, r.Position) {
		if ev.Action != a.ID {
			continue
		}
		switch ev.By.Kind {
		case engine.ActorOperator, engine.ActorScript, engine.ActorClient:
		default:
			t.Errorf("the event is by %q, want whoever is at the door", ev.By)
		}
		return
	}
	t.Errorf("no event up to the receipt's position %s names the action %s", r.Position, a.ID)
}

func eventsOfAnotherEpoch(t *testing.T, s *suite) {
	pos := s.snapshot(t).Position
	pos.Epoch += 1000
	for _, err := range s.Engine.Events(s.ctx(t), pos) {
		wantCode(t, "events of another epoch", err, engine.Compacted)
		return
	}
	t.Error("events of another epoch ended without an error")
}

func gaugesGoOn(t *testing.T, s *suite) {
	began := time.Now()
	n := 0
	for g, err := range s.Engine.Gauges(s.ctx(t), 100*time.Millisecond) {
		if err != nil {
			t.Fatalf("gauges: %v", err)
		}
		if n == 0 && time.Since(began) > soon {
			t.Errorf("the first sample came after %s, want it at once", time.Since(began))
		}
		if _, ok := g.Sandboxes[s.home.ID]; !ok || g.At.IsZero() || g.Pool.Total == 0 || g.Pool.MaxCapacity == 0 {
			t.Errorf("the gauges are %+v, want home, the time and the pool in them", g)
		}
		if n++; n == 3 {
			return
		}
	}
	t.Errorf("the gauges ended after %d samples", n)
}

// streamsEnd holds every stream to ending soon after its context, with its error.
func streamsEnd(t *testing.T, s *suite) {
	pos := s.snapshot(t).Position
	streams := map[string]func(ctx context.Context) error{
		"events": func(ctx context.Context) (last error) {
			for _, last = range s.Engine.Events(ctx, pos) {
			}
			return last
		},
		"gauges": func(ctx context.Context) (last error) {
			for _, last = range s.Engine.Gauges(ctx, 100*time.Millisecond) {
			}
			return last
		},
		"logs": func(ctx context.Context) (last error) {
			for _, last = range s.Engine.Logs(ctx, engine.LogQuery{Sandbox: s.home.ID, Follow: true}) {
			}
			return last
		},
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(s.ctx(t))
			ended := make(chan error, 1)
			go func() { ended <- stream(ctx) }()
			time.AfterFunc(50*time.Millisecond, cancel)
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("ended with %v, want the context's error", err)
				}
			case <-time.After(soon):
				t.Errorf("goes on %s after its context", soon)
			}
		})
	}
}
