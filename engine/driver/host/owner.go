//go:build linux

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// giveTree makes everything in a tree uid's, links themselves and not where
// they point. Nothing of the sandbox runs yet.
func giveTree(root string, uid, gid int) error {
	return filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := os.Lstat(name)
		if err != nil {
			return err
		}
		if err := os.Lchown(name, uid, gid); err != nil {
			return err
		}
		if fi.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && fi.Mode().IsRegular() {
			return os.Chmod(name, fi.Mode().Perm()) // a chown by root may keep them
		}
		return nil
	})
}

// removeTree deletes a tree, directories that their owner closed included.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) // the removal says what is still in the way
		}
		return nil
	})
	return os.RemoveAll(dir)
}
