//go:build linux

package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"sbx/engine"
)

// Bounds of a name, as Linux has them.
const (
	maxName      = 4096
	maxComponent = 255
)

// cleanName checks a workspace path and returns it in its one spelling, "."
// for the workspace itself. It looks at the letters only, so that a bad name
// is answered alike whether or not there is something at its end.
func cleanName(name string) (string, error) {
	if why := badName(name); why != "" {
		return "", engine.Errorf(engine.Invalid, "file name %.80q %s", name, why).
			WithHint("use a path relative to the workspace, for example src/index.js")
	}
	return path.Clean(name), nil
}

func badName(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case strings.ContainsRune(name, '\\'):
		return "has a backslash"
	}
	return badPath(name)
}

// badPath says what is wrong with a path that git or a directory gave us:
// those may have any bytes, but no way out.
func badPath(name string) string {
	switch {
	case len(name) > maxName:
		return "is too long"
	case strings.ContainsRune(name, 0):
		return "has a NUL"
	case strings.HasPrefix(name, "/"):
		return "is absolute"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "leads upwards"
		}
		if len(part) > maxComponent {
			return "is too long"
		}
	}
	return ""
}

// fileErrors gives a system's error its code and words.
var fileErrors = []struct {
	errno syscall.Errno
	code  engine.Code
	words string
}{
	{syscall.ENOENT, engine.NotFound, "no such file or directory"},
	{syscall.ENOTDIR, engine.NotFound, "no such file or directory"},
	{syscall.EISDIR, engine.Invalid, "is a directory"},
	{syscall.EEXIST, engine.Conflict, "is there already"},
	{syscall.ENOTEMPTY, engine.Conflict, "has other files in it"},
	{syscall.EACCES, engine.Forbidden, "permission denied"},
	{syscall.EPERM, engine.Forbidden, "permission denied"},
	{syscall.EROFS, engine.Forbidden, "the file system is read-only"},
	{syscall.ELOOP, engine.Forbidden, "is a symbolic link"},
	{syscall.ENXIO, engine.Invalid, "is no regular file"},
	{syscall.ENAMETOOLONG, engine.Invalid, "name is too long"},
	{syscall.ENOSPC, engine.Exhausted, "the disk is full"},
	{syscall.EDQUOT, engine.Exhausted, "the disk quota is used up"},
	{syscall.EMFILE, engine.Unavailable, "too many open files"},
	{syscall.ENFILE, engine.Unavailable, "too many open files on this host"},
}

// fileError says what happened to name without saying anything about the host
// around the workspace.
func fileError(doing, name string, err error) error {
	if err == nil || errors.As(err, new(*engine.Error)) {
		return err
	}
	if name == "." {
		name = "workspace"
	}
	for _, e := range fileErrors {
		if errors.Is(err, e.errno) {
			return engine.Errorf(e.code, "%s %q: %s", doing, name, e.words)
		}
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return engine.Errorf(engine.Internal, "%s %q: %w", doing, name, errno)
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) && !errors.Is(err, os.ErrClosed) {
		// The one error of os.Root that no system call gave: the way out.
		return engine.Errorf(engine.Forbidden, "%s %q: leads out of the workspace", doing, name)
	}
	return engine.Errorf(engine.Internal, "%s %q: %w", doing, name, err)
}

// enter opens the directory name of r, which must be one itself: a symbolic
// link is refused even if it stays inside and even if it comes and goes.
func enter(r *os.Root, name string) (*os.Root, error) {
	was, err := r.Lstat(name)
	if err != nil {
		return nil, err
	}
	if was.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "enter", Path: name, Err: syscall.ELOOP}
	}
	if !was.IsDir() {
		return nil, &fs.PathError{Op: "enter", Path: name, Err: syscall.ENOTDIR}
	}
	// The dot makes it open name as a directory on its way: a FIFO that is put
	// there now would hang a plain open.
	sub, err := r.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	is, err := sub.Stat(".")
	if err == nil && !os.SameFile(was, is) {
		err = &fs.PathError{Op: "enter", Path: name, Err: syscall.ELOOP}
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// enterAll opens the directory at the end of name, each part by enter. The
// caller closes it; r stays open.
func enterAll(r *os.Root, name string) (*os.Root, error) {
	at, err := r.OpenRoot(".")
	if err != nil || name == "." {
		return at, err
	}
	for part := range strings.SplitSeq(name, "/") {
		next, err := enter(at, part)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// openWorkspace opens the box's workspace.
func (b *box) openWorkspace() (*os.Root, error) {
	r, err := os.OpenRoot(b.workspace + "/.") // the dot: never wait on a FIFO
	if err != nil {
		return nil, fileError("open", ".", err)
	}
	return r, nil
}

// readable reports whether the box's own user may read a file. The engine may
// be root and could read more: it must not do so on a sandbox's behalf.
func (b *box) readable(st *syscall.Stat_t) bool {
	switch {
	case b.uid == 0:
		return true
	case int(st.Uid) == b.uid:
		return st.Mode&0o400 != 0
	case int(st.Gid) == b.gid:
		return st.Mode&0o040 != 0
	}
	return st.Mode&0o004 != 0
}
