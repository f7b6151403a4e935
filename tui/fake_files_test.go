package tui

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sbx/engine"
)

// The workspace of a fakeEngine is a map of paths.

func (f *fakeEngine) ReadDir(_ context.Context, _ engine.SandboxID, dir string) ([]engine.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return nil, f.away
	}
	seen := map[string]engine.FileInfo{}
	for name, data := range f.files {
		rest := name
		if dir != "." {
			var ok bool
			if rest, ok = strings.CutPrefix(name, dir+"/"); !ok {
				continue
			}
		}
		first, _, deeper := strings.Cut(rest, "/")
		info := engine.FileInfo{Name: first, Size: int64(len(data)), Mode: 0o644, ModTime: time.Now().Add(-3 * time.Hour)}
		if deeper {
			info.Mode = fs.ModeDir | 0o755
		}
		seen[first] = info
	}
	return slices.Collect(maps.Values(seen)), nil
}

func (f *fakeEngine) ReadFile(_ context.Context, _ engine.SandboxID, name string) (engine.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.files[name]
	if !ok {
		return engine.File{}, engine.Errorf(engine.NotFound, "no file %s", name)
	}
	return engine.File{FileInfo: engine.FileInfo{Name: path.Base(name), Size: int64(len(data))}, Version: engine.Version(data), Data: []byte(data)}, f.away
}

func (f *fakeEngine) OpenFile(ctx context.Context, id engine.SandboxID, name string, _ int64) (engine.File, io.ReadCloser, error) {
	file, err := f.ReadFile(ctx, id, name)
	return file, io.NopCloser(strings.NewReader(string(file.Data))), err
}

func (f *fakeEngine) Find(_ context.Context, q engine.FindQuery) iter.Seq2[engine.Found, error] {
	return func(yield func(engine.Found, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(f.files)) {
			for i, line := range strings.Split(f.files[name], "\n") {
				hit := engine.Found{FindPosition: engine.FindPosition{Name: name, Line: i + 1}, Text: line}
				if strings.Contains(line, q.Text) && !yield(hit, nil) {
					return
				}
			}
		}
	}
}

func (f *fakeEngine) Diff(context.Context, engine.SandboxID, engine.CheckpointID, engine.CheckpointID) (engine.Diff, error) {
	return f.patch, nil
}

// write is WriteFile; the mutex is held.
func (f *fakeEngine) write(w engine.WriteFile) (engine.Receipt, error) {
	if engine.Version(f.files[w.Name]) != w.Replaces {
		return engine.Receipt{}, engine.Errorf(engine.Conflict, "%s has changed", w.Name)
	}
	f.files[w.Name] = string(w.Data)
	return engine.Receipt{Version: engine.Version(w.Data)}, nil
}
