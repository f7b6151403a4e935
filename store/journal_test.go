package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// seqs reads n events after a number.
func seqs(t *testing.T, s *Store, after engine.Seq, n int) (list []engine.Seq, err error) {
	t.Helper()
	for ev, err := range s.Events(t.Context(), after) {
		if err != nil {
			return list, err
		}
		if list = append(list, ev.Seq); len(list) == n {
			break
		}
	}
	return list, nil
}

// changes makes n events.
func changes(t testing.TB, s *Store, id engine.SandboxID, n int) {
	t.Helper()
	for i := range n {
		fire(t, s, id, pingPong(i))
	}
}

func TestAReaderWaitsAndIsWokenByACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		sb := putSample(t, s, "a")
		got := make(chan engine.Event)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(got)
			for ev, err := range s.Events(ctx, sb.Seq) {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				got <- ev
			}
		}()
		synctest.Wait() // it waits now
		fire(t, s, sb.ID, engine.Begin)
		if ev := <-got; ev.Seq != 2 || ev.Body.(engine.SandboxChanged).Sandbox.State != engine.Running {
			t.Errorf("the reader got %+v", ev)
		}
		cancel()
		if ev, ok := <-got; ok {
			t.Errorf("the reader got %+v after its end", ev)
		}
	})
}

func TestCloseEndsReadersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), plant(t, t.TempDir()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			for _, err := range s.Events(context.Background(), 0) {
				ended <- err
			}
		}()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, engine.Unavailable) {
			t.Errorf("the reader ended with %v", err)
		}
	})
}

