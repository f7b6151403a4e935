package healer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// box is a driver.Box in memory: files, checkpoints, a git repository of one
// commit, and commands that are functions.
type box struct {
	mu       sync.Mutex
	files    map[string]string
	trees    map[string]map[string]string
	head     map[string]string // nil: no repository
	commits  []commit
	ignored  []string
	holder   driver.Holder
	commands map[string]func(ctx context.Context, b *box) (string, int)
	ran      []driver.Command
	live     int // commands that run
	noSave   error
	onCommit func()
	strays   int
}

type commit struct {
	paths   []string
	message string
}

func newBox(files map[string]string) *box {
	return &box{
		files: maps.Clone(files), head: maps.Clone(files), trees: map[string]map[string]string{},
		commands: map[string]func(context.Context, *box) (string, int){},
	}
}

func (b *box) file(name string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.files[name]
	return data, ok
}

func (b *box) put(name, data string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[name] = data
}

func (b *box) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.files, name)
}

func (b *box) Start(ctx context.Context, _ engine.ProcessID, cmd driver.Command, out, _ io.WriteCloser) (driver.Proc, error) {
	b.mu.Lock()
	run := b.commands[cmd.Shell]
	b.ran = append(b.ran, cmd)
	if git, ok := strings.CutPrefix(cmd.Shell, "git --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null cat-file blob 'HEAD:./"); ok {
		name := strings.TrimSuffix(git, "'")
		run = func(_ context.Context, b *box) (string, int) {
			b.mu.Lock()
			defer b.mu.Unlock()
			data, ok := b.head[name]
			if !ok {
				return "", 128
			}
			return data, 0
		}
	}
	b.live++
	b.mu.Unlock()
	if run == nil {
		run = func(context.Context, *box) (string, int) { return cmd.Shell + ": not found", 127 }
	}
	running, kill := context.WithCancel(context.WithoutCancel(ctx))
	p := &proc{done: make(chan struct{}), kill: kill}
	go func() {
		text, code := run(running, b)
		_, _ = io.WriteString(out, text)
		p.exit = engine.Exit{Code: code}
		b.mu.Lock()
		b.live--
		b.mu.Unlock()
		close(p.done)
		_ = out.Close()
	}()
	return p, nil
}

// proc ends when its function does.
type proc struct {
	done chan struct{}
	kill func()
	exit engine.Exit
}

func (p *proc) PID() int { return 1 }
func (p *proc) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, ctx.Err()
	}
}
func (p *proc) Signal(context.Context, string) error { return nil }
func (p *proc) Input() io.WriteCloser                { return nil }
func (p *proc) Kill(ctx context.Context, _ time.Duration) error {
	p.kill()
	_, err := p.Wait(ctx)
	return err
}

func (b *box) Dial(context.Context, int) (net.Conn, error) {
	return nil, errors.New("connection refused")
}

func (b *box) FreePort(_ context.Context, taken func(int) bool) (int, error) {
	for port := 5000; port < 5100; port++ {
		if !taken(port) {
			return port, nil
		}
	}
	return 0, errors.New("no port")
}

func (b *box) PortHolder(context.Context, int) (driver.Holder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.holder, nil
}

func (b *box) KillStrays(context.Context) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.strays++
	b.holder = driver.Holder{}
	return []string{"node (pid 77)"}, nil
}
func (b *box) Files() driver.Files                         { return b }
func (b *box) Checkpoints() driver.Checkpoints             { return b }
func (b *box) Tree() driver.Tree                           { return nil }
func (b *box) Archives() driver.Archives                   { return nil }
func (b *box) Usage(context.Context) (engine.Usage, error) { return engine.Usage{Processes: 1}, nil }
func (b *box) Disk(context.Context) (engine.Size, error)   { return 0, nil }
func (b *box) Location() string                            { return "/nowhere" }
func (b *box) Destroy(context.Context) error               { return nil }

func version(data string) engine.Version {
	sum := sha256.Sum256([]byte(data))
	return engine.Version(hex.EncodeToString(sum[:8]))
}

