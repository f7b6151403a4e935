package fake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// files are a workspace: regular files by name. Directories are where files are.
type files struct {
	mu    sync.Mutex
	files map[string]file
}

type file struct {
	data []byte
	mode fs.FileMode
	time time.Time
}

var _ driver.Files = (*files)(nil)

func versionOf(data []byte) engine.Version {
	sum := sha256.Sum256(data)
	return engine.Version(hex.EncodeToString(sum[:]))
}

// clean is a name as the map has it.
func clean(name string) (string, error) {
	c := path.Clean(name)
	if !fs.ValidPath(c) {
		return "", engine.Errorf(engine.Invalid, "%q is not in the workspace", name)
	}
	return c, nil
}

func (f *files) isDir(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "." {
		return true
	}
	for n := range f.files {
		if strings.HasPrefix(n, name+"/") {
			return true
		}
	}
	return false
}

func (x file) info(name string) engine.FileInfo {
	return engine.FileInfo{Name: path.Base(name), Size: int64(len(x.data)), Mode: x.mode, ModTime: x.time}
}

// ReadDir lists a directory.
func (f *files) ReadDir(ctx context.Context, dir string) ([]engine.FileInfo, error) {
	dir, err := clean(dir)
	if err != nil {
		return nil, err
	}
	if !f.isDir(dir) {
		return nil, engine.Errorf(engine.NotFound, "there is no directory %q", dir)
	}
	found := map[string]engine.FileInfo{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, x := range f.files {
		rest, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			rest, ok = name, true
		}
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			found[first] = engine.FileInfo{Name: first, Mode: fs.ModeDir | 0o755}
		} else {
			found[first] = x.info(first)
		}
	}
	list := slices.Collect(maps.Values(found))
	slices.SortFunc(list, func(a, b engine.FileInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, ctx.Err()
}

// ReadFile reads a file or a part of it.
func (f *files) ReadFile(ctx context.Context, name string, offset, limit int64) (engine.File, error) {
	name, err := clean(name)
	if err != nil {
		return engine.File{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	x, ok := f.files[name]
	if !ok {
		return engine.File{}, engine.Errorf(engine.NotFound, "there is no file %q", name)
	}
	data := x.data[min(max(0, offset), int64(len(x.data))):]
	if limit > 0 {
		data = data[:min(limit, int64(len(data)))]
	}
	return engine.File{FileInfo: x.info(name), Version: versionOf(x.data), Data: slices.Clone(data)}, ctx.Err()
}

// put is a template's WriteFile.
func (f *files) put(name string, mode uint32, data []byte) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[name] = file{slices.Clone(data), fs.FileMode(mode).Perm(), time.Now()}
	return nil
}

// WriteFile replaces a file whose version is replaces, or makes one.
func (f *files) WriteFile(ctx context.Context, name string, replaces engine.Version, data []byte) (engine.Version, error) {
	name, err := clean(name)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	x, ok := f.files[name]
	var now engine.Version
	if ok {
		now = versionOf(x.data)
	}
	if now != replaces {
		return "", engine.Errorf(engine.Conflict, "%s has changed meanwhile", name)
	}
	if !ok {
		x.mode = 0o644
	}
	f.files[name] = file{slices.Clone(data), x.mode, time.Now()}
	return versionOf(data), ctx.Err()
}

// templateWriter is the workspace as a template sees it.
type templateWriter struct{ f *files }

func (w templateWriter) WriteFile(name string, mode uint32, data []byte) error {
	return w.f.put(name, mode, data)
}

// Walk visits every file, sorted.
func (f *files) Walk(ctx context.Context, dir string, fn func(name string, fi engine.FileInfo) (stop bool)) error {
	dir, err := clean(dir)
	if err != nil {
		return err
	}
	f.mu.Lock()
	all := maps.Clone(f.files)
	f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if (dir == "." || strings.HasPrefix(name, dir+"/")) && !strings.HasPrefix(name, ".git/") && fn(name, all[name].info(name)) {
			return nil
		}
	}
	return nil
}

func (f *files) size() engine.Size {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, file := range f.files {
		n += len(file.data)
	}
	return engine.Size(n)
}
