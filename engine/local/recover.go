package local

import (
	"context"

	"sbx/engine"
	"sbx/engine/pool"
	"sbx/engine/process"
	"sbx/store"
)

// recover makes the rows true after an engine that is gone, however it went:
// what its shims kept running goes on, whatever else it left is killed, what it
// called live is cold, and what is wanted up is on its way up again. Open heal runs are left to the healer,
// which rolls them back before anything of theirs is started.
func (e *Engine) recover(ctx context.Context) error {
	kept, err := e.inherit(ctx)
	if err != nil {
		return err
	}
	killed, err := e.cfg.Driver.Reap(ctx)
	if err != nil {
		return err
	}
	for _, k := range killed {
		e.cfg.Log.Warn("killed what an engine before this one left running", "what", k)
	}
	var ended []engine.ProcessID
	err = e.store.Update(ctx, func(tx *store.Tx) error {
		if err := leftAlone(tx); err != nil {
			return err
		}
		ended, err = process.Recover(tx, kept)
		if err != nil {
			return err
		}
		on, err := goingOn(tx, kept)
		if err != nil {
			return err
		}
		all, err := tx.Sandboxes()
		if err != nil {
			return err
		}
		for _, sb := range all {
			if on[sb.ID] {
				continue
			}
			if err := bringBack(tx, sb); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range ended { // followers of a command that was cut come to an end
		if err := e.logs.End(id); err != nil {
			e.cfg.Log.Warn("ending a log", "process", id, "err", err)
		}
	}
	return nil
}

// bringBack makes a sandbox cold that was live, and warming if it is wanted up.
func bringBack(tx *store.Tx, sb engine.Sandbox) error {
	if sb.State.Live() {
		if err := pool.Park(tx, sb, engine.Lost, "the engine stopped"); err != nil {
			return err
		}
	} else if sb.State != engine.Cold {
		return nil
	}
	if sb.Wanted != engine.Up {
		return nil
	}
	_, err := tx.Fire(sb.ID, engine.Resume)
	return err
}

// park makes live sandboxes cold when the engine leaves and their processes
// have been stopped. They stay wanted up, so the next engine starts them. Those
// with a process that goes on stay as they are.
func (e *Engine) park(ctx context.Context) error {
	return e.store.Update(ctx, func(tx *store.Tx) error {
		all, err := tx.Sandboxes()
		if err != nil {
			return err
		}
		on, err := stillAlive(tx)
		if err != nil {
			return err
		}
		for _, sb := range all {
			if sb.State.Live() && !on[sb.ID] {
				if err := pool.Park(tx, sb, engine.Stop, "the engine stopped"); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// stillAlive are the sandboxes of which a process lives: when the supervisor
// has left, one that goes on.
func stillAlive(tx *store.Tx) (map[engine.SandboxID]bool, error) {
	live, err := tx.LiveProcesses()
	ids := map[engine.SandboxID]bool{}
	for _, p := range live {
		if p.State.Alive() {
			ids[p.Sandbox] = true
		}
	}
	return ids, err
}
