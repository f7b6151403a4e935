//go:build linux

package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"sbx/engine"
)

// isLinkOrFile reports that a path leads through something that is no
// directory.
func isLinkOrFile(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// place clears what is at a path that is to be restored and says what the file
// will be like: a file that is there keeps its mode and owner but for the
// executable bit, which the tree knows.
func (rs *restore) place(dir *os.Root, name string, e entry) (place, error) {
	perm := fs.FileMode(0o644)
	if slices.Contains(rs.extra.Private, name) {
		perm = 0o600
	}
	p := rs.b.newPlace(perm)
	st, err := dir.Lstat(path.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return p, err
	case st.IsDir():
		err := dir.Remove(path.Base(name))
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return p, engine.Errorf(engine.Conflict, "restore %q: it is a directory with other files in it", name)
		}
		if err != nil {
			return p, err
		}
	case st.Mode().IsRegular():
		sys := st.Sys().(*syscall.Stat_t)
		p = place{taken: true, perm: st.Mode().Perm(), uid: int(sys.Uid), gid: int(sys.Gid)}
	default:
		p.taken = true
	}
	p.perm = executable(p.perm, e.mode == "100755")
	return p, nil
}

// executable gives a mode the executable bit of all who may read, or takes it.
func executable(perm fs.FileMode, x bool) fs.FileMode {
	if x {
		return perm | perm&0o444>>2
	}
	return perm &^ 0o111
}

// putLink makes a symbolic link, in the place of what is there. It stays the
// engine's own user's: to give it away by name would give away whatever the
// sandbox puts at that name meanwhile, and nobody asks who owns a link.
func putLink(dir *os.Root, name, target string) error {
	temp := tempName()
	if err := dir.Symlink(target, temp); err != nil {
		return err
	}
	if err := dir.Rename(temp, name); err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	return nil
}
