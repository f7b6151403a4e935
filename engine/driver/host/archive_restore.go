//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// The workspace's places while it is swapped.
const (
	restoredSuffix = ".restored" // being unpacked
	oldSuffix      = ".old"      // what was there, where the file system can't exchange
)

// Unpack lays the archive out beside the workspace, has it on disk, and swaps
// the two. What was there goes last.
func (a archives) Unpack(ctx context.Context, r io.Reader) error {
	b := a.b
	if b.adopted {
		return engine.Errorf(engine.Forbidden, "%s is somebody's own directory: no archive takes its place", b.workspace).
			WithHint("make a sandbox of the archive's files elsewhere, or copy single files with: sbx cp")
	}
	if len(b.live()) > 0 {
		return engine.Errorf(engine.Conflict, "processes run in the workspace").WithHint("stop the sandbox first")
	}
	fresh := b.workspace + restoredSuffix
	if err := removeTree(fresh); err != nil { // of one that was cut
		return makeError(err)
	}
	err := layOut(ctx, r, fresh, &extractor{b: b}, maxCopy)
	if err == nil {
		err = b.swap(fresh)
	}
	return errors.Join(err, removeTree(fresh))
}

// layOut unpacks an archive into the new directory dir, and has it on disk.
func layOut(ctx context.Context, r io.Reader, dir string, u *extractor, limit int64) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return makeError(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return makeError(err)
	}
	defer root.Close()
	u.root = root
	if err := extract(ctx, r, u, limit); err != nil {
		return makeError(err)
	}
	d, err := root.Open(".")
	if err != nil {
		return makeError(err)
	}
	defer d.Close()
	if err := u.give(d); err != nil {
		return makeError(err)
	}
	return makeError(unix.Syncfs(int(d.Fd())))
}

// swap puts fresh in the workspace's place, and the workspace in fresh's.
func (b *box) swap(fresh string) error {
	err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, b.workspace, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		old := b.workspace + oldSuffix
		if err = os.Rename(b.workspace, old); err == nil {
			if err = os.Rename(fresh, b.workspace); err == nil {
				return errors.Join(syncDir(b.dir), os.Rename(old, fresh))
			}
		}
	}
	if err != nil {
		return engine.Errorf(engine.Internal, "put the restored workspace in its place: %w", err)
	}
	return syncDir(b.dir)
}

// settleSwap puts back a workspace whose swap was cut between two renames.
func settleSwap(workspace string) {
	if _, err := os.Lstat(workspace); errors.Is(err, fs.ErrNotExist) {
		_ = os.Rename(workspace+oldSuffix, workspace) // none: the caller sees that it is gone
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// placeTree unpacks an uploaded tar over what is in a directory.
func (t fileTree) placeTree(ctx context.Context, r *os.Root, name string, body io.Reader) error {
	dir, err := t.b.makeAll(r, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return extract(ctx, body, &extractor{b: t.b, root: dir, over: true}, int64(t.b.spec.Limits.Disk))
}

// setTime sets when a file was last changed.
func setTime(f *os.File, t time.Time) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), stamp(t), 0)
}
