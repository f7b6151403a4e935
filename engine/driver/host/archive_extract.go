//go:build linux

package host

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// extractor lays out a tar beneath a directory. Whatever the tar says, nothing
// is followed and nothing outside is touched: each entry is made in a
// directory that was entered part by part, under a name without a slash.
type extractor struct {
	b    *box     // whose user everything becomes; nil: the engine's own
	root *os.Root // beneath which all is made
	over bool     // in a workspace that is in use: what is there is replaced

	left    int64 // bytes that may still come
	entries int
	at      []level // the directories that are open, root first
}

// level is a directory on the way to where the extractor is.
type level struct {
	name string // in root
	dir  *os.Root
	fd   *os.File
	like *tar.Header // what it is to be like when all is in it; nil: as it is
}

// extract reads a tar to its end. limit bounds what it may come to.
func extract(ctx context.Context, r io.Reader, u *extractor, limit int64) (err error) {
	u.left = limit
	if u.left <= 0 {
		u.left = maxCopy
	}
	if err := u.push(".", u.root, "."); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.leaveTo(0)) }()
	r = reading{ctx, r}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, r) // a checksum may stand behind the end
			return err
		}
		if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
			return engine.Errorf(engine.Invalid, "the archive is damaged, or is no tar")
		}
		if err != nil {
			return err
		}
		if err := u.entry(h, tr); err != nil {
			return err
		}
	}
}

func (u *extractor) entry(h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if u.entries++; u.entries > maxEntries {
		return engine.Errorf(engine.Exhausted, "the archive has more than %d entries", maxEntries)
	}
	if why := badPath(h.Name); why != "" || h.Name == "" {
		return engine.Errorf(engine.Invalid, "the archive names %.80q, which %s", h.Name, why)
	}
	name := path.Clean(h.Name)
	if name == "." {
		if h.Typeflag == tar.TypeDir && !u.over {
			u.at[0].like = h
		}
		return nil
	}
	if strings.Count(name, "/") >= maxDepth {
		return engine.Errorf(engine.Invalid, "the archive nests %.80q too deeply", name)
	}
	if err := u.enter(path.Dir(name)); err != nil {
		return fileError("unpack", name, err)
	}
	return fileError("unpack", name, u.make(name, h, r))
}

func (u *extractor) here() *level { return &u.at[len(u.at)-1] }

func (u *extractor) make(name string, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return u.makeDir(name, h)
	case tar.TypeReg:
		return u.makeFile(path.Base(name), h, r)
	case tar.TypeSymlink:
		return u.makeLink(path.Base(name), h)
	case tar.TypeLink:
		return u.makeHardLink(path.Base(name), h)
	}
	return engine.Errorf(engine.Invalid, "the archive has %.80q, which is a device or something else that no workspace has", name)
}

// push opens the directory base of dir as the one to be in.
func (u *extractor) push(name string, dir *os.Root, base string) error {
	sub, err := enter(dir, base)
	if err != nil {
		return err
	}
	fd, err := sub.Open(".")
	if err != nil {
		sub.Close()
		return err
	}
	u.at = append(u.at, level{name: name, dir: sub, fd: fd})
	return nil
}

// enter goes to the directory name, from the nearest that is open. What is
// missing of it is made.
func (u *extractor) enter(name string) error {
	keep := len(u.at)
	for keep > 1 && name != u.at[keep-1].name && !strings.HasPrefix(name, u.at[keep-1].name+"/") {
		keep--
	}
	if err := u.leaveTo(keep); err != nil {
		return err
	}
	for u.here().name != name {
		rest := name
		if u.here().name != "." {
			rest = strings.TrimPrefix(name, u.here().name+"/")
		}
		first, _, _ := strings.Cut(rest, "/")
		if err := u.step(path.Join(u.here().name, first), first); err != nil {
			return err
		}
	}
	return nil
}

func (u *extractor) step(name, base string) error {
	dir := u.here().dir
	err := u.push(name, dir, base)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := dir.Mkdir(base, 0o755); err != nil {
		return err
	}
	if err := u.push(name, dir, base); err != nil {
		return err
	}
	return u.give(u.here().fd)
}

// leaveTo closes directories until keep are open, and makes them what they are
// to be like.
func (u *extractor) leaveTo(keep int) error {
	var errs []error
	for len(u.at) > keep {
		l := u.here()
		if l.like != nil {
			errs = append(errs, u.like(l.fd, l.like))
		}
		errs = append(errs, l.fd.Close(), l.dir.Close())
		u.at = u.at[:len(u.at)-1]
	}
	return errors.Join(errs...)
}

