package pool

import (
	"context"
	"fmt"
	"time"

	"sbx/engine"
	"sbx/store"
)

// sweep puts idle sandboxes to sleep and deletes what was cold for too long,
// until ctx ends. How long is told by the monotonic clock: a wall clock that
// jumps puts nobody to sleep and deletes nothing.
func (p *Pool) sweep(ctx context.Context) {
	every := p.Policy.Filled()
	idle, cold := time.NewTicker(every.IdleSweep), time.NewTicker(every.ColdSweep)
	defer idle.Stop()
	defer cold.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			err = p.sweepIdle(ctx)
		case <-cold.C:
			err = p.sweepCold(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("pool: a sweep failed", "err", err)
		}
	}
}

// sweepIdle takes down what has waited for too long. It is archived when its
// processes are down.
func (p *Pool) sweepIdle(ctx context.Context) error {
	return p.each(ctx, func(tx *store.Tx) (bool, error) {
		id, ok := tx.Resting(engine.Waiting, p.Policy.IdleTimeout, nil)
		if !ok {
			return false, nil
		}
		sb, err := tx.Sandbox(id)
		if err != nil {
			return false, err
		}
		procs, err := tx.ProcessesOf(id)
		if err != nil {
			return false, err
		}
		_, open, err := tx.OpenRun(id)
		if err != nil {
			return false, err
		}
		if open || busy(sb, procs) || attended(procs) {
			return true, tx.Touch(id) // somebody is there
		}
		if err := TakeDown(tx, sb, engine.Down, engine.EndedByIdle); err != nil {
			return false, err
		}
		return true, tx.Count(store.CountIdle)
	})
}

// sweepCold deletes what has been cold for too long: workspace, local archive
// and record. The remote archive stays.
func (p *Pool) sweepCold(ctx context.Context) error {
	passed := map[engine.SandboxID]bool{}
	var next engine.SandboxID
	for {
		err := p.Store.Update(ctx, func(tx *store.Tx) error {
			next, _ = tx.Resting(engine.Cold, p.Policy.ColdTTL, func(id engine.SandboxID) bool { return passed[id] })
			return nil
		})
		if err != nil || next == "" {
			return err
		}
		passed[next] = true
		if p.Policy.KeepLastCopy && !p.remote(ctx, next) {
			continue
		}
		err = p.Store.Update(ctx, func(tx *store.Tx) error { return p.expire(tx, next) })
		if err := ignoreConflict(err); err != nil {
			return err
		}
	}
}

// expire decides, in one transaction, that a cold sandbox goes: whoever resumed
// it before has moved it, whoever comes after finds it going.
func (p *Pool) expire(tx *store.Tx, id engine.SandboxID) error {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return err
	}
	if sb.State != engine.Cold || sb.Keep || sb.Wanted == engine.Removed || sb.Health == engine.Healing {
		return nil
	}
	if err := TakeDown(tx, sb, engine.Removed, engine.EndedByCleanup); err != nil {
		return err
	}
	return tx.Count(store.CountCleanup)
}

// remote asks whether a remote archive holds the workspace, and remembers it
// for those who evict, who can't wait for an answer.
func (p *Pool) remote(ctx context.Context, id engine.SandboxID) bool {
	held := p.Archives != nil && p.Archives.Remote(ctx, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if held {
		p.held[id] = true
	} else {
		delete(p.held, id)
	}
	return held
}

// each runs fn in transactions of its own until it finds no more.
func (p *Pool) each(ctx context.Context, fn func(*store.Tx) (bool, error)) error {
	for range 100_000 { // more than a sweep can find; what is left is the next one's
		var more bool
		err := p.Store.Update(ctx, func(tx *store.Tx) (err error) {
			more, err = fn(tx)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// settle makes a sandbox cold whose processes are down, as was wanted. The
// pool's own are archived first; one that was evicted goes then, unless there
// turns out to be room for it.
func (p *Pool) settle(ctx context.Context, sb engine.Sandbox) error {
	saved := error(nil)
	if p.archived(sb) {
		saved = p.Archives.Save(ctx, sb)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if saved != nil {
			p.Log.Warn("pool: archiving a workspace", "sandbox", sb.ID, "err", saved)
		} else {
			p.remote(ctx, sb.ID)
		}
	}
	return ignoreConflict(p.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.Sandbox(sb.ID)
		if err != nil || now.Wanted != engine.Down {
			return err
		}
		if now.State.Live() {
			if err := Park(tx, now, engine.Stop, words(now.Ending)); err != nil {
				return err
			}
		}
		return p.settled(tx, sb.ID, saved)
	}))
}

// settled decides about what was evicted, and says what went wrong.
func (p *Pool) settled(tx *store.Tx, id engine.SandboxID, saved error) error {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return err
	}
	switch {
	case saved != nil: // better one too many than a workspace lost
		sb.Leaving = false
		sb.Reason = fmt.Sprintf("%s; its workspace is kept on disk, for it could not be archived: %v", words(sb.Ending), saved)
	case !sb.Leaving:
		return nil
	case tx.Taken() < p.Policy.MaxSandboxes:
		sb.Leaving = false
	default:
		sb.Wanted = engine.Removed
	}
	return tx.PutSandbox(&sb)
}

// archived reports whether a sandbox's workspace is archived when it goes down:
// those of sessions and of the pool are, as nobody else keeps them.
func (p *Pool) archived(sb engine.Sandbox) bool {
	return p.Archives != nil && !sb.Keep && !sb.PreWarmed && sb.Isolation != ""
}

// words are what stands beside the health of a sandbox that was taken down.
func words(why engine.Termination) string {
	switch why {
	case engine.EndedByEviction:
		return "evicted to make room"
	case engine.EndedByIdle:
		return "idle for too long"
	case engine.EndedByPause:
		return "its session was paused"
	case engine.EndedByAbort:
		return "its session was aborted"
	case engine.EndedByCrash:
		return "it did not answer"
	case engine.EndedByLimit:
		return "it went over a limit"
	}
	return "stopped"
}
