package local

import (
	"context"
	"fmt"
	"path/filepath"

	"sbx/engine"
	"sbx/engine/archive"
	"sbx/engine/pool"
	"sbx/store"
)

// openArchives opens the keeper of archives: the configured one, or a
// directory beside the store.
func (e *Engine) openArchives() error {
	e.keeper = e.cfg.Keeper
	if e.keeper == nil {
		e.keeper = &archive.Keeper{}
	}
	if e.keeper.Dir == "" {
		e.keeper.Dir = filepath.Join(e.cfg.Dir, "archives")
	}
	if e.keeper.Log == nil {
		e.keeper.Log = e.cfg.Log
	}
	if err := e.keeper.Open(); err != nil {
		return fmt.Errorf("open archives: %w", err)
	}
	return nil
}

// poolArchives are the archives as the pool uses them.
func (e *Engine) poolArchives() pool.Archives {
	if e.cfg.Archives != nil {
		return e.cfg.Archives
	}
	return kept{e}
}

// kept are the keeper's archives.
type kept struct{ e *Engine }

var _ pool.Archives = kept{}

// Save archives the workspace of a sandbox whose processes are down. An
// adopted directory stays where it is: it needs no archive.
func (k kept) Save(ctx context.Context, sb engine.Sandbox) error {
	if sb.Origin.Kind == engine.FromAdopted {
		return nil
	}
	bx, err := k.e.cfg.Driver.Attach(ctx, sb.ID)
	if err != nil {
		return err
	}
	_, _, err = k.e.keeper.Save(ctx, sb, bx.Archives())
	return err
}

// Restore replaces a workspace by what was archived of the sandbox from.
func (k kept) Restore(ctx context.Context, sb engine.Sandbox, from engine.SandboxID) (engine.ResumePath, error) {
	if sb.Origin.Kind == engine.FromAdopted {
		return "", engine.Errorf(engine.NotFound, "an adopted directory has no archive")
	}
	bx, err := k.e.cfg.Driver.Attach(ctx, sb.ID)
	if err != nil {
		return "", err
	}
	where, err := k.e.keeper.Restore(ctx, from, bx.Archives(), "")
	if where == engine.ArchiveRemote {
		return engine.PathRemote, err
	}
	return engine.PathLocal, err
}

// Remote reports whether the remote archive is of the last Save.
func (k kept) Remote(_ context.Context, id engine.SandboxID) bool { return k.e.keeper.Uploaded(id) }

// Drop deletes the local archive, and of a sandbox that somebody removed the
// remote one too. After a cold cleanup that stays.
func (k kept) Drop(ctx context.Context, id engine.SandboxID) error {
	if sb, err := k.e.sandboxOf(ctx, id); err == nil && sb.Ending == engine.EndedByRemoval {
		return k.e.keeper.Remove(ctx, id, "")
	}
	return k.e.keeper.Drop(ctx, id)
}

// archiveAction saves, restores or deletes an archive.
func (e *Engine) archiveAction(ctx context.Context, a engine.Action) (effect, error) {
	id := engine.SandboxID(a.Body.Subject())
	sb, err := e.sandboxOf(ctx, id)
	if err != nil {
		if b, ok := a.Body.(engine.RemoveArchive); ok && engine.AsCode(err) == engine.NotFound {
			return e.removeArchive(ctx, b, err)
		}
		return nil, err
	}
	var note string
	switch b := a.Body.(type) {
	case engine.SaveArchive:
		note, err = e.saveArchive(ctx, sb)
	case engine.RestoreArchive:
		note, err = e.restoreArchive(ctx, sb, b.Where)
	case engine.RemoveArchive:
		return e.removeArchive(ctx, b, engine.Errorf(engine.NotFound, "%s has no archive", sb.Name))
	}
	if err != nil {
		return nil, err
	}
	return archived(id, note), nil
}

func archived(id engine.SandboxID, note string) effect {
	return func(_ *store.Tx, r *engine.Receipt) error {
		r.Sandbox, r.Note = id, note
		return nil
	}
}

func (e *Engine) saveArchive(ctx context.Context, sb engine.Sandbox) (note string, err error) {
	bx, err := e.cfg.Driver.Attach(ctx, sb.ID)
	if err != nil {
		return "", err
	}
	a, wrote, err := e.keeper.Save(ctx, sb, bx.Archives())
	if err != nil {
		return "", err
	}
	if !wrote {
		return "unchanged since " + a.Saved.Format("2006-01-02 15:04:05 MST"), nil
	}
	return fmt.Sprintf("%d files, %s", a.Files, engine.Size(a.Size)), nil
}

// restoreArchive puts a stopped sandbox's workspace back. What it was is a
// checkpoint before: a restore by mistake loses nothing but what no checkpoint
// keeps.
func (e *Engine) restoreArchive(ctx context.Context, sb engine.Sandbox, where engine.ArchivePlace) (note string, err error) {
	if sb.State.Live() || sb.Wanted == engine.Up {
		return "", engine.Errorf(engine.Conflict, "%s is %s: its processes use the files", sb.Name, sb.State).
			WithHint("stop it first: sbx stop %s", sb.Name)
	}
	switch where {
	case "", engine.ArchiveLocal, engine.ArchiveRemote:
	default:
		return "", engine.Errorf(engine.Invalid, "there is no place %q", string(where)).WithHint("local or remote")
	}
	bx, err := e.cfg.Driver.Attach(ctx, sb.ID)
	if err != nil {
		return "", err
	}
	defer e.changing.lock(sb.ID)()
	from, err := e.keeper.Restore(ctx, sb.ID, bx.Archives(), where)
	if err != nil {
		return "", err
	}
	return "restored from the " + string(from) + " archive", nil
}

// removeArchive deletes an archive, that of a sandbox that is gone too.
func (e *Engine) removeArchive(ctx context.Context, b engine.RemoveArchive, none error) (effect, error) {
	have, err := e.keeper.List(b.Sandbox)
	if err != nil {
		return nil, err
	}
	if len(have) == 0 {
		return nil, none
	}
	if err := e.keeper.Remove(ctx, b.Sandbox, b.Where); err != nil {
		return nil, err
	}
	return archived(b.Sandbox, ""), nil
}

// Archives are those of a sandbox, or all that are known here.
func (e *Engine) Archives(ctx context.Context, id engine.SandboxID) ([]engine.Archive, error) {
	list, err := e.keeper.List(id)
	if err != nil || id == "" || len(list) > 0 {
		return list, err
	}
	_, err = e.sandboxOf(ctx, id)
	return nil, err
}

func (e *Engine) sandboxOf(ctx context.Context, id engine.SandboxID) (sb engine.Sandbox, err error) {
	err = e.store.View(ctx, func(tx *store.Tx) error {
		sb, err = tx.Sandbox(id)
		return err
	})
	return sb, err
}