func (u *extractor) makeDir(name string, h *tar.Header) error {
	base := path.Base(name)
	err := u.here().dir.Mkdir(base, 0o700)
	there := errors.Is(err, fs.ErrExist)
	if err != nil && !there {
		return err
	}
	if err := u.push(name, u.here().dir, base); err != nil {
		return err
	}
	if there && u.over {
		return nil // what is there stays as it is
	}
	u.here().like = h
	return u.give(u.here().fd)
}

// makeFile makes a file beside its place and renames it where something may
// be there; else at its place.
func (u *extractor) makeFile(base string, h *tar.Header, r io.Reader) error {
	if u.left -= h.Size; u.left < 0 {
		return engine.Errorf(engine.Exhausted, "the archive comes to more than may be unpacked here").WithHint("raise limits.disk")
	}
	name := base
	if u.over {
		if st, err := u.here().dir.Lstat(base); err == nil && !st.Mode().IsRegular() {
			return engine.Errorf(engine.Conflict, "something that is no regular file is there already")
		}
		name = tempName()
	}
	dir := int(u.here().fd.Fd())
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EEXIST) {
		return engine.Errorf(engine.Invalid, "the archive has %q twice", base)
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	_, err = io.Copy(f, struct{ io.Reader }{r})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = engine.Errorf(engine.Invalid, "the archive ends in the middle")
	}
	if err == nil {
		err = u.like(f, h)
	}
	if err = errors.Join(err, f.Close()); err == nil && u.over {
		err = unix.Renameat(dir, name, dir, base)
	}
	if err != nil && u.over {
		_ = unix.Unlinkat(dir, name, 0) // walks don't see it, if that fails
	}
	return err
}

func (u *extractor) makeLink(base string, h *tar.Header) error {
	if h.Linkname == "" || len(h.Linkname) > maxName || strings.ContainsRune(h.Linkname, 0) {
		return engine.Errorf(engine.Invalid, "the archive's link %.80q leads nowhere", h.Name)
	}
	dir := u.here().dir
	if u.over {
		if st, err := dir.Lstat(base); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			if err := dir.Remove(base); err != nil {
				return err
			}
		}
	}
	if err := dir.Symlink(h.Linkname, base); err != nil {
		return err
	}
	if u.b != nil && os.Geteuid() == 0 {
		if err := dir.Lchown(base, u.b.uid, u.b.gid); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(int(u.here().fd.Fd()), base, stamp(h.ModTime), unix.AT_SYMLINK_NOFOLLOW)
}

// makeHardLink gives a file of the same archive another name.
func (u *extractor) makeHardLink(base string, h *tar.Header) error {
	why := badPath(h.Linkname)
	target := path.Clean(h.Linkname)
	if why != "" || target == "." {
		return engine.Errorf(engine.Invalid, "the archive links %.80q to %.80q", h.Name, h.Linkname)
	}
	dir, err := enterAll(u.root, path.Dir(target))
	if err != nil {
		return err
	}
	defer dir.Close()
	if st, err := dir.Lstat(path.Base(target)); err != nil || !st.Mode().IsRegular() {
		return engine.Errorf(engine.Invalid, "the archive links %.80q to %.80q, which is no file of it", h.Name, h.Linkname)
	}
	from, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer from.Close()
	to := int(u.here().fd.Fd())
	if u.over {
		if err := unix.Unlinkat(to, base, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return unix.Linkat(int(from.Fd()), path.Base(target), to, base, 0)
}

// like gives what was made its owner, mode and time.
func (u *extractor) like(f *os.File, h *tar.Header) error {
	if err := u.give(f); err != nil {
		return err
	}
	if err := f.Chmod(fs.FileMode(h.Mode).Perm()); err != nil {
		return err
	}
	return setTime(f, h.ModTime)
}

func (u *extractor) give(f *os.File) error {
	if u.b == nil || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(u.b.uid, u.b.gid)
}

func stamp(t time.Time) []unix.Timespec {
	ts := syscall.NsecToTimespec(t.UnixNano())
	return []unix.Timespec{{Sec: ts.Sec, Nsec: ts.Nsec}, {Sec: ts.Sec, Nsec: ts.Nsec}}
}
