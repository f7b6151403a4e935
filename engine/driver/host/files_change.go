//go:build linux

package host

import (
	"bytes"
	"context"
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

func newBytes(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// change cleans a name that is to be changed; the workspace itself is none.
func change(doing, name string) (string, error) {
	name, err := cleanName(name)
	if err == nil && name == "." {
		err = engine.Errorf(engine.Invalid, "%s %q: that is the workspace itself", doing, name)
	}
	return name, err
}

// MakeDir makes a directory and those above it.
func (t fileTree) MakeDir(ctx context.Context, name string) (made bool, err error) {
	name, err = change("make", name)
	if err != nil {
		return false, err
	}
	r, err := t.b.openWorkspace()
	if err != nil {
		return false, err
	}
	defer r.Close()
	if dir, err := enterAll(r, name); err == nil {
		return false, errors.Join(dir.Close(), ctx.Err())
	}
	dir, err := t.b.makeAll(r, name)
	if errors.Is(err, syscall.ENOTDIR) {
		return false, engine.Errorf(engine.Conflict, "make %q: something that is no directory is there", name)
	}
	if err != nil {
		return false, fileError("make", name, err)
	}
	return true, dir.Close()
}

// Rename moves an entry. With overwrite it takes the place of what is no
// directory.
func (t fileTree) Rename(ctx context.Context, from, to string, overwrite bool) error {
	from, err := change("rename", from)
	if err != nil {
		return err
	}
	if to, err = change("rename to", to); err != nil {
		return err
	}
	if strings.HasPrefix(to+"/", from+"/") && from != to {
		return engine.Errorf(engine.Invalid, "rename %q: %q is in it", from, to)
	}
	r, err := t.b.openWorkspace()
	if err != nil {
		return err
	}
	defer r.Close()
	src, err := enterAll(r, path.Dir(from))
	if err != nil {
		return fileError("rename", from, err)
	}
	defer src.Close()
	if _, err := src.Lstat(path.Base(from)); err != nil || ctx.Err() != nil {
		return errors.Join(fileError("rename", from, err), ctx.Err())
	}
	dst, err := t.b.makeAll(r, path.Dir(to))
	if err != nil {
		return fileError("rename to", to, err)
	}
	defer dst.Close()
	return fileError("rename to", to, move(src, path.Base(from), dst, path.Base(to), overwrite))
}

// move renames between directories that are held open.
func move(src *os.Root, from string, dst *os.Root, to string, overwrite bool) error {
	s, err := src.Open(".")
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := dst.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if !overwrite {
		return unix.Renameat2(int(s.Fd()), from, int(d.Fd()), to, unix.RENAME_NOREPLACE)
	}
	if st, err := dst.Lstat(to); err == nil && st.IsDir() {
		return syscall.EISDIR
	}
	return unix.Renameat(int(s.Fd()), from, int(d.Fd()), to)
}

// Remove deletes an entry: never what a link points to.
func (t fileTree) Remove(ctx context.Context, name string, recursive bool) error {
	name, err := change("delete", name)
	if err != nil {
		return err
	}
	r, err := t.b.openWorkspace()
	if err != nil {
		return err
	}
	defer r.Close()
	dir, err := enterAll(r, path.Dir(name))
	if err != nil {
		return fileError("delete", name, err)
	}
	defer dir.Close()
	st, err := dir.Lstat(path.Base(name))
	switch {
	case err != nil || ctx.Err() != nil:
		return errors.Join(fileError("delete", name, err), ctx.Err())
	case recursive && st.IsDir():
		err = dir.RemoveAll(path.Base(name))
	default:
		err = dir.Remove(path.Base(name))
	}
	if errors.Is(err, syscall.ENOTEMPTY) {
		return engine.Errorf(engine.Conflict, "delete %q: has other files in it", name).
			WithHint("delete it with all that is in it: sbx files rm -r")
	}
	return fileError("delete", name, err)
}

// Place puts a staged upload at its place.
func (t fileTree) Place(ctx context.Context, p engine.PlaceFile) (engine.Version, error) {
	name, err := cleanName(p.Name)
	if err != nil {
		return "", err
	}
	if name == "." && !p.Tree {
		return "", engine.Errorf(engine.Invalid, "write %q: is a directory", name)
	}
	up, err := t.b.openUpload(p.Upload)
	if err != nil {
		return "", err
	}
	defer up.Close()
	r, err := t.b.openWorkspace()
	if err != nil {
		return "", err
	}
	defer r.Close()
	if p.Tree {
		err = t.placeTree(ctx, r, name, up.File)
	} else {
		err = t.placeFile(r, name, p, up)
	}
	if err != nil {
		return "", fileError("write", name, err)
	}
	version := engine.Version("")
	if !p.Tree {
		version, err = t.version(r, name)
	}
	return version, errors.Join(fileError("write", name, err), up.remove())
}

// version is what is at name now.
func (t fileTree) version(r *os.Root, name string) (engine.Version, error) {
	var got engine.File
	body, err := t.openFile(r, name, 0, &got)
	if err != nil {
		return "", err
	}
	return got.Version, body.Close()
}

func (t fileTree) placeFile(r *os.Root, name string, p engine.PlaceFile, up *upload) error {
	dir, err := t.b.makeAll(r, path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	base := path.Base(name)
	at, err := t.place(dir, base, p)
	if err != nil {
		return err
	}
	if p.Mode != 0 {
		at.perm = p.Mode.Perm()
	}
	return t.b.put(dir, base, at, func(w io.Writer) error {
		_, err := io.Copy(w, up.File)
		return err
	})
}

// place is what is at name, held against what the upload may replace.
func (t fileTree) place(dir *os.Root, name string, p engine.PlaceFile) (place, error) {
	st, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (p.Replaces == "" || p.Overwrite):
		return t.b.newPlace(0o644), nil
	case errors.Is(err, fs.ErrNotExist):
		return place{}, conflict(name, "is gone")
	case err != nil:
		return place{}, err
	case st.Mode()&fs.ModeSymlink != 0:
		return place{}, syscall.ELOOP
	case st.IsDir():
		return place{}, syscall.EISDIR
	case !st.Mode().IsRegular():
		return place{}, syscall.ENXIO
	case p.Replaces == "" && !p.Overwrite:
		return place{}, conflict(name, "is there already")
	}
	sys := st.Sys().(*syscall.Stat_t)
	if sys.Nlink > 1 {
		return place{}, engine.Errorf(engine.Forbidden, "%q has other names too (a hard link)", name).
			WithHint("replace it by a copy of itself first")
	}
	if !p.Overwrite {
		if now, err := t.version(dir, name); err != nil || now != p.Replaces {
			return place{}, errors.Join(err, conflict(name, "has changed"))
		}
	}
	return place{taken: true, perm: st.Mode().Perm(), uid: int(sys.Uid), gid: int(sys.Gid)}, nil
}
