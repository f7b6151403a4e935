//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// maxCopy bounds a copied workspace whose spec sets no limit.
const maxCopy = int64(64 * engine.GiB)

// copyWorkspace copies the directory from to the new directory to as it is:
// history, uncommitted work, links as they are, modes, times and, for root,
// owners. Devices, sockets and FIFOs stay behind, and so do the bits that lend
// an owner's rights. Hard links become files of their own.
func copyWorkspace(ctx context.Context, from, to string, limit int64) error {
	if limit <= 0 {
		limit = maxCopy
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return makeError(err)
	}
	defer src.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return makeError(err)
	}
	dst, err := os.OpenRoot(to)
	if err != nil {
		return makeError(err)
	}
	defer dst.Close()
	c := &copier{ctx: ctx, left: limit, limit: limit}
	return makeError(c.dir(src, dst, ".", 0))
}

type copier struct {
	ctx         context.Context
	left, limit int64
	entries     int
}

// dir copies what is in src and then what src itself is like: a read-only
// directory must be filled first, and filling it moves its time.
func (c *copier) dir(src, dst *os.Root, name string, depth int) error {
	if depth > maxDepth {
		return engine.Errorf(engine.Invalid, "copy %q: nested too deeply", name)
	}
	names, err := entries(src, maxEntries)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if c.entries++; c.entries > maxEntries {
			return engine.Errorf(engine.Exhausted, "the directory has more than %d files", maxEntries)
		}
		if err := c.entry(src, dst, n, depth); err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
	}
	st, err := src.Stat(".")
	if err != nil {
		return err
	}
	return likeDir(dst, st)
}

func (c *copier) entry(src, dst *os.Root, name string, depth int) error {
	st, err := src.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone since it was listed
	}
	if err != nil {
		return err
	}
	switch mode := st.Mode(); {
	case mode.IsDir():
		return c.subdir(src, dst, name, depth)
	case mode&fs.ModeSymlink != 0:
		return c.link(src, dst, name, st)
	case mode.IsRegular():
		return c.file(src, dst, name)
	}
	return nil
}

func (c *copier) subdir(src, dst *os.Root, name string, depth int) error {
	from, err := enter(src, name)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := dst.Mkdir(name, 0o700); err != nil {
		return err
	}
	to, err := enter(dst, name)
	if err != nil {
		return err
	}
	defer to.Close()
	return c.dir(from, to, name, depth+1)
}

func (c *copier) link(src, dst *os.Root, name string, st fs.FileInfo) error {
	target, err := src.Readlink(name)
	if err != nil {
		return err
	}
	if err := dst.Symlink(target, name); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		sys := st.Sys().(*syscall.Stat_t)
		if err := dst.Lchown(name, int(sys.Uid), int(sys.Gid)); err != nil {
			return err
		}
	}
	d, err := dst.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.UtimesNanoAt(int(d.Fd()), name, times(st), unix.AT_SYMLINK_NOFOLLOW)
}

func (c *copier) file(src, dst *os.Root, name string) error {
	in, err := src.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return nil // it was when it was listed
	}
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, c.left+1))
	if c.left -= n; err == nil && c.left < 0 {
		err = engine.Errorf(engine.Exhausted, "the directory has more than %s", engine.Size(c.limit)).
			WithHint("raise limits.disk")
	}
	if err == nil {
		err = likeFile(out, st)
	}
	return errors.Join(err, out.Close())
}

// likeFile gives a copy the owner, mode and times of its original.
func likeFile(f *os.File, st fs.FileInfo) error {
	if os.Geteuid() == 0 {
		sys := st.Sys().(*syscall.Stat_t)
		if err := f.Chown(int(sys.Uid), int(sys.Gid)); err != nil {
			return err
		}
	}
	if err := f.Chmod(st.Mode().Perm()); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), times(st), 0)
}

func likeDir(dir *os.Root, st fs.FileInfo) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return likeFile(d, st)
}

// times are when a file was last read and changed.
func times(st fs.FileInfo) []unix.Timespec {
	sys := st.Sys().(*syscall.Stat_t)
	return []unix.Timespec{
		{Sec: sys.Atim.Sec, Nsec: sys.Atim.Nsec},
		{Sec: sys.Mtim.Sec, Nsec: sys.Mtim.Nsec},
	}
}
