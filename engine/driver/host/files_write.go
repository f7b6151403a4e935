//go:build linux

package host

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// tempPrefix begins the names of files that are being written. No walk and no
// checkpoint sees them, so that one left by a crash does no harm.
const tempPrefix = ".sbx-tmp-"

func tempName() string { return tempPrefix + strings.ToLower(rand.Text()) }

// WriteFile replaces a file or makes one, with the directories it needs. No
// part of name may be a symbolic link: a link to a protected directory must
// not be a way around its protection.
func (f *files) WriteFile(ctx context.Context, name string, replaces engine.Version, data []byte) (engine.Version, error) {
	name, err := cleanName(name)
	if err != nil {
		return "", err
	}
	if name == "." {
		return "", engine.Errorf(engine.Invalid, "write %q: is a directory", name)
	}
	if len(data) > engine.MaxFile {
		return "", engine.Errorf(engine.Invalid, "write %q: more than %s", name, engine.Size(engine.MaxFile))
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	r, err := f.b.openWorkspace()
	if err != nil {
		return "", err
	}
	defer r.Close()
	if err := f.write(r, name, replaces, data); err != nil {
		return "", fileError("write", name, err)
	}
	return versionOf(data), nil
}

func (f *files) write(r *os.Root, name string, replaces engine.Version, data []byte) error {
	dir, err := f.parent(r, path.Dir(name), replaces == "")
	if err != nil {
		return err
	}
	defer dir.Close()
	base := path.Base(name)
	place, err := f.replaced(dir, base, replaces)
	if err != nil {
		return err
	}
	return f.b.put(dir, base, place, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// parent enters the directory to write into; what is missing of it is made if
// the file is to be made.
func (f *files) parent(r *os.Root, name string, create bool) (*os.Root, error) {
	if !create {
		return enterAll(r, name)
	}
	return f.b.makeAll(r, name)
}

// makeAll enters the directory name; what is missing of it is made, owned by
// the box's user.
func (b *box) makeAll(r *os.Root, name string) (*os.Root, error) {
	at, err := r.OpenRoot(".")
	if err != nil || name == "." {
		return at, err
	}
	for part := range strings.SplitSeq(name, "/") {
		next, err := b.makeOne(at, part)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func (b *box) makeOne(r *os.Root, name string) (*os.Root, error) {
	sub, err := enter(r, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	if err := r.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if sub, err = enter(r, name); err != nil {
		return nil, err
	}
	if err := b.own(sub); err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// own gives an entered directory to the box's user. A directory can't be a
// hard link, so this can't give away anything outside of the workspace.
func (b *box) own(dir *os.Root) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return dir.Chown(".", b.uid, b.gid)
}

// place is what a written file will be like, and whether it takes another's
// place.
type place struct {
	taken    bool
	perm     fs.FileMode
	uid, gid int
}

func (b *box) newPlace(perm fs.FileMode) place {
	return place{perm: perm, uid: b.uid, gid: b.gid}
}

// replaced holds what is at name against the version that a write replaces.
func (f *files) replaced(dir *os.Root, name string, replaces engine.Version) (place, error) {
	st, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if replaces != "" {
			return place{}, conflict(name, "is gone")
		}
		return f.b.newPlace(0o644), nil
	}
	if err != nil {
		return place{}, err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		return place{}, syscall.ELOOP
	}
	file, st, err := f.b.openRegular(dir, name)
	if err != nil {
		return place{}, err
	}
	defer file.Close()
	if replaces == "" {
		return place{}, conflict(name, "is there already")
	}
	if st.Size() > engine.MaxFile {
		return place{}, engine.Errorf(engine.Invalid, "%q has more than %s", name, engine.Size(engine.MaxFile))
	}
	sys := st.Sys().(*syscall.Stat_t)
	if sys.Nlink > 1 {
		return place{}, engine.Errorf(engine.Forbidden, "%q has other names too (a hard link)", name).
			WithHint("replace it by a copy of itself first")
	}
	data, err := io.ReadAll(io.LimitReader(file, engine.MaxFile+1))
	if err != nil {
		return place{}, err
	}
	if versionOf(data) != replaces {
		return place{}, conflict(name, "has changed")
	}
	return place{taken: true, perm: st.Mode().Perm(), uid: int(sys.Uid), gid: int(sys.Gid)}, nil
}

func conflict(name, what string) error {
	return engine.Errorf(engine.Conflict, "%q %s since it was read", name, what).WithHint("read it again")
}

// put writes a file beside its place and renames it there.
func (b *box) put(dir *os.Root, name string, p place, fill func(io.Writer) error) (err error) {
	temp := tempName()
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(temp))
		}
	}()
	err = fill(file)
	if err == nil && os.Geteuid() == 0 {
		err = file.Chown(p.uid, p.gid)
	}
	if err == nil {
		err = file.Chmod(p.perm)
	}
	if err == nil {
		err = file.Sync() // before the rename: a power cut leaves the old or the new
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if p.taken {
		return dir.Rename(temp, name)
	}
	return renameNew(dir, temp, name)
}

// renameNew renames unless something has come to be at name meanwhile.
func renameNew(dir *os.Root, from, to string) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	fd := int(d.Fd())
	err = unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return dir.Rename(from, to) // a file system that can't: the check was a moment ago
	}
	return err
}
