//go:build linux

package host

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/driver"
)

// A mask stands in for a protected path that does not exist: an empty
// directory while something runs that must not create it, mounted read-only
// over itself as every protected path is. The kernel has no other way to keep
// a single name from being made: rules on the directory around it would
// forbid every new file there, and an overlay would come between the workspace
// and the app that watches it. Git and checkpoints don't see empty
// directories, and it is removed again as soon as the last process that needs
// it has gone, or at the next look at the box.
type mask struct{ users int }

const masksFile = "masks.json"

// maxProtected bounds the mounts that one process gets.
const maxProtected = 64

// protected are the paths that l must not write, checked, shortest first,
// without those inside another.
func (b *box) protected(l launch) ([]string, error) {
	if l.Profile != driver.ProfileAgent || l.ReadOnlyWorkspace {
		return nil, nil
	}
	if len(l.Protected) > maxProtected {
		return nil, engine.Errorf(engine.Invalid, "%d protected paths: at most %d", len(l.Protected), maxProtected)
	}
	var all []string
	if !l.WritableGit {
		all = append(all, ".git")
	}
	for _, p := range l.Protected {
		clean := path.Clean(filepath.ToSlash(p))
		if p == "" || clean == "." || !filepath.IsLocal(clean) || strings.ContainsRune(p, 0) {
			return nil, engine.Errorf(engine.Invalid, "protected path %q is not inside the workspace", p)
		}
		all = append(all, clean)
	}
	slices.SortFunc(all, func(a, b string) int {
		if n := strings.Count(a, "/") - strings.Count(b, "/"); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	kept := all[:0]
	for _, p := range all {
		if !slices.ContainsFunc(kept, func(k string) bool { return p == k || strings.HasPrefix(p, k+"/") }) {
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// placeMasks makes the stand-ins that l needs and returns what takes them away.
func (b *box) placeMasks(l launch) (release func(), err error) {
	paths, err := b.protected(l)
	if err != nil || len(paths) == 0 || !b.host.confine.hides() {
		return nil, err
	}
	root, err := os.OpenRoot(b.workspace)
	if err != nil {
		return nil, engine.Errorf(engine.Unavailable, "open the workspace: %w", err)
	}
	defer root.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	var held []string
	for _, p := range paths {
		made, err := b.placeMask(root, p)
		held = append(held, made...)
		if err != nil {
			b.dropMasksLocked(root, held)
			return nil, err
		}
	}
	return func() { b.releaseMasks(held) }, nil
}

// placeMask makes what is missing of one path and counts its use. It is called
// with the lock held.
func (b *box) placeMask(root *os.Root, p string) (held []string, err error) {
	parts := strings.Split(p, "/")
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		there, err := checkWay(root, p, name, i == len(parts)-1)
		switch m := b.masks[name]; {
		case err != nil:
			return held, err
		case m != nil:
			m.users++
			held = append(held, name)
		case there:
			continue
		default:
			b.masks[name] = &mask{users: 1}
			held = append(held, name)
			if err := b.noteMasks(); err != nil { // before it is made: a crash leaves the note
				return held, err
			}
		}
		if there {
			continue
		}
		if err := root.Mkdir(name, 0o755); err != nil {
			return held, engine.Errorf(engine.Unavailable, "mask the missing path %s: %w", name, err)
		}
		if b.host.root {
			_ = root.Lchown(name, b.uid, b.gid) // its owner can remove what we can't any more
		}
	}
	return held, nil
}

// checkWay looks at one directory on the way to the protected path p, or at
// the path itself.
func checkWay(root *os.Root, p, name string, last bool) (there bool, err error) {
	fi, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, engine.Errorf(engine.Unavailable, "protected path %s: %w", p, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return false, engine.Errorf(engine.Invalid, "protected path %s: %s is a symbolic link", p, name).
			WithHint("protect what it points to, by its own path")
	case !last && !fi.IsDir():
		return false, engine.Errorf(engine.Invalid, "protected path %s: %s is not a directory", p, name)
	}
	return true, nil
}

func (b *box) releaseMasks(held []string) {
	root, err := os.OpenRoot(b.workspace)
	if err != nil {
		return // the note remembers them
	}
	defer root.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropMasksLocked(root, held)
}

// dropMasksLocked uncounts and removes, deepest first.
func (b *box) dropMasksLocked(root *os.Root, held []string) {
	changed := false
	for _, name := range slices.Backward(held) {
		m := b.masks[name]
		if m == nil {
			continue
		}
		if m.users--; m.users > 0 {
			continue
		}
		rmdirIn(root, name)
		delete(b.masks, name)
		changed = true
	}
	if changed {
		_ = b.noteMasks() // a note too many is looked at again and removed
	}
}

// rmdirIn removes an empty directory. What has become something else
// meanwhile is somebody's work and stays.
func rmdirIn(root *os.Root, name string) {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return
	}
	defer dir.Close()
	_ = unix.Unlinkat(int(dir.Fd()), path.Base(name), unix.AT_REMOVEDIR)
}

// noteMasks writes down which directories are ours.
func (b *box) noteMasks() error {
	names := make([]string, 0, len(b.masks))
	for name := range b.masks {
		names = append(names, name)
	}
	slices.Sort(names)
	file := filepath.Join(b.dir, masksFile)
	if len(names) == 0 {
		return os.Remove(file)
	}
	data, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// dropOldMasks removes what an engine that was killed has left.
func (b *box) dropOldMasks() {
	var names []string
	data, err := os.ReadFile(filepath.Join(b.dir, masksFile))
	if err != nil || json.Unmarshal(data, &names) != nil {
		return
	}
	root, err := os.OpenRoot(b.workspace)
	if err != nil {
		return
	}
	defer root.Close()
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if filepath.IsLocal(name) {
			rmdirIn(root, name)
		}
	}
	_ = os.Remove(filepath.Join(b.dir, masksFile)) // read again, it removes nothing
}

// dropMasks removes all of them, before an adopted workspace is given back.
func (b *box) dropMasks() { b.dropOldMasks() }
