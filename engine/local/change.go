package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// changeFiles does an action on the files of a workspace between two
// checkpoints, so that it can be undone. What it does to the files comes first
// and the receipt after: an engine that dies in between leaves them changed.
func (e *Engine) changeFiles(ctx context.Context, a engine.Action) (effect, error) {
	id := engine.SandboxID(a.Body.Subject())
	bx, err := e.box(ctx, id)
	if err != nil {
		return nil, err
	}
	defer e.changing.lock(id)()
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

// restore puts files back as they were in a checkpoint.
func (c *change) restore(ctx context.Context, b engine.RestoreCheckpoint) error {
	cp, err := c.find(ctx, b.Checkpoint)
	if err != nil {
		return err
	}
	c.words = "restore checkpoint " + string(cp.ID)
	diff, err := c.box.Checkpoints().Diff(ctx, c.before, cp.Tree)
	if err != nil {
		return err
	}
	var paths []string
	for _, ch := range diff.Changes {
		if len(b.Paths) == 0 || slices.ContainsFunc(b.Paths, func(p string) bool { return within(ch.Path, p) }) {
			paths = append(paths, ch.Path)
		}
	}
	if len(paths) == 0 {
		c.note = "nothing differs from the checkpoint"
		return nil
	}
	return c.box.Checkpoints().Restore(ctx, cp.Tree, paths)
}

// within reports whether a path is p or lies beneath it.
func within(path, p string) bool {
	p = strings.TrimSuffix(p, "/")
	return path == p || p == "." || strings.HasPrefix(path, p+"/")
}

// find is a checkpoint of the sandbox; "" is the last good one.
func (c *change) find(ctx context.Context, id engine.CheckpointID) (found engine.Checkpoint, err error) {
	err = c.e.store.View(ctx, func(tx *store.Tx) error {
		all, err := tx.Checkpoints(c.id)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(cp engine.Checkpoint) bool { return cp.ID == id || id == "" && cp.Good })
		switch {
		case i >= 0:
			found = all[i]
			return nil
		case id == "":
			return engine.Errorf(engine.NotFound, "there is no good checkpoint yet").WithHint("see all: sbx checkpoint ls %s", c.id)
		}
		return engine.Errorf(engine.NotFound, "no checkpoint %s of this sandbox", id).WithHint("see them: sbx checkpoint ls %s", c.id)
	})
	return found, err
}

// rollBack puts back what a heal run changed.
func (c *change) rollBack(ctx context.Context, b engine.RollBack) error {
	run, err := c.run(ctx, b.Run)
	if err != nil {
		return err
	}
	c.words = "roll back heal run " + string(run.ID)
	cp, err := c.find(ctx, run.Checkpoint)
	if err != nil {
		return errors.Join(engine.Errorf(engine.NotFound, "what the files were before run %s is kept no more", run.ID), err)
	}
	diff, err := c.box.Checkpoints().Diff(ctx, c.before, cp.Tree)
	if err != nil {
		return err
	}
	var paths, kept []string
	for _, ch := range diff.Changes {
		if !slices.ContainsFunc(run.Changed, func(p string) bool { return within(ch.Path, p) }) {
			continue
		}
		if c.changedAfter(ctx, ch.Path, run.Ended) {
			kept = append(kept, ch.Path)
		} else {
			paths = append(paths, ch.Path)
		}
	}
	if len(kept) > 0 {
		c.say("kept, because they changed after the run: " + names(kept))
	}
	if len(paths) == 0 {
		c.say("nothing was put back")
		return nil
	}
	return c.box.Checkpoints().Restore(ctx, cp.Tree, paths)
}

// changedAfter reports whether a file was written after a moment.
func (c *change) changedAfter(ctx context.Context, name string, at time.Time) bool {
	f, r, err := c.box.Tree().Open(ctx, name, 0)
	if err != nil {
		return false // it is gone, or no file any more: then it was the run's
	}
	r.Close()
	return f.ModTime.After(at)
}

// run is a run that changed files: the one that is named, or the last.
func (c *change) run(ctx context.Context, id engine.RunID) (run engine.HealRun, err error) {
	err = c.e.store.View(ctx, func(tx *store.Tx) error {
		if id != "" {
			run, err = tx.Run(id)
			if err == nil && run.Sandbox != c.id {
				err = engine.Errorf(engine.NotFound, "run %s is not of this sandbox", id)
			}
			return err
		}
		runs, err := tx.RunsOf(c.id, time.Time{})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if len(r.Changed) > 0 && r.Started.After(run.Started) {
				run = r
			}
		}
		return nil
	})
	if err == nil && len(run.Changed) == 0 {
		err = engine.Errorf(engine.Conflict, "no heal run has changed files that stayed changed").WithHint("see what they did: sbx logs --healer %s", c.id)
	}
	return run, err
}

func names(list []string) string {
	const most = 5
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// undo takes back the last change that isn't, if every file that it changed is
// still as it left it.
func (c *change) undo(ctx context.Context) error {
	last, err := c.last(ctx)
	if err != nil {
		return err
	}
	did, err := c.box.Checkpoints().Diff(ctx, last.Tree, last.Change.After)
	if err != nil {
		return err
	}
	since, err := c.box.Checkpoints().Diff(ctx, last.Change.After, c.before)
	if err != nil {
		return err
	}
	moved := map[string]bool{}
	for _, ch := range since.Changes {
		moved[ch.Path] = true
	}
	var paths, gone []string
	for _, ch := range did.Changes {
		paths = append(paths, ch.Path)
		if moved[ch.Path] {
			gone = append(gone, ch.Path)
		}
	}
	if len(gone) > 0 {
		return engine.Errorf(engine.Conflict, "%q changed again after that: undoing it would lose the later change: %s", last.Change.Words, names(gone)).
			WithHint("put back single files instead: sbx checkpoint restore %s %s PATH", c.id, last.ID)
	}
	c.words, c.undoes = "undo "+last.Change.Words, &last
	if last.Change.Undoes != "" {
		c.words = "redo " + strings.TrimPrefix(last.Change.Words, "undo ")
	}
	return c.box.Checkpoints().Restore(ctx, last.Tree, paths)
}

func (c *change) last(ctx context.Context) (last engine.Checkpoint, err error) {
	err = c.e.store.View(ctx, func(tx *store.Tx) error {
		all, err := tx.Checkpoints(c.id)
		if err != nil {
			return err
		}
		for _, cp := range all {
			if cp.Change != nil && !cp.Change.Undone {
				last = cp
				return nil
			}
		}
		return engine.Errorf(engine.Conflict, "there is no change of files to undo").
			WithHint("changes by the sandbox itself are not recorded: see sbx checkpoint ls %s", c.id)
	})
	return last, err
}
