package pool

import (
	"context"
	"errors"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// makeBox makes a sandbox's box, or finds the one that it has, and says where
// its workspace came from:
//
//	has a box ─► workspace there ─► workspace
//	     │             └─ deleted behind our back ─┐
//	  is new ─┬─ takes over another's ─────────────┴─► archive ─┬─► local, remote
//	          └─ is nobody's yet ─► new                         └─ none ─► fresh
func (p *Pool) makeBox(ctx context.Context, sb engine.Sandbox) (engine.ResumePath, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Policy.BootTimeout)
	defer cancel()
	had := sb.Isolation != "" // it was booted before
	if had {
		_, err := p.Driver.Attach(ctx, sb.ID)
		switch {
		case err == nil: // booting what is there makes nothing
			_, err := p.Driver.Boot(ctx, driver.Boot{ID: sb.ID, Spec: sb.Spec, Origin: sb.Origin, Template: nothingIn})
			return engine.PathWorkspace, err
		case !driver.IsWorkspaceGone(err) && engine.AsCode(err) != engine.NotFound:
			return "", err
		}
		p.Log.Warn("pool: a workspace is gone", "sandbox", sb.ID)
	}
	if had || sb.Restore != "" {
		path, err := p.fromArchive(ctx, sb)
		if engine.AsCode(err) != engine.NotFound {
			return path, err
		}
	}
	if had && sb.Session == "" && !sb.PreWarmed {
		return "", engine.Errorf(engine.Unavailable, "%w, and no archive has it", driver.ErrWorkspaceGone).
			WithHint("put it back where it was, or remove the sandbox: sbx rm %s", sb.ID)
	}
	if err := p.bootNew(ctx, sb, had); err != nil {
		return "", err
	}
	if had || sb.Restore != "" {
		return engine.PathFresh, nil
	}
	return engine.PathNew, nil
}

func (p *Pool) bootNew(ctx context.Context, sb engine.Sandbox, anew bool) error {
	req := driver.Boot{ID: sb.ID, Spec: sb.Spec, Origin: sb.Origin, Anew: anew}
	if sb.Origin.Kind == engine.FromTemplate {
		unpack, err := p.Template(sb.Origin.Ref)
		if err != nil {
			return err
		}
		req.Template = unpack
	}
	_, err := p.Driver.Boot(ctx, req)
	return err
}

// bare is the origin of a box whose workspace comes from an archive, and
// nothingIn its template.
var bare = engine.Origin{Kind: engine.FromTemplate, Ref: "archive"}

func nothingIn(driver.FileWriter) error { return nil }

// fromArchive makes the box of a sandbox with what an archive has of it, or of
// the one that it takes over. Where none has it, nothing of the box is left.
func (p *Pool) fromArchive(ctx context.Context, sb engine.Sandbox) (engine.ResumePath, error) {
	none := engine.Errorf(engine.NotFound, "there is no archive of %s", sb.ID)
	if p.Archives == nil || sb.Origin.Kind == engine.FromAdopted {
		return "", none
	}
	from := sb.ID
	if sb.Restore != "" {
		from = sb.Restore
	}
	box, err := p.Driver.Boot(ctx, driver.Boot{ID: sb.ID, Spec: sb.Spec, Origin: bare, Template: nothingIn, Anew: true})
	if err != nil {
		return "", err
	}
	path, err := p.Archives.Restore(ctx, sb, from)
	if err != nil {
		err = errors.Join(err, box.Destroy(context.WithoutCancel(ctx)))
	}
	return path, err
}

// booted makes the sandbox one that is up: warm if it is nobody's yet, else
// waiting, or running where a command has waited for it.
func (p *Pool) booted(tx *store.Tx, sb engine.Sandbox, path engine.ResumePath) error {
	sb.Isolation, sb.Restore, sb.Ending = p.Driver.Isolation().Name, "", ""
	if err := tx.PutSandbox(&sb); err != nil {
		return err
	}
	if err := noteCame(tx, sb.ID, path); err != nil {
		return err
	}
	on := engine.Restored
	if sb.PreWarmed {
		on = engine.Booted
	}
	if _, err := tx.Fire(sb.ID, on); err != nil {
		return err
	}
	if _, err := tx.FireHealth(sb.ID, engine.Boot, "starting"); err != nil {
		return err
	}
	if err := WantProcesses(tx, sb); err != nil {
		return err
	}
	procs, err := tx.ProcessesOf(sb.ID)
	if err != nil || sb.PreWarmed || !busy(sb, procs) {
		return err
	}
	_, err = tx.Fire(sb.ID, engine.Begin)
	return err
}

// noteCame counts where the sandbox of a session that is being resumed came
// from. One that an engine brings back by itself is not counted.
func noteCame(tx *store.Tx, id engine.SandboxID, path engine.ResumePath) error {
	s, ok, err := tx.SessionOf(id)
	if err != nil || !ok || s.State != engine.SessionActive || s.Live {
		return err
	}
	s.Path, s.Told = path, ""
	if err := tx.PutSession(s); err != nil {
		return err
	}
	if name := store.CountPath(path); name != "" {
		return tx.Count(name)
	}
	return nil
}

// saveLast archives what is evicted while a session may still want it: its
// archive is all that will be left. It reports whether the sandbox stays,
// because that failed.
func (p *Pool) saveLast(ctx context.Context, sb engine.Sandbox) (stays bool, err error) {
	if !sb.Leaving || !p.archived(sb) {
		return false, nil
	}
	wanted := false
	err = p.Store.View(ctx, func(tx *store.Tx) error {
		_, wanted, err = tx.SessionOf(sb.ID)
		return err
	})
	if err != nil || !wanted {
		return false, err
	}
	saved := p.Archives.Save(ctx, sb)
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case saved == nil, driver.IsWorkspaceGone(saved):
		return false, nil
	}
	return true, p.Store.Update(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(sb.ID)
		if err != nil {
			return err
		}
		sb.Wanted = engine.Down
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		return p.settled(tx, sb.ID, saved)
	})
}
