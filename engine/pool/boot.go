package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// boot makes a warming sandbox's box and wants its processes running; from
// there on the supervisor has it. What can't be booted is cold again, with the
// reason, and waits for an operator.
func (p *Pool) boot(ctx context.Context, sb engine.Sandbox) error {
	cuttable, done := p.cuttable(ctx, sb.ID)
	defer done()
	if up, err := p.wantedUp(ctx, sb.ID); err != nil || !up { // from here on cutBoot is heard
		return ignoreConflict(err)
	}
	path, err := p.makeBoxInTurn(cuttable, sb)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errUnwanted):
		return nil // the next look reads what is wanted now
	}
	var cut []engine.ProcessID
	err2 := p.Store.Update(ctx, func(tx *store.Tx) error {
		now, err2 := tx.Sandbox(sb.ID)
		if err2 != nil || now.State != engine.Warming || now.Wanted != engine.Up {
			return ignoreConflict(err2) // wanted otherwise meanwhile: the next look sees to it
		}
		if err != nil {
			cut, err2 = bootFailed(tx, now, err)
			return err2
		}
		return p.booted(tx, now, path)
	})
	if err2 != nil {
		return err2
	}
	for _, id := range cut {
		if err := p.EndLog(id); err != nil {
			p.Log.Warn("pool: ending the log of a command that can't run", "process", id, "err", err)
		}
	}
	return nil
}

func (p *Pool) wantedUp(ctx context.Context, id engine.SandboxID) (up bool, err error) {
	err = p.Store.View(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(id)
		up = sb.Wanted == engine.Up
		return err
	})
	return up, err
}

// makeBoxInTurn makes a box when there is room, until ctx is cut.
func (p *Pool) makeBoxInTurn(ctx context.Context, sb engine.Sandbox) (engine.ResumePath, error) {
	select {
	case p.boots <- struct{}{}:
		defer func() { <-p.boots }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	path, err := p.makeBox(ctx, sb)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // whatever the driver calls a cut
	}
	return path, err
}

// bootFailed makes the sandbox cold and returns the commands that had waited
// for this start and now can't run.
func bootFailed(tx *store.Tx, sb engine.Sandbox, cause error) (cut []engine.ProcessID, err error) {
	if _, err := tx.Fire(sb.ID, engine.BootFailed); err != nil {
		return nil, err
	}
	if sb, err = tx.Sandbox(sb.ID); err != nil {
		return nil, err
	}
	// Not tried again by itself: a template that can't boot would be tried for ever.
	sb.Wanted = engine.Down
	sb.Reason = fmt.Sprintf("could not be started: %v", cause)
	if hint := engine.Hint(cause); hint != "" {
		sb.Reason += ": " + hint
	}
	if err := tx.PutSandbox(&sb); err != nil {
		return nil, err
	}
	procs, err := tx.ProcessesOf(sb.ID)
	if err != nil {
		return nil, err
	}
	for _, ps := range procs {
		if !ps.Once() || ps.State.Over() {
			continue
		}
		ps.Wanted, ps.State = engine.WantStopped, engine.ProcessExited
		ps.Exit = &engine.Exit{Code: engine.ExitNotExecutable, Error: sb.Reason, At: tx.Now}
		if err := tx.PutProcess(ps); err != nil {
			return nil, err
		}
		cut = append(cut, ps.ID)
	}
	return cut, nil
}

// WantProcesses makes the rows of a sandbox's supervised processes and wants
// them running. Rows that are there keep their ids, logs and ports.
func WantProcesses(tx *store.Tx, sb engine.Sandbox) error {
	have, err := tx.ProcessesOf(sb.ID)
	if err != nil {
		return err
	}
	byName := map[string]engine.Process{}
	for _, ps := range have {
		if ps.Kind == engine.Supervised {
			byName[ps.Name] = ps
		}
	}
	for _, spec := range sb.Spec.All() {
		ps, ok := byName[spec.Name]
		if !ok {
			ps = engine.Process{
				ID:      engine.ProcessID(engine.NewID(engine.ProcessPrefix)),
				Sandbox: sb.ID,
				Name:    spec.Name,
				Kind:    engine.Supervised,
				State:   engine.ProcessStopped,
			}
		}
		ps.Command = engine.Command{Shell: spec.Command, Env: spec.Env}
		ps.Wanted = engine.WantRunning
		if spec.Port != 0 {
			ps.Port = spec.Port
		}
		if err := tx.PutProcess(ps); err != nil {
			return err
		}
	}
	return nil
}

// Park makes a live sandbox cold: its processes are down or gone.
func Park(tx *store.Tx, sb engine.Sandbox, why engine.LifeTrigger, reason string) error {
	if _, err := tx.Fire(sb.ID, why); err != nil {
		return err
	}
	if sb.Health == engine.Unknown || sb.Health == engine.Healing {
		return nil // nothing to say, or the healer says it when it has cut its run
	}
	_, err := tx.FireHealth(sb.ID, engine.WentDown, reason)
	return err
}

// remove deletes a sandbox whose processes are down: files and logs first, the
// record last, so that what was cut in between is done again.
func (p *Pool) remove(ctx context.Context, sb engine.Sandbox, procs []engine.Process) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if stays, err := p.saveLast(ctx, sb); stays || err != nil {
		return err
	}
	box, err := p.Driver.Attach(ctx, sb.ID)
	switch {
	case engine.AsCode(err) == engine.NotFound: // never booted
	case driver.IsWorkspaceGone(err): // what is left of it goes with a box made anew
		if box, err = p.Driver.Boot(ctx, driver.Boot{ID: sb.ID, Spec: sb.Spec, Origin: bare, Template: nothingIn, Anew: true}); err != nil {
			return err
		}
		if err := box.Destroy(ctx); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := box.Destroy(ctx); err != nil {
			return err
		}
	}
	for _, ps := range procs {
		if err := p.Forget(ps.ID); err != nil {
			return err
		}
	}
	if err := p.dropArchive(ctx, sb); err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.held, sb.ID)
	p.mu.Unlock()
	return ignoreConflict(p.Store.Update(ctx, func(tx *store.Tx) error { return tx.RemoveSandbox(sb.ID) }))
}

// dropArchive deletes the local archive of what is removed, unless a session
// may want it again or somebody is being made of it.
func (p *Pool) dropArchive(ctx context.Context, sb engine.Sandbox) error {
	if p.Archives == nil {
		return nil
	}
	wanted := false
	err := p.Store.Update(ctx, func(tx *store.Tx) error {
		_, open, err := tx.SessionOf(sb.ID)
		wanted = tx.Restoring(sb.ID) || open && sb.Ending != engine.EndedByCleanup
		return err
	})
	if err != nil || wanted {
		return err
	}
	return p.Archives.Drop(ctx, sb.ID)
}
