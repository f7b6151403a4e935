//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sbx/engine"
)

// stageTree writes the blobs that it is given into the stage, each under the
// number that stands for its path: nothing of the workspace is read or
// written, and no name can mean anything to git.
const stageTree = `
rm -rf "$GIT_DIR/stage" "$GIT_DIR/stage.index"
mkdir "$GIT_DIR/stage"
git update-index -z --index-info
GIT_WORK_TREE="$GIT_DIR/stage" git checkout-index -q -f -a
`

// Restore puts paths back as they were in tree. First all of it is laid out
// beside the workspace, so that a full disk or a broken object leaves the
// workspace as it is. Paths that can't be put back without touching others
// stay, and the error (Conflict) names them.
func (c *checkpoints) Restore(ctx context.Context, tree string, paths []string) error {
	for _, p := range paths {
		if why := badKept(p); why != "" {
			return engine.Errorf(engine.Invalid, "restore %.80q: %s", p, why)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	rs := &restore{b: c.b, paths: slices.Compact(slices.Sorted(slices.Values(paths))), extra: c.notes().Extra[tree]}
	if err := c.stage(ctx, tree, rs); err != nil {
		return gitFailed("restore", err)
	}
	defer os.RemoveAll(filepath.Join(c.b.shadow(), "stage")) // else the next Restore does it
	return rs.apply(ctx, filepath.Join(c.b.shadow(), "stage"))
}

// badKept says why no checkpoint can hold a path.
func badKept(name string) string {
	switch why := badPath(name); {
	case why != "":
		return why
	case name == "" || name == "." || path.Clean(name) != name:
		return "is no file's path"
	case skippedPath(name):
		return "is not kept in checkpoints"
	}
	return ""
}

// entry is a file or link in a tree.
type entry struct {
	mode, oid string
	staged    string // its name in the stage
}

// stage reads the tree and lays out what is to be restored.
func (c *checkpoints) stage(ctx context.Context, tree string, rs *restore) error {
	out, err := c.read(ctx, maxGitOut, `git ls-tree -r -z "$1"`, tree)
	if err != nil {
		return err
	}
	if rs.tree, err = parseTree(out); err != nil {
		return err
	}
	var want bytes.Buffer
	for i, p := range rs.paths {
		if e, ok := rs.tree[p]; ok {
			e.staged = strconv.Itoa(i)
			rs.tree[p] = e
			fmt.Fprintf(&want, "%s %s\t%s\x00", e.mode, e.oid, e.staged)
		}
	}
	_, err = c.git(ctx, stageTree, want.Bytes(), "GIT_INDEX_FILE="+filepath.Join(c.b.shadow(), "stage.index"))
	return err
}

// parseTree reads the output of ls-tree -r -z: "mode type id TAB path NUL".
func parseTree(out []byte) (map[string]entry, error) {
	tree := make(map[string]entry)
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if line == "" {
			continue
		}
		if !ok || len(fields) != 3 {
			return nil, engine.Errorf(engine.Internal, "read checkpoint: git said %.80q", line)
		}
		tree[name] = entry{mode: fields[0], oid: fields[2]}
	}
	return tree, nil
}

// restore is one Restore under way.
type restore struct {
	b     *box
	paths []string // sorted
	tree  map[string]entry
	extra extra
	dirs  map[string]bool // of the tree, empty ones too
	stuck []string        // what could not be put back, and why
}

func (rs *restore) apply(ctx context.Context, stage string) error {
	r, err := rs.b.openWorkspace()
	if err != nil {
		return err
	}
	defer r.Close()
	from, err := os.OpenRoot(stage)
	if err != nil {
		return engine.Errorf(engine.Internal, "restore: open what git laid out: %w", err)
	}
	defer from.Close()
	rs.findDirs()
	for _, p := range slices.Backward(rs.paths) { // what is in a directory, then the directory
		if _, keep := rs.tree[p]; !keep {
			rs.note(p, rs.remove(r, p))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, p := range rs.paths {
		if e, ok := rs.tree[p]; ok {
			rs.note(p, rs.write(r, from, p, e))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return rs.err()
}

func (rs *restore) findDirs() {
	rs.dirs = map[string]bool{".": true}
	add := func(dir string) {
		for ; !rs.dirs[dir]; dir = path.Dir(dir) {
			rs.dirs[dir] = true
		}
	}
	for name := range rs.tree {
		add(path.Dir(name))
	}
	for _, name := range rs.extra.Empty {
		add(name)
	}
}

func (rs *restore) note(name string, err error) {
	if err != nil {
		rs.stuck = append(rs.stuck, fileError("restore", name, err).Error())
	}
}

func (rs *restore) err() error {
	if len(rs.stuck) == 0 {
		return nil
	}
	more := ""
	if n := len(rs.stuck) - 5; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return engine.Errorf(engine.Conflict, "%s%s", strings.Join(rs.stuck[:min(5, len(rs.stuck))], "; "), more)
}

// remove makes a path absent, and the directories that it leaves empty, unless
// the tree has those.
func (rs *restore) remove(r *os.Root, name string) error {
	dir, err := enterAll(r, path.Dir(name))
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	st, err := dir.Lstat(path.Base(name))
	switch {
	case absent(err):
		return nil
	case err == nil && st.IsDir() && rs.dirs[name]:
		return nil // the tree has it as a directory, too
	case err == nil:
		err = dir.Remove(path.Base(name))
	}
	if err != nil && !absent(err) {
		return err
	}
	rs.prune(r, path.Dir(name))
	return nil
}

// prune removes directories that are empty now and not the tree's.
func (rs *restore) prune(r *os.Root, name string) {
	for ; !rs.dirs[name]; name = path.Dir(name) {
		dir, err := enterAll(r, path.Dir(name))
		if err != nil {
			return
		}
		err = dir.Remove(path.Base(name))
		dir.Close()
		if err != nil {
			return // not empty, which is how it is found out
		}
	}
}

// absent reports an error that means there is nothing: a parent that is a file
// or a link has nothing beneath it.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || isLinkOrFile(err)
}

// write puts a file or link back.
func (rs *restore) write(r, from *os.Root, name string, e entry) error {
	dir, err := rs.b.makeAll(r, path.Dir(name))
	if isLinkOrFile(err) {
		return engine.Errorf(engine.Conflict, "restore %q: something is in the way of its directory", name)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	base := path.Base(name)
	p, err := rs.place(dir, name, e)
	if err != nil {
		return err
	}
	if e.mode == "120000" {
		target, err := from.Readlink(e.staged)
		if err != nil {
			return err
		}
		return putLink(dir, base, target)
	}
	src, err := from.OpenFile(e.staged, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	return rs.b.put(dir, base, p, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}
