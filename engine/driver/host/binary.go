//go:build linux

package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// binaryName is the variable that names this binary inside of a box: templates
// that need nothing else run it.
const binaryName = "SBX_BIN"

// showBinary lets boxes run this binary under SBX_BIN. Where nothing is mounted
// for a box, the path must be open to its user: a binary in somebody's closed
// home gets a copy in the data directory.
func (h *Host) showBinary() error {
	path, ok := h.binaryPath()
	if !ok || h.root && !h.confine.hides() && !openToAll(path) {
		var err error
		if path, err = h.copyBinary(); err != nil {
			return fmt.Errorf("copy our own binary for boxes: %w", err)
		}
	}
	if !h.view.shows(path) {
		h.view.tools = append(h.view.tools, path)
	}
	h.env = append(h.env, binaryName+"="+path)
	return nil
}

// binaryPath is where this binary lies, if that still is this binary and we
// may go there: it may have been replaced, or run through a descriptor.
func (h *Host) binaryPath() (path string, ok bool) {
	path = h.cfg.Helper[0]
	if to, err := os.Readlink(path); err == nil {
		path = to // of /proc/self/exe it is the real path, whoever may go there
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(path) {
		return "", false
	}
	there, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	ours, err := h.exe.Stat()
	return path, err == nil && os.SameFile(there, ours)
}

// openToAll reports whether anybody may run the file: its directories let
// through, and it is executable.
func openToAll(path string) bool {
	for p := path; ; p = filepath.Dir(p) {
		fi, err := os.Stat(p)
		if err != nil || fi.Mode().Perm()&0o001 == 0 {
			return false
		}
		if p == filepath.Dir(p) {
			return true
		}
	}
}

// copyBinary writes the copy beside and renames it: boxes of an engine before
// this one may still run the old one.
func (h *Host) copyBinary() (string, error) {
	dir := filepath.Join(h.cfg.Dir, "bin")
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sbx")
	if h.linkBinary(path) == nil {
		return path, nil
	}
	tmp, err := os.CreateTemp(dir, "sbx-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp.Name())
	_, err = io.Copy(tmp, io.NewSectionReader(h.exe, 0, 1<<40))
	if err == nil {
		err = tmp.Chmod(0o755)
	}
	if err2 := tmp.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return path, err
}

// linkBinary gives this binary a second name, where that is possible and enough.
func (h *Host) linkBinary(path string) error {
	fi, err := h.exe.Stat()
	if err != nil {
		return err
	}
	if fi.Mode().Perm()&0o005 != 0o005 {
		return os.ErrPermission
	}
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fd := fmt.Sprintf("/proc/self/fd/%d", h.exe.Fd())
	if err := unix.Linkat(unix.AT_FDCWD, fd, unix.AT_FDCWD, next, unix.AT_SYMLINK_FOLLOW); err != nil {
		return err
	}
	return os.Rename(next, path)
}