func (b *box) ReadDir(_ context.Context, dir string) ([]engine.FileInfo, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[string]engine.FileInfo{}
	for name, data := range b.files {
		rest := name
		if dir != "." {
			var ok bool
			if rest, ok = strings.CutPrefix(name, dir+"/"); !ok {
				continue
			}
		}
		first, _, sub := strings.Cut(rest, "/")
		fi := engine.FileInfo{Name: first, Size: int64(len(data)), Mode: 0o644}
		if sub {
			fi = engine.FileInfo{Name: first, Mode: fs.ModeDir}
		}
		if target, ok := strings.CutPrefix(data, "link:"); ok && !sub {
			fi.Target, fi.Mode = target, fs.ModeSymlink
		}
		seen[first] = fi
	}
	if len(seen) == 0 && dir != "." {
		return nil, engine.Errorf(engine.NotFound, "no directory %s", dir)
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b engine.FileInfo) int { return strings.Compare(a.Name, b.Name) }), nil
}

func (b *box) ReadFile(_ context.Context, name string, _, _ int64) (engine.File, error) {
	data, ok := b.file(path.Clean(name))
	if !ok {
		return engine.File{}, engine.Errorf(engine.NotFound, "no file %s", name)
	}
	return engine.File{FileInfo: engine.FileInfo{Name: path.Base(name)}, Version: version(data), Data: []byte(data)}, nil
}

func (b *box) WriteFile(_ context.Context, name string, replaces engine.Version, data []byte) (engine.Version, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, ok := b.files[name]
	if ok && version(old) != replaces || !ok && replaces != "" {
		return "", engine.Errorf(engine.Conflict, "%s has changed", name)
	}
	b.files[name] = string(data)
	return version(string(data)), nil
}

func (b *box) Walk(_ context.Context, _ string, fn func(string, engine.FileInfo) bool) error {
	b.mu.Lock()
	files := maps.Clone(b.files)
	b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !rebuildable(name) && fn(name, engine.FileInfo{Name: path.Base(name), Size: int64(len(files[name])), Mode: 0o644}) {
			return nil
		}
	}
	return nil
}

func rebuildable(name string) bool { return strings.HasPrefix(name, "node_modules/") }

func (b *box) Save(context.Context, string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noSave != nil {
		return "", b.noSave
	}
	tree := map[string]string{}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		if !rebuildable(name) {
			tree[name] = b.files[name]
			fmt.Fprintf(&all, "%q=%q;", name, b.files[name])
		}
	}
	id := string(version(all.String()))
	b.trees[id] = tree
	return id, nil
}

func (b *box) Diff(_ context.Context, from, to string) (engine.Diff, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, ok := b.trees[from]
	y, ok2 := b.trees[to]
	if !ok || !ok2 {
		return engine.Diff{}, engine.Errorf(engine.NotFound, "no tree")
	}
	var d engine.Diff
	for _, name := range slices.Sorted(maps.Keys(union(x, y))) {
		old, was := x[name]
		now, is := y[name]
		switch {
		case was && !is:
			d.Changes = append(d.Changes, engine.Change{Path: name, Status: engine.Deleted})
		case !was && is:
			d.Changes = append(d.Changes, engine.Change{Path: name, Status: engine.Added})
		case old != now:
			d.Changes = append(d.Changes, engine.Change{Path: name, Status: engine.Modified})
		default:
			continue
		}
		d.Patch += fmt.Sprintf("--- a/%s\n+++ b/%s\n-%s\n+%s\n", name, name, old, now)
	}
	return d, nil
}

func union(x, y map[string]string) map[string]string {
	all := maps.Clone(x)
	maps.Copy(all, y)
	return all
}

func (b *box) Restore(_ context.Context, tree string, paths []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range paths {
		if data, ok := b.trees[tree][p]; ok {
			b.files[p] = data
		} else {
			delete(b.files, p)
		}
	}
	return nil
}

func (b *box) Drop(_ context.Context, keep []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.trees, func(id string, _ map[string]string) bool { return !slices.Contains(keep, id) })
	return nil
}

func (b *box) Dirty(context.Context) ([]string, bool, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.head == nil {
		return nil, false, "no git repository", nil
	}
	var dirty []string
	for name := range union(b.head, b.files) {
		now, is := b.files[name]
		old, was := b.head[name]
		if (is != was || now != old) && !rebuildable(name) && !slices.Contains(b.ignored, name) {
			dirty = append(dirty, name)
		}
	}
	slices.Sort(dirty)
	return dirty, true, "", nil
}

func (b *box) Commit(_ context.Context, paths []string, message string) (string, error) {
	if b.onCommit != nil {
		b.onCommit()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range paths {
		if data, ok := b.files[p]; ok {
			b.head[p] = data
		} else {
			delete(b.head, p)
		}
	}
	b.commits = append(b.commits, commit{paths, message})
	return fmt.Sprintf("c%d", len(b.commits)), nil
}

func (p *proc) Resize(context.Context, engine.TermSize) error { return nil }
