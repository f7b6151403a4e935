package local

import (
	"context"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// inherit looks at what outlived the engine before this one and says which of
// it goes on: what a row speaks of, in a sandbox that was up and is to be.
// Whatever else lives is killed, and its exits are nobody's news. A sandbox that
// was being healed starts anew, when its run has been rolled back.
func (e *Engine) inherit(ctx context.Context) (map[engine.ProcessID]bool, error) {
	heir, ok := e.cfg.Driver.(driver.Inheritor)
	if !ok {
		return nil, nil
	}
	all, err := heir.Inherit(ctx)
	if err != nil {
		return nil, err
	}
	kept := map[engine.ProcessID]bool{}
	err = e.store.View(ctx, func(tx *store.Tx) error {
		for _, k := range all {
			ok, err := goesOn(tx, k)
			if err != nil {
				return err
			}
			if ok {
				kept[k.Process] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if kept[k.Process] {
			e.inherited = append(e.inherited, k.Process)
			continue
		}
		if err := e.disown(ctx, k); err != nil {
			return nil, err
		}
	}
	if n := len(e.inherited); n > 0 {
		e.cfg.Log.Info("processes went on without an engine", "taken_up", n)
	}
	return kept, nil
}

func goesOn(tx *store.Tx, k driver.KeptProcess) (bool, error) {
	p, err := tx.Process(k.Process)
	if err == nil && p.State.Over() {
		return false, nil
	}
	var sb engine.Sandbox
	if err == nil {
		sb, err = tx.Sandbox(p.Sandbox)
	}
	if engine.AsCode(err) == engine.NotFound {
		return false, nil
	}
	return err == nil && sb.State.Live() && sb.State != engine.Warming && sb.Health != engine.Healing, err
}

// disown ends what must not go on.
func (e *Engine) disown(ctx context.Context, k driver.KeptProcess) error {
	box, err := e.cfg.Driver.Attach(ctx, k.Sandbox)
	if err != nil {
		return err
	}
	keeper, ok := box.(driver.Keeper)
	if !ok {
		return nil
	}
	p, ok := keeper.Kept(k.Process)
	if !ok {
		return nil
	}
	if !k.Exited {
		e.cfg.Log.Warn("killing what nobody wants any more", "sandbox", k.Sandbox, "process", k.Process, "pid", p.PID())
	}
	ctx, cancel := context.WithTimeout(ctx, disownWithin)
	defer cancel()
	if err := p.Kill(ctx, 0); err != nil {
		return err
	}
	p.Forget()
	return nil
}

// disownWithin bounds the killing of one process that nobody wants.
const disownWithin = 15 * time.Second

// goingOn are the sandboxes that have a process which goes on by itself.
func goingOn(tx *store.Tx, kept map[engine.ProcessID]bool) (map[engine.SandboxID]bool, error) {
	live, err := tx.LiveProcesses()
	ids := map[engine.SandboxID]bool{}
	for _, p := range live {
		if kept[p.ID] {
			ids[p.Sandbox] = true
		}
	}
	return ids, err
}
