//go:build linux

package host

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/driver"
)

// checkpoints keep a box's workspace as trees in a git directory of their own,
// in the box's directory, so that nothing in the workspace (its own git
// included) can reach or confuse them.
//
//	DIR/checkpoints        the git directory, the box's user's; mounted for
//	                       our git commands and for nothing else
//	DIR/checkpoints.lock   one command at a time
//	DIR/checkpoints.json   what the last Save saw, and what git can't keep
//
// git is fed the list of files that a walk of ours found. "git add" would
// leave out what .gitignore names, and store a nested repository as a link.
type checkpoints struct{ b *box }

// Checkpoints keep the workspace's content outside of it.
func (b *box) Checkpoints() driver.Checkpoints { return &checkpoints{b} }

// shadow is the git directory of the box's checkpoints.
func (b *box) shadow() string { return filepath.Join(b.dir, "checkpoints") }

// treeRefs is where trees are named, so that no collection takes them.
const treeRefs = "refs/sbx/"

// makeShadow is what every script begins with. The attributes outrank those in
// the workspace: nothing is converted or filtered on its way.
const makeShadow = `
if ! [ -f "$GIT_DIR/HEAD" ]; then
	mkdir -p "$GIT_DIR/info"
	echo '* -text !eol -ident -filter !working-tree-encoding !diff' >"$GIT_DIR/info/attributes"
	git init -q --bare --template=
fi
`

// shadowConfig keeps content and names as they are. Names that another system
// would mistake for .git are only names here.
var shadowConfig = [][2]string{
	{"core.autocrlf", "false"},
	{"core.fileMode", "true"},
	{"core.symlinks", "true"},
	{"core.protectNTFS", "false"},
	{"core.protectHFS", "false"},
}

// git runs a script on the checkpoints' git directory.
func (c *checkpoints) git(ctx context.Context, script string, stdin []byte, env ...string) ([]byte, error) {
	return c.b.git(ctx, c.command(script, stdin, env))
}

func (c *checkpoints) command(script string, stdin []byte, env []string) gitCommand {
	dir := c.b.shadow()
	return gitCommand{
		script: makeShadow + script,
		env:    append([]string{"GIT_DIR=" + dir}, env...),
		config: shadowConfig,
		mounts: []mount{{Source: dir, Target: dir}},
		stdin:  bytes.NewReader(stdin),
	}
}

// lock keeps other commands away and sees that the git directory is there.
func (c *checkpoints) lock(ctx context.Context) (unlock func(), err error) {
	if err := haveGit(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.b.shadow()+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, engine.Errorf(engine.Internal, "lock checkpoints: %w", err)
	}
	if err := flock(ctx, f); err != nil {
		f.Close()
		return nil, err
	}
	if err := c.b.makePrivate(c.b.shadow()); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// flock waits for an exclusive lock. Polling is what there is: a blocking
// flock can't be called off.
func flock(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// makePrivate makes a directory in the box's own one that only the box's user
// can enter.
func (b *box) makePrivate(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil && os.Geteuid() == 0 {
		err = os.Lchown(dir, b.uid, b.gid)
	}
	if err != nil {
		return engine.Errorf(engine.Internal, "make %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// isOID reports whether s names a git object.
func isOID(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && (len(raw) == 20 || len(raw) == 32) && s == strings.ToLower(s)
}

// read runs a script on trees that must have been saved and not dropped; it
// finds their names in $1 and on. What it prints must not begin with "gone".
func (c *checkpoints) read(ctx context.Context, maxOut int, script string, trees ...string) ([]byte, error) {
	known := "set --"
	for _, tree := range trees {
		if !isOID(tree) {
			return nil, engine.Errorf(engine.Invalid, "%.80q is no checkpoint", tree)
		}
		known += " " + tree
	}
	cmd := c.command(known+`
for tree; do
	if ! git rev-parse -q --verify "`+treeRefs+`$tree" >/dev/null; then echo "gone $tree"; exit 0; fi
done
`+script, nil, nil)
	cmd.maxOut = maxOut
	out, err := c.b.git(ctx, cmd)
	if tree, gone := bytes.CutPrefix(out, []byte("gone ")); gone && err == nil {
		return nil, engine.Errorf(engine.NotFound, "checkpoint %.12s is gone", tree)
	}
	return out, err
}

// saved are the trees that are kept.
func (c *checkpoints) saved(ctx context.Context) ([]string, error) {
	out, err := c.git(ctx, "git for-each-ref --format='%(refname)' "+treeRefs, nil)
	if err != nil {
		return nil, gitFailed("list checkpoints", err)
	}
	var trees []string
	for line := range strings.Lines(string(out)) {
		trees = append(trees, strings.TrimPrefix(strings.TrimSpace(line), treeRefs))
	}
	return trees, nil
}

// Drop forgets all trees but those in keep, and gives their space back.
func (c *checkpoints) Drop(ctx context.Context, keep []string) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	saved, err := c.saved(ctx)
	if err != nil {
		return err
	}
	var drop bytes.Buffer
	for _, tree := range saved {
		if !slices.Contains(keep, tree) {
			drop.WriteString("delete " + treeRefs + tree + "\x00\x00")
		}
	}
	if drop.Len() == 0 {
		return nil
	}
	if err := c.forget(keep); err != nil {
		return err
	}
	_, err = c.git(ctx, "git update-ref -z --stdin\ngit repack -adq\ngit prune --expire=now\n", drop.Bytes())
	return gitFailed("drop checkpoints", err)
}