func TestEventsFromMemoryAreThoseOfTheTable(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	update(t, s, func(tx *Tx) error {
		tx.By, tx.Action = engine.Actor{Kind: engine.ActorOperator, Name: "ada", From: "socket"}, "ac-1"
		_, err := tx.Fire(sb.ID, engine.Begin)
		return err
	})
	changes(t, s, sb.ID, 0)
	memory, ok := s.tail.after(0)
	if !ok || len(memory) != 2 {
		t.Fatalf("the tail has %d events, %t", len(memory), ok)
	}
	table, err := s.readTable(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err1 := decodeAll(table)
	got, err2 := decodeAll(memory)
	if diff := cmp.Diff(want, got); diff != "" || err1 != nil || err2 != nil {
		t.Errorf("(-table +memory) %v %v\n%s", err1, err2, diff)
	}
}

func TestALateReaderGetsWhatTheTailHasForgotten(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	update(t, s, func(tx *Tx) error {
		for i := range tailEvents + batch {
			if _, err := tx.Fire(sb.ID, pingPong(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if _, ok := s.tail.after(0); ok {
		t.Fatal("the tail has everything")
	}
	got, err := seqs(t, s, 0, tailEvents+batch+1)
	if err != nil {
		t.Fatal(err)
	}
	for i, seq := range got {
		if seq != engine.Seq(i+1) {
			t.Fatalf("event %d has number %d", i+1, seq)
		}
	}
}

func TestPrunedEventsAreCompacted(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	changes(t, s, sb.ID, 9) // 10 events in all
	if err := s.Prune(t.Context(), 4, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.tail.recs = nil // as after a restart
	if got, err := seqs(t, s, 6, 4); err != nil || fmt.Sprint(got) != "[7 8 9 10]" {
		t.Errorf("the 4 newest are %v, %v", got, err)
	}
	for _, after := range []engine.Seq{0, 5, 99} {
		if got, err := seqs(t, s, after, 1); !errors.Is(err, engine.Compacted) {
			t.Errorf("the events after %d: %v, %v", after, got, err)
		}
	}
	if err := s.Prune(t.Context(), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := putSample(t, s, "b"); got.Seq != 11 {
		t.Errorf("after all were pruned the next number is %d, want 11", got.Seq)
	}
}

func TestPruneWaitsForTheSlowestConsumer(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	changes(t, s, sb.ID, 9)
	consumeN(t, s, "fast", 8)
	consumeN(t, s, "slow", 3)
	if err := s.Prune(t.Context(), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := consumeN(t, s, "slow", 2); fmt.Sprint(got) != "[4 5]" {
		t.Errorf("the slow one goes on with %v", got)
	}
}

// consumeN consumes n events and stops.
func consumeN(t *testing.T, s *Store, name string, n int) (list []engine.Seq) {
	t.Helper()
	for ev, err := range s.Consume(t.Context(), name, func(*Tx, engine.Event) error { return nil }) {
		if err != nil {
			t.Fatal(err)
		}
		if list = append(list, ev.Seq); len(list) == n {
			break
		}
	}
	return list
}

func TestConsumeGoesOnExactlyWhereItWas(t *testing.T) {
	dir := plant(t, t.TempDir())
	var got []engine.Seq
	for range 4 {
		s, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		sb := putSample(t, s, engine.NewID("n-"))
		changes(t, s, sb.ID, 5)
		got = append(got, consumeN(t, s, "healer", 4)...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, seq := range got {
		if seq != engine.Seq(i+1) {
			t.Fatalf("consumed %v", got)
		}
	}
}

// TestAConsumersEffectIsExactlyOnce: what fn writes and the cursor's move are
// one commit, so whatever cuts it off, each signal has one run.
func TestAConsumersEffectIsExactlyOnce(t *testing.T) {
	dir := plant(t, t.TempDir())
	errCut := errors.New("cut")
	for n := range 6 {
		s, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		sb := putSample(t, s, engine.NewID("n-"))
		update(t, s, func(tx *Tx) error {
			_, err := tx.RaiseSignal(engine.Signal{Sandbox: sb.ID, Kind: engine.ExitSignal})
			return err
		})
		open := func(tx *Tx, ev engine.Event) error {
			b, ok := ev.Body.(engine.SignalRaised)
			if !ok {
				return nil
			}
			run := engine.RunID(fmt.Sprint("ru-", b.Signal.ID))
			if _, err := tx.Run(run); err == nil {
				t.Errorf("signal %d came twice", b.Signal.ID)
			}
			if err := tx.PutRun(engine.HealRun{ID: run, Sandbox: b.Signal.Sandbox, State: engine.RunEnded}); err != nil {
				return err
			}
			if n%2 == 0 {
				return errCut // after it has written
			}
			return nil
		}
		for ev, err := range s.Consume(t.Context(), "healer", open) {
			if err != nil {
				if !errors.Is(err, errCut) || ev.Kind() != engine.KindSignalRaised {
					t.Errorf("event %d: %v", ev.Seq, err)
				}
				break
			}
			if p, err := s.Position(t.Context()); ev.Seq == p.Seq || err != nil {
				break
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, dir)
	err := s.View(t.Context(), func(tx *Tx) error {
		list, err := tx.Sandboxes()
		for _, sb := range list {
			runs, err := tx.RunsOf(sb.ID, time.Time{})
			if len(runs) != 1 || err != nil {
				t.Errorf("%s has %d runs: %v", sb.Name, len(runs), err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAConsumerThatFailsStaysBeforeTheEvent(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	changes(t, s, sb.ID, 5)
	errMine := errors.New("mine")
	var seen []engine.Seq
	var at engine.Seq
	for ev, err := range s.Consume(t.Context(), "c", func(_ *Tx, ev engine.Event) error {
		if ev.Seq == 4 {
			return errMine
		}
		return nil
	}) {
		if err != nil {
			at = ev.Seq
			if !errors.Is(err, errMine) {
				t.Error(err)
			}
			continue
		}
		seen = append(seen, ev.Seq)
	}
	if fmt.Sprint(seen) != "[1 2 3]" || at != 4 {
		t.Errorf("saw %v and failed at %d", seen, at)
	}
	if got := consumeN(t, s, "c", 2); fmt.Sprint(got) != "[4 5]" {
		t.Errorf("it goes on with %v", got)
	}
}

func TestANewConsumerOfAnOldJournalBeginsWithWhatIsKept(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	changes(t, s, sb.ID, 9)
	if err := s.Prune(t.Context(), 3, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := consumeN(t, s, "new", 2); fmt.Sprint(got) != "[8 9]" {
		t.Errorf("it begins with %v", got)
	}
}
