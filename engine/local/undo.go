package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/engine"
	"sbx/store"
)

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
