package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// holdLeader begins an Update whose function runs when the returned channel is
// closed, so that other Updates pile up behind it.
func holdLeader(t *testing.T, s *Store, wg *sync.WaitGroup) (release chan struct{}) {
	t.Helper()
	running, release := make(chan struct{}), make(chan struct{})
	wg.Go(func() {
		err := s.Update(context.Background(), func(*Tx) error {
			close(running)
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-running
	return release
}

// pileUp returns when n Updates wait.
func pileUp(s *Store, n int) {
	synctest.Wait()
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if len(s.queue.jobs) != n {
		panic(fmt.Sprintf("%d updates wait, want %d", len(s.queue.jobs), n))
	}
}

func TestAFailingUpdateOfAGroupUndoesOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		errMine := errors.New("mine")
		var wg sync.WaitGroup
		release := holdLeader(t, s, &wg)
		errs := make([]error, 9)
		for i := range errs {
			wg.Go(func() {
				errs[i] = s.Update(t.Context(), func(tx *Tx) error {
					sb := sampleSandbox(fmt.Sprint("n", i))
					if err := tx.PutSandbox(&sb); err != nil {
						return err
					}
					if i%3 == 1 {
						return errMine
					}
					return nil
				})
			})
		}
		pileUp(s, len(errs))
		close(release)
		wg.Wait()

		var want, got []string
		for i, err := range errs {
			if i%3 != 1 {
				want = append(want, fmt.Sprint("n", i))
			}
			if bad := i%3 == 1; bad != errors.Is(err, errMine) || !bad && err != nil {
				t.Errorf("update %d: %v", i, err)
			}
		}
		snap, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range errs {
			if _, err := snap.Find(fmt.Sprint("n", i)); err == nil {
				got = append(got, fmt.Sprint("n", i))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("committed (-want +got):\n%s", diff)
		}
		if snap.Position.Seq != 6 {
			t.Errorf("the journal is at %d after 6 changes that stayed", snap.Position.Seq)
		}
	})
}

func TestUpdatesThatWaitAreOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		var wg sync.WaitGroup
		release := holdLeader(t, s, &wg)
		var mu sync.Mutex
		groups := map[*group]int{}
		for i := range 8 {
			wg.Go(func() {
				err := s.Update(t.Context(), func(tx *Tx) error {
					mu.Lock()
					groups[tx.group]++
					mu.Unlock()
					sb := sampleSandbox(fmt.Sprint("n", i))
					return tx.PutSandbox(&sb)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		pileUp(s, 8)
		close(release)
		wg.Wait()
		if len(groups) != 1 {
			t.Errorf("8 updates that waited were committed by %d transactions", len(groups))
		}
	})
}

func TestAnUpdateThatWaitsLeavesWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		var wg sync.WaitGroup
		release := holdLeader(t, s, &wg)
		ctx, cancel := context.WithCancel(t.Context())
		called := false
		var got error
		wg.Go(func() {
			got = s.Update(ctx, func(*Tx) error { called = true; return nil })
		})
		pileUp(s, 1)
		cancel()
		pileUp(s, 0)
		close(release)
		wg.Wait()
		if !errors.Is(got, context.Canceled) || called {
			t.Errorf("the update that was cancelled: %v, called: %t", got, called)
		}
		putSample(t, s, "after") // nobody was left leading
	})
}

func TestAPanicInAnUpdateIsItsCallersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		var wg sync.WaitGroup
		release := holdLeader(t, s, &wg)
		var got any
		wg.Go(func() {
			defer func() { got = recover() }()
			_ = s.Update(t.Context(), func(tx *Tx) error {
				sb := sampleSandbox("half done")
				if err := tx.PutSandbox(&sb); err != nil {
					return err
				}
				panic("a bug")
			})
		})
		pileUp(s, 1)
		wg.Go(func() { putSample(t, s, "neighbour") })
		pileUp(s, 2)
		close(release)
		wg.Wait()
		if got != "a bug" {
			t.Errorf("the caller recovered %v", got)
		}
		snap, err := s.Snapshot(t.Context())
		if err != nil || len(snap.Sandboxes) != 1 || snap.Position.Seq != 1 {
			t.Errorf("%d sandboxes at %v, want the neighbour alone at 1: %v", len(snap.Sandboxes), snap.Position, err)
		}
	})
}

func TestAnUpdateWhoseGoroutineEndsLeavesTheStoreUsable(t *testing.T) {
	s := openStore(t, t.TempDir())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Update(context.Background(), func(tx *Tx) error {
			sb := sampleSandbox("half done")
			if err := tx.PutSandbox(&sb); err != nil {
				t.Error(err)
			}
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	if sb := putSample(t, s, "after"); sb.Seq != 1 {
		t.Errorf("the change after it has number %d, want 1", sb.Seq)
	}
}

func TestUpdatesAfterCloseAreRefused(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(*Tx) error { return nil })
	if !errors.Is(err, engine.Unavailable) {
		t.Errorf("update: %v", err)
	}
	err = s.View(t.Context(), func(*Tx) error { return nil })
	if !errors.Is(err, engine.Unavailable) {
		t.Errorf("view: %v", err)
	}
}

func TestAViewCannotWrite(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := sampleSandbox("a")
	err := s.View(t.Context(), func(tx *Tx) error { return tx.PutSandbox(&sb) })
	if !errors.Is(err, engine.Internal) {
		t.Errorf("a change in a view: %v", err)
	}
}

func TestAViewStaysAtItsMoment(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	err := s.View(t.Context(), func(tx *Tx) error {
		before, err := tx.Sandbox(sb.ID)
		if err != nil {
			return err
		}
		fire(t, s, sb.ID, engine.Begin)
		after, err := tx.Sandbox(sb.ID)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the view moved:\n%s", diff)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNumbersHaveNoGapUnderWritersAndReaders: writers, some of whose changes
// fail, and readers that all see one timeline.
func TestNumbersHaveNoGapUnderWritersAndReaders(t *testing.T) {
	const writers, readers, each = 6, 6, 40
	s := openStore(t, t.TempDir())
	errUndo := errors.New("undo")
	last := engine.Seq(writers * each)
	var write, read sync.WaitGroup
	for range readers {
		read.Go(func() {
			next := engine.Seq(1)
			for ev, err := range s.Events(t.Context(), 0) {
				if err != nil || ev.Seq != next {
					t.Errorf("event %d after %d: %v", ev.Seq, next-1, err)
					return
				}
				if next++; ev.Seq == last {
					return
				}
			}
		})
	}
	for w := range writers {
		write.Go(func() {
			for i := range each {
				for _, undo := range []bool{true, false} {
					err := s.Update(t.Context(), func(tx *Tx) error {
						sb := sampleSandbox(fmt.Sprintf("w%d-%d", w, i))
						if err := tx.PutSandbox(&sb); err != nil {
							return err
						}
						if undo {
							return errUndo
						}
						return nil
					})
					if undo != errors.Is(err, errUndo) || !undo && err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	write.Wait()
	read.Wait()
	if p, err := s.Position(t.Context()); err != nil || p.Seq != last {
		t.Errorf("the journal ends with %v, want %d: %v", p, last, err)
	}
}
