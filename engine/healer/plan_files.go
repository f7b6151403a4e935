package healer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"sbx/engine"
	"sbx/engine/driver"
)

// maxStaged bounds what a plan may keep aside.
const maxStaged = 512 << 10

// staged are the files of a workspace with a plan's changes over them. What is
// written stays in memory: the workspace is only read.
type staged struct {
	driver.Files
	now    map[string][]byte // what is kept aside
	before map[string]string // what the workspace has there
	does   planned
	alone  bool // a restart was asked for
}

var _ driver.Files = (*staged)(nil)

func newStaged(files driver.Files) *staged {
	return &staged{Files: files, now: map[string][]byte{}, before: map[string]string{}}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// any reports whether there is anything to do.
func (s *staged) any() bool { return s.changed() || s.does.Install || s.alone }

func (s *staged) changed() bool {
	for name, data := range s.now {
		if s.before[name] != string(data) || len(data) == 0 {
			return true
		}
	}
	return false
}

// plan is what was kept aside, and its diff.
func (s *staged) plan() (planned, string) {
	p := s.does
	p.Sums = map[string]string{}
	var diff strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.now)) {
		p.Sums[name] = sum(s.now[name])
		diff.WriteString(udiff.Unified("a/"+name, "b/"+name, s.before[name], string(s.now[name])))
	}
	return p, diff.String()
}

// ReadFile reads what is kept aside, else the workspace.
func (s *staged) ReadFile(ctx context.Context, name string, offset, limit int64) (engine.File, error) {
	data, ok := s.now[path.Clean(name)]
	if !ok {
		return s.Files.ReadFile(ctx, name, offset, limit)
	}
	fi := stagedInfo(path.Clean(name), data)
	size := int64(len(data))
	end := size
	if offset = min(max(offset, 0), size); limit > 0 {
		end = min(size, offset+limit)
	}
	return engine.File{FileInfo: fi, Version: engine.Version("planned-" + sum(data)), Data: bytes.Clone(data[offset:end])}, nil
}

func stagedInfo(name string, data []byte) engine.FileInfo {
	return engine.FileInfo{Name: path.Base(name), Size: int64(len(data)), Mode: 0o644}
}

// WriteFile keeps a file aside, by the rules of the workspace's own.
func (s *staged) WriteFile(ctx context.Context, name string, replaces engine.Version, data []byte) (engine.Version, error) {
	name = path.Clean(name)
	old, err := s.ReadFile(ctx, name, 0, 0)
	switch {
	case err != nil && engine.AsCode(err) != engine.NotFound:
		return "", err
	case old.Version != replaces:
		return "", engine.Errorf(engine.Conflict, "%s has changed", name)
	}
	total := len(data)
	for other, has := range s.now {
		if other != name {
			total += len(has)
		}
	}
	if total > maxStaged {
		return "", engine.Errorf(engine.Exhausted, "a plan may change %d bytes of files, and this makes it %d", maxStaged, total)
	}
	if _, again := s.now[name]; !again {
		if err := s.plain(ctx, name); err != nil {
			return "", err
		}
		s.before[name] = string(old.Data)
	}
	s.now[name] = bytes.Clone(data)
	return engine.Version("planned-" + sum(data)), nil
}

// plain refuses what is there and is no file.
func (s *staged) plain(ctx context.Context, name string) error {
	list, err := s.Files.ReadDir(ctx, path.Dir(name))
	if engine.AsCode(err) == engine.NotFound {
		return nil // made with the file
	}
	for _, fi := range list {
		if path.Base(fi.Name) == path.Base(name) && (fi.Target != "" || fi.Mode&fs.ModeType != 0) {
			return engine.Errorf(engine.Forbidden, "%s is no regular file", name)
		}
	}
	return err
}

// ReadDir lists the workspace's directory with what is kept aside in it.
func (s *staged) ReadDir(ctx context.Context, dir string) ([]engine.FileInfo, error) {
	list, err := s.Files.ReadDir(ctx, dir)
	at := map[string]int{}
	for i, fi := range list {
		at[path.Base(fi.Name)] = i
	}
	added := false
	for _, name := range slices.Sorted(maps.Keys(s.now)) {
		rest, ok := beneath(name, dir)
		if !ok {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		fi := stagedInfo(first, s.now[name])
		if deeper {
			fi = engine.FileInfo{Name: first, Mode: fs.ModeDir | 0o755}
		}
		if i, there := at[first]; there {
			list[i].Size = fi.Size
			continue
		}
		at[first], added = len(list), true
		list = append(list, fi)
	}
	if added && engine.AsCode(err) == engine.NotFound {
		err = nil
	}
	return list, err
}

// beneath is name as seen from dir.
func beneath(name, dir string) (string, bool) {
	if dir = path.Clean(dir); dir == "." {
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}

// Walk walks the workspace, and then what is kept aside and new.
func (s *staged) Walk(ctx context.Context, dir string, fn func(name string, fi engine.FileInfo) (stop bool)) error {
	stopped, seen := false, map[string]bool{}
	err := s.Files.Walk(ctx, dir, func(name string, fi engine.FileInfo) bool {
		seen[path.Clean(name)] = true
		stopped = fn(name, fi)
		return stopped
	})
	for _, name := range slices.Sorted(maps.Keys(s.now)) {
		if _, in := beneath(name, dir); stopped || !in || seen[name] {
			continue
		}
		if engine.AsCode(err) == engine.NotFound {
			err = nil
		}
		stopped = fn(name, stagedInfo(name, s.now[name]))
	}
	return err
}

// planning are the tools of a run that only plans.
func (k *kit) planning() []tool {
	list := []tool{k.read(), k.write(), k.edit(), k.list(), k.search()}
	for i := range list {
		list[i].acts, list[i].tracked = false, false
	}
	list[1].about += " It is kept aside for the plan; the workspace stays as it is."
	list[2].about += " It is kept aside for the plan; the workspace stays as it is."
	note := func(name, about, said string, do func() error) tool {
		return tool{
			name: name, about: about, schema: none,
			call: func(_ context.Context, raw json.RawMessage) (string, error) {
				if _, err := decode[struct{}](raw); err != nil {
					return "", err
				}
				return said, do()
			},
		}
	}
	return append(list,
		note("install", "Note that the plan installs the dependencies anew, with the command that the sandbox's spec names. Nothing is run now.",
			"noted: the plan installs dependencies after its changes", func() error {
				if k.h.sb.Spec.App.Install == "" {
					return engine.Errorf(engine.Invalid, "the spec names no install command")
				}
				k.staged.does.Install = true
				return nil
			}),
		note("restart", "Note that the plan restarts the app, as every plan does. Nothing is restarted now.",
			"noted: the plan ends with a restart of the app", func() error {
				k.staged.alone = true
				return nil
			}),
	)
}

// noted adds a call that was made to the plan.
func (k *kit) noted(e planEdit, err error) error {
	if k.staged == nil || err != nil {
		return err
	}
	if e.Content != nil { // it replaces what was before
		k.staged.does.Edits = slices.DeleteFunc(k.staged.does.Edits, func(o planEdit) bool { return o.Path == e.Path })
	}
	k.staged.does.Edits = append(k.staged.does.Edits, e)
	return nil
}
