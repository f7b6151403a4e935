package fake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"sbx/engine"
	"sbx/engine/driver"
)

// checkpoints are copies of the map.
type checkpoints struct{ b *Box }

// Checkpoints keeps copies of the workspace in memory.
func (b *Box) Checkpoints() driver.Checkpoints { return checkpoints{b} }

// Save names a copy by its content.
func (c checkpoints) Save(ctx context.Context, _ string) (string, error) {
	c.b.files.mu.Lock()
	all := maps.Clone(c.b.files.files)
	c.b.files.mu.Unlock()
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(sum, "%q %o %q\n", name, all[name].mode, all[name].data)
	}
	tree := hex.EncodeToString(sum.Sum(nil))
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.trees[tree] = all
	return tree, ctx.Err()
}

func (c checkpoints) tree(name string) (map[string]file, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	tree, ok := c.b.trees[name]
	if !ok {
		return nil, engine.Errorf(engine.NotFound, "there is no checkpoint %q", name)
	}
	return tree, nil
}

// Diff names what differs; its patch has the new contents.
func (c checkpoints) Diff(ctx context.Context, from, to string) (engine.Diff, error) {
	before, err := c.tree(from)
	if err != nil {
		return engine.Diff{}, err
	}
	after, err := c.tree(to)
	if err != nil {
		return engine.Diff{}, err
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	var d engine.Diff
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, was := before[name]
		b, is := after[name]
		ch := engine.Change{Path: name}
		if was {
			ch.Before = string(versionOf(a.data))
		}
		if is {
			ch.After = string(versionOf(b.data))
		}
		switch {
		case was && is && bytes.Equal(a.data, b.data) && a.mode == b.mode:
			continue
		case !was:
			ch.Status = engine.Added
		case !is:
			ch.Status = engine.Deleted
		default:
			ch.Status = engine.Modified
		}
		d.Changes = append(d.Changes, ch)
		d.Patch += fmt.Sprintf("--- %s\n+++ %s\n%s\n", name, name, b.data)
	}
	return d, ctx.Err()
}

// Restore puts paths back.
func (c checkpoints) Restore(ctx context.Context, tree string, paths []string) error {
	saved, err := c.tree(tree)
	if err != nil {
		return err
	}
	c.b.files.mu.Lock()
	defer c.b.files.mu.Unlock()
	for _, name := range paths {
		if x, ok := saved[name]; ok {
			c.b.files.files[name] = x
		} else {
			delete(c.b.files.files, name)
		}
	}
	return ctx.Err()
}

// Drop forgets the others.
func (c checkpoints) Drop(ctx context.Context, keep []string) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	maps.DeleteFunc(c.b.trees, func(tree string, _ map[string]file) bool { return !slices.Contains(keep, tree) })
	return ctx.Err()
}

// Dirty: there is no repository.
func (c checkpoints) Dirty(ctx context.Context) (paths []string, ok bool, why string, err error) {
	return nil, false, "no git repository", ctx.Err()
}

// Commit has nowhere to commit to.
func (c checkpoints) Commit(context.Context, []string, string) (string, error) {
	return "", engine.Errorf(engine.Unavailable, "there is no git repository")
}
