package local

import (
	"context"
	"fmt"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// changeFiles does an action on the files of a workspace between two
// checkpoints, so that it can be undone. What it does to the files comes first
// and the receipt after: an engine that dies in between leaves them changed.
// The caller has the sandbox's turn until the receipt is written.
func (e *Engine) changeFiles(ctx context.Context, a engine.Action) (effect, error) {
	id := engine.SandboxID(a.Body.Subject())
	bx, err := e.box(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &change{e: e, box: bx, id: id, by: a.By}
	if b, ok := a.Body.(engine.SaveCheckpoint); ok {
		return c.save(ctx, b)
	}
	if err := c.check(ctx, a.Body); err != nil {
		return nil, err
	}
	before, saveErr := bx.Checkpoints().Save(ctx, "before a change")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if saveErr != nil && needsCheckpoint(a.Body) {
		return nil, saveErr
	}
	c.before = before
	if err := c.do(ctx, a.Body); err != nil {
		return nil, err
	}
	return c.record(ctx, saveErr)
}

// changesFiles reports whether an action is done by changeFiles.
func changesFiles(body engine.ActionBody) bool {
	switch body.(type) {
	case engine.WriteFile, engine.PlaceFile, engine.MakeDir, engine.RenameFile, engine.RemoveFile,
		engine.SaveCheckpoint, engine.RestoreCheckpoint, engine.RollBack, engine.Undo:
		return true
	}
	return false
}

// needsCheckpoint reports whether an action is about checkpoints: it can't do
// without, as a plain write can on a host that has no git.
func needsCheckpoint(body engine.ActionBody) bool {
	switch body.(type) {
	case engine.RestoreCheckpoint, engine.RollBack, engine.Undo:
		return true
	}
	return false
}

// change is one action on files.
type change struct {
	e      *Engine
	box    driver.Box
	id     engine.SandboxID
	by     engine.Actor
	before string // the tree before it

	words   string
	version engine.Version
	note    string
	undoes  *engine.Checkpoint
	created bool // a directory was made: there is nothing to record
}

// check refuses what would work against a heal that is under way.
func (c *change) check(ctx context.Context, body engine.ActionBody) error {
	if !needsCheckpoint(body) {
		return nil
	}
	return c.e.store.View(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(c.id)
		if err == nil && sb.Health == engine.Healing {
			err = engine.Errorf(engine.Conflict, "%s is being healed: both would change its files", sb.Name).
				WithHint("wait for the run, or abort it: sbx heal --cancel %s", sb.Name)
		}
		return err
	})
}

func (c *change) do(ctx context.Context, body engine.ActionBody) (err error) {
	tree := c.box.Tree()
	switch b := body.(type) {
	case engine.WriteFile:
		c.words = "write " + b.Name
		c.version, err = c.write(ctx, b)
	case engine.PlaceFile:
		c.words = "put " + b.Name
		c.version, err = tree.Place(ctx, b)
	case engine.MakeDir:
		c.words, c.created = "make "+b.Name, true
		made, err2 := tree.MakeDir(ctx, b.Name)
		if err = err2; err == nil && !made {
			c.note = "is there already"
		}
	case engine.RenameFile:
		c.words = fmt.Sprintf("rename %s to %s", b.From, b.To)
		err = tree.Rename(ctx, b.From, b.To, b.Overwrite)
	case engine.RemoveFile:
		c.words = "delete " + b.Name
		err = tree.Remove(ctx, b.Name, b.Recursive)
	case engine.RestoreCheckpoint:
		err = c.restore(ctx, b)
	case engine.RollBack:
		err = c.rollBack(ctx, b)
	case engine.Undo:
		err = c.undo(ctx)
	}
	return err
}

// write replaces a file. The retry of one that was cut finds the content that
// it wanted there, and takes that for done.
func (c *change) write(ctx context.Context, b engine.WriteFile) (engine.Version, error) {
	if len(b.Data) > engine.MaxFile {
		return "", engine.Errorf(engine.Invalid, "%s has %d bytes: %d is the most", b.Name, len(b.Data), engine.MaxFile).
			WithHint("larger files are uploaded: sbx files put")
	}
	version, err := c.box.Files().WriteFile(ctx, b.Name, b.Replaces, b.Data)
	if engine.AsCode(err) == engine.Conflict {
		if now, err2 := c.box.Files().ReadFile(ctx, b.Name, 0, 0); err2 == nil && string(now.Data) == string(b.Data) {
			return now.Version, nil
		}
	}
	return version, err
}

// record is the effect of what was done: the checkpoint before it, with what
// changed since. From here on nothing makes the action fail: it is done.
func (c *change) record(ctx context.Context, saveErr error) (effect, error) {
	ctx = context.WithoutCancel(ctx)
	var cp *engine.Checkpoint
	if !c.created {
		cp = c.checkpoint(ctx, saveErr)
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox, r.Version, r.Note = c.id, c.version, c.note
		if c.undoes != nil {
			c.undoes.Change.Undone = true
			if err := tx.PutCheckpoint(*c.undoes); err != nil {
				return err
			}
		}
		if cp == nil {
			return nil
		}
		cp.Created, r.Checkpoint = tx.Now, cp.ID
		if err := tx.PutCheckpoint(*cp); err != nil {
			return err
		}
		return dropOldChanges(tx, c.id)
	}, nil
}

func (c *change) checkpoint(ctx context.Context, saveErr error) *engine.Checkpoint {
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	fail := func(err error) *engine.Checkpoint {
		c.say("this can't be undone: " + err.Error())
		return nil
	}
	if saveErr != nil {
		return fail(saveErr)
	}
	after, err := c.box.Checkpoints().Save(ctx, "after a change")
	if err != nil {
		return fail(err)
	}
	diff, err := c.box.Checkpoints().Diff(ctx, c.before, after)
	if err != nil {
		return fail(err)
	}
	if len(diff.Changes) == 0 {
		return nil // in what checkpoints keep nothing changed
	}
	cp := &engine.Checkpoint{
		ID: engine.CheckpointID(engine.NewID(engine.CheckpointPrefix)), Sandbox: c.id, Tree: c.before,
		Change: &engine.FileChange{By: c.by, Words: c.words, After: after},
	}
	for _, ch := range diff.Changes[:min(len(diff.Changes), engine.MaxChangePaths)] {
		cp.Change.Paths = append(cp.Change.Paths, ch.Path)
	}
	cp.Change.More = len(diff.Changes) - len(cp.Change.Paths)
	if c.undoes != nil {
		cp.Change.Undoes = c.undoes.ID
	}
	return cp
}

// saveWithin bounds the checkpoint after a change.
const saveWithin = time.Minute

func (c *change) say(note string) {
	if c.note != "" {
		note = c.note + "; " + note
	}
	c.note = note
}

// save keeps the workspace as it is because somebody asked for it.
func (c *change) save(ctx context.Context, b engine.SaveCheckpoint) (effect, error) {
	if len(b.Note) > maxNote {
		return nil, engine.Errorf(engine.Invalid, "the note is longer than %d bytes", maxNote)
	}
	tree, err := c.box.Checkpoints().Save(ctx, "asked for")
	if err != nil {
		return nil, err
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		cp := engine.Checkpoint{
			ID: engine.CheckpointID(engine.NewID(engine.CheckpointPrefix)), Sandbox: c.id, Manual: true,
			Note: b.Note, Tree: tree, Created: tx.Now,
		}
		r.Sandbox, r.Checkpoint = c.id, cp.ID
		return tx.PutCheckpoint(cp)
	}, nil
}

const maxNote = 1000

// Bounds of what is kept of a sandbox.
const keepChanges = 50

// dropOldChanges forgets what nobody will undo any more.
func dropOldChanges(tx *store.Tx, id engine.SandboxID) error {
	all, err := tx.Checkpoints(id)
	if err != nil {
		return err
	}
	left := keepChanges
	for _, cp := range all {
		if cp.Change == nil {
			continue
		}
		if left--; left >= 0 {
			continue
		}
		if err := tx.DropCheckpoint(cp.ID); err != nil {
			return err
		}
	}
	return nil
}
