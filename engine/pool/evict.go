package pool

import (
	"time"

	"sbx/engine"
	"sbx/store"
)

// Reserve makes sure, in the transaction that makes a sandbox's row, that there
// is a place for it: at capacity one is evicted, by tier (cold, warm, waiting)
// and then least recently used, and its place is the newcomer's from then on.
// Nobody is evicted who runs, is being healed or is kept; if that is all,
// Reserve refuses. 20 concurrent creates at capacity 3 give 3 sandboxes.
func (p *Pool) Reserve(tx *store.Tx) error {
	if tx.Taken() < p.Policy.MaxSandboxes {
		return nil
	}
	tried := map[engine.SandboxID]bool{}
	not := func(id engine.SandboxID) bool { return tried[id] || p.lastCopy(id) }
	for {
		id, ok := tx.Victim(not)
		if !ok {
			return full(tx.Taken(), p.Policy)
		}
		tried[id] = true
		if done, err := p.evict(tx, id); done || err != nil {
			return err
		}
	}
}

// retryFull is when trying again may help: the next idle sweep has been by then.
const retryFull = time.Minute

func full(taken int, policy Policy) error {
	return engine.Errorf(engine.Exhausted, "the pool is full: %d of %d sandboxes, all running, being healed or kept", taken, policy.MaxSandboxes).
		WithHint("remove one (sbx rm), give one to the pool (sbx keep --off), or raise pool.max_sandboxes").
		After(min(retryFull, max(policy.IdleSweep, time.Second)))
}

// evict gives a sandbox's place away, unless it turns out that it must stay.
// What was begun on it in an earlier transaction has moved it out of reach.
func (p *Pool) evict(tx *store.Tx, id engine.SandboxID) (bool, error) {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return false, err
	}
	if stays, err := p.mustStay(tx, sb); stays || err != nil {
		return false, err
	}
	sb.Leaving = true
	wanted := engine.Removed
	if sb.State == engine.Waiting {
		wanted = engine.Down // archived first; the rest is settle's
	}
	if err := TakeDown(tx, sb, wanted, engine.EndedByEviction); err != nil {
		return false, err
	}
	return true, tx.Count(store.CountEviction)
}

// mustStay reports whether something is under way in a sandbox that its state
// doesn't tell, or its workspace would be lost with it.
func (p *Pool) mustStay(tx *store.Tx, sb engine.Sandbox) (bool, error) {
	if sb.State == engine.Waiting && p.Archives == nil {
		return true, nil // nothing would have its workspace
	}
	if sb.State == engine.Cold {
		return false, nil
	}
	if _, open, err := tx.OpenRun(sb.ID); open || err != nil {
		return open, err
	}
	procs, err := tx.ProcessesOf(sb.ID)
	return busy(sb, procs), err
}

// TakeDown wants a sandbox and all its processes down, and tells its session.
// An open heal run is the caller's to cancel.
func TakeDown(tx *store.Tx, sb engine.Sandbox, wanted engine.Wanted, why engine.Termination) error {
	if err := tx.EndSandbox(sb.ID, why); err != nil {
		return err
	}
	sb.Wanted, sb.Ending = wanted, why
	if err := tx.PutSandbox(&sb); err != nil {
		return err
	}
	procs, err := tx.ProcessesOf(sb.ID)
	if err != nil {
		return err
	}
	for _, ps := range procs {
		if ps.Wanted == engine.WantStopped && ps.State.Over() {
			continue
		}
		ps.Wanted = engine.WantStopped
		if err := tx.PutProcess(ps); err != nil {
			return err
		}
	}
	return nil
}

// lastCopy reports whether deleting a cold sandbox is refused because no
// remote archive is known to hold its workspace (pool.keep_last_copy).
func (p *Pool) lastCopy(id engine.SandboxID) bool {
	if !p.Policy.KeepLastCopy {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.held[id]
}

// Busy reports whether a command runs in a sandbox, or is to.
func Busy(tx *store.Tx, id engine.SandboxID) (bool, error) {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return false, err
	}
	procs, err := tx.ProcessesOf(id)
	return busy(sb, procs), err
}
