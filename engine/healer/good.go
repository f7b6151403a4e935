package healer

import (
	"context"
	"slices"
	"sync"
	"time"

	"sbx/engine"
	"sbx/store"
)

// schedule knows when which sandbox is due: will have been ready for long
// enough, or its maintenance is over.
type schedule struct {
	changed chan struct{} // holds one

	mu  sync.Mutex
	due map[engine.SandboxID]time.Time
}

func newSchedule() *schedule {
	return &schedule{changed: make(chan struct{}, 1), due: map[engine.SandboxID]time.Time{}}
}

// noteHealth schedules a sandbox that became ready, and drops one that is not
// ready any more. A sandbox that stays ready keeps its time.
func (s *schedule) noteHealth(sb engine.Sandbox, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sb.Health != engine.Ready {
		delete(s.due, sb.ID)
		return
	}
	at := sb.HealthChanged.Add(after)
	if now := time.Now(); at.Before(now) {
		return // it was looked at when it was due
	}
	s.set(sb.ID, at)
}

// set has a sandbox looked at. The caller holds mu.
func (s *schedule) set(id engine.SandboxID, at time.Time) {
	s.due[id] = at
	select {
	case s.changed <- struct{}{}:
	default: // the loop will look anyway
	}
}

func (s *schedule) drop(id engine.SandboxID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.due, id)
}

// pop takes out what is due at now; next is when something will be.
func (s *schedule) pop(now time.Time) (ready []engine.SandboxID, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, at := range s.due {
		switch {
		case !at.After(now):
			ready = append(ready, id)
			delete(s.due, id)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return ready, next
}

// follow does what is due, one after another, until ctx ends or do fails.
func (s *schedule) follow(ctx context.Context, do func(engine.SandboxID) error) error {
	for {
		ready, next := s.pop(time.Now())
		for _, id := range ready {
			if err := do(id); err != nil {
				return err
			}
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = max(0, time.Until(next))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-s.changed:
			t.Stop()
		case <-t.C:
		}
	}
}

// keepGood makes a good checkpoint of each sandbox that has been ready for a
// while, one after another, until ctx ends.
func (l *loop) keepGood(ctx context.Context) error {
	return l.good.follow(ctx, func(id engine.SandboxID) error {
		if err := l.saveGood(ctx, id); err != nil && ctx.Err() == nil {
			l.Log.Warn("no good checkpoint could be made", "sandbox", id, "err", err)
		}
		return nil
	})
}

// saveGood saves a sandbox that is still ready, unless its files are those of
// a good checkpoint. No run starts on it meanwhile, and nobody changes its
// checkpoints: what no row names when they are collected is nobody's.
func (l *loop) saveGood(ctx context.Context, id engine.SandboxID) error {
	release, ok := l.lanes.hold(id)
	if !ok {
		return nil // being healed: it will be ready again, or is not good
	}
	defer release()
	if l.Turn != nil {
		defer l.Turn(id)()
	}
	var all []engine.Checkpoint
	var sb engine.Sandbox
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if sb, err = tx.Sandbox(id); err != nil {
			return err
		}
		all, err = tx.Checkpoints(id)
		return err
	})
	if err != nil || sb.Health != engine.Ready || !wantedUp(sb) {
		return ignoreGone(err)
	}
	box, err := l.Box(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.p.UndoTimeout)
	defer cancel()
	tree, err := box.Checkpoints().Save(ctx, "good")
	if engine.AsCode(err) == engine.Unavailable {
		return nil // a host without git has no checkpoints; a run says so
	}
	if err != nil || slices.ContainsFunc(all, func(cp engine.Checkpoint) bool { return cp.Good && cp.Tree == tree }) {
		return err
	}
	keep, err := l.rememberGood(ctx, id, tree)
	if err != nil {
		return err
	}
	return box.Checkpoints().Drop(ctx, keep)
}

// rememberGood writes a good checkpoint down in the place of the oldest, and
// returns the trees that are still of use.
func (l *loop) rememberGood(ctx context.Context, id engine.SandboxID, tree string) (trees []string, err error) {
	good := engine.Checkpoint{
		ID: engine.CheckpointID(engine.NewID(engine.CheckpointPrefix)), Sandbox: id, Good: true,
		Note: "ready for " + l.p.GoodAfter.String(), Tree: tree,
	}
	err = l.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By, good.Created = actor, tx.Now
		all, err := tx.Checkpoints(id)
		if err != nil {
			return err
		}
		keep, drop := keepNewest(append([]engine.Checkpoint{good}, all...), l.p.KeepGood)
		trees = treesOf(keep)
		if err := tx.PutCheckpoint(good); err != nil {
			return err
		}
		for _, cp := range drop {
			if err := tx.DropCheckpoint(cp.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return trees, err
}

// treesOf are the contents that checkpoints need: of a change that before it
// and that after it, for undoing compares both.
func treesOf(all []engine.Checkpoint) (trees []string) {
	for _, cp := range all {
		trees = append(trees, cp.Tree)
		if cp.Change != nil {
			trees = append(trees, cp.Change.After)
		}
	}
	return trees
}

// keepNewest keeps the first n good checkpoints and the first n of runs; all is
// newest first. What somebody asked for, and what an operator's change can be
// undone with, is not the healer's to forget.
func keepNewest(all []engine.Checkpoint, n int) (keep, drop []engine.Checkpoint) {
	good, ofRuns := n, n
	for _, cp := range all {
		if cp.Manual || cp.Change != nil {
			keep = append(keep, cp)
			continue
		}
		room := &ofRuns
		if cp.Good {
			room = &good
		}
		if *room--; *room >= 0 {
			keep = append(keep, cp)
		} else {
			drop = append(drop, cp)
		}
	}
	return keep, drop
}
