//go:build linux

package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"sbx/engine"
)

// Bounds of a walk: what is deeper or more numerous is a sandbox's prank.
const (
	maxDepth   = 200
	maxEntries = 1_000_000
)

// rebuildable are the directories whose content a clean install or the program
// itself makes again. No walk enters them and no checkpoint keeps them.
var rebuildable = map[string]bool{
	"node_modules":  true,
	".pnpm-store":   true,
	".venv":         true,
	"__pycache__":   true,
	".pytest_cache": true,
	".mypy_cache":   true,
	".ruff_cache":   true,
	".next":         true,
	".nuxt":         true,
	".svelte-kit":   true,
	".turbo":        true,
	".parcel-cache": true,
	".gradle":       true,
}

// skipped reports whether a directory's content is in no walk: rebuildable
// ones, and a git directory however its name is written, as git holds it.
func skipped(name string) bool {
	return rebuildable[name] || strings.EqualFold(name, ".git")
}

// skippedPath reports whether a path is, or lies in, something that
// checkpoints don't keep.
func skippedPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if skipped(part) || strings.HasPrefix(part, tempPrefix) {
			return true
		}
	}
	return false
}

// Walk calls fn for every entry beneath dir, sorted within each directory,
// with its path in the workspace. Of rebuildable directories and .git only the
// directory itself is told; links are told and not followed.
func (f *files) Walk(ctx context.Context, dir string, fn func(name string, fi engine.FileInfo) (stop bool)) error {
	dir, err := cleanName(dir)
	if err != nil {
		return err
	}
	r, err := f.b.openWorkspace()
	if err != nil {
		return err
	}
	defer r.Close()
	sub, err := enterAll(r, dir)
	if err != nil {
		return fileError("walk", dir, err)
	}
	defer sub.Close()
	w := walk{visit: func(d *os.Root, name string, st fs.FileInfo) error {
		fi := engine.FileInfo{Name: st.Name(), Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime()}
		if st.Mode()&fs.ModeSymlink != 0 {
			fi.Target, _ = d.Readlink(st.Name()) // gone or changed: then it has no target
		}
		if fn(name, fi) {
			return fs.SkipAll
		}
		if st.IsDir() && skipped(st.Name()) {
			return fs.SkipDir
		}
		return nil
	}}
	err = w.dir(ctx, sub, dir, 0)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// walk goes through a tree beneath a root, never following a link, and goes on
// where something vanishes under it.
type walk struct {
	// visit is called for each entry before what is in it; dir holds it.
	// SkipDir leaves a directory out, any other error ends the walk.
	visit func(dir *os.Root, name string, st fs.FileInfo) error
	// closed is told of a directory that could not be read; nil: passed over.
	closed func(name string)
	// after is called when a directory that visit did not leave out is done;
	// nil: never.
	after func(dir *os.Root, name string, st fs.FileInfo) error

	seen int
}

func (w *walk) dir(ctx context.Context, dir *os.Root, prefix string, depth int) error {
	names, err := entries(dir, maxEntries)
	if err != nil {
		return w.lost(prefix, err)
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasPrefix(name, tempPrefix) {
			continue
		}
		if w.seen++; w.seen > maxEntries {
			return engine.Errorf(engine.Exhausted, "the workspace has more than %d files", maxEntries)
		}
		st, err := dir.Lstat(name)
		if err != nil {
			if err := w.lost(path.Join(prefix, name), err); err != nil {
				return err
			}
			continue
		}
		if err := w.entry(ctx, dir, path.Join(prefix, name), st, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(ctx context.Context, dir *os.Root, name string, st fs.FileInfo, depth int) error {
	err := w.visit(dir, name, st)
	if errors.Is(err, fs.SkipDir) {
		return nil
	}
	if err != nil || !st.IsDir() {
		return err
	}
	if err := w.inside(ctx, dir, name, st, depth+1); err != nil {
		return err
	}
	if w.after != nil {
		return w.after(dir, name, st)
	}
	return nil
}

func (w *walk) inside(ctx context.Context, dir *os.Root, name string, st fs.FileInfo, depth int) error {
	if depth >= maxDepth {
		return w.lost(name, syscall.EACCES)
	}
	sub, err := enter(dir, st.Name())
	if err != nil {
		return w.lost(name, err)
	}
	defer sub.Close()
	return w.dir(ctx, sub, name, depth)
}

// lost decides what a failure to look at name means: gone is fine, unreadable
// is told, anything else ends the walk.
func (w *walk) lost(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return nil
	case errors.Is(err, fs.ErrPermission):
		if w.closed != nil {
			w.closed(name)
		}
		return nil
	}
	return fileError("walk", name, err)
}
