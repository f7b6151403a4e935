package enginetest

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"time"

	"sbx/engine"
)

// Snapshot is everything at one position.
func (f *Fake) Snapshot(ctx context.Context) (*engine.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.gone(); err != nil {
		return nil, err
	}
	return f.snap.Clone(), nil
}

// Events yields every event after a position.
func (f *Fake) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		for seq := after.Seq; ; {
			f.mu.Lock()
			batch, wake, err := f.since(engine.Position{Epoch: after.Epoch, Seq: seq})
			f.mu.Unlock()
			if err == nil && len(batch) == 0 {
				err = pause(ctx, wake)
			}
			if err != nil {
				yield(engine.Event{}, err)
				return
			}
			for _, ev := range batch {
				if ctx.Err() != nil || !yield(ev, nil) {
					if ctx.Err() != nil {
						yield(engine.Event{}, ctx.Err())
					}
					return
				}
				seq = ev.Seq
			}
		}
	}
}

func (f *Fake) since(pos engine.Position) ([]engine.Event, <-chan struct{}, error) {
	switch now := f.snap.Position; {
	case f.closed:
		return nil, nil, f.gone()
	case pos.Epoch != now.Epoch || pos.Seq > now.Seq || pos.Seq+1 < f.first:
		return nil, nil, engine.Errorf(engine.Compacted, "position %s is gone (the journal is at %s)", pos, now)
	}
	return f.events[pos.Seq+1-f.first:], f.wake, nil
}

// Gauges yields made-up samples.
func (f *Fake) Gauges(ctx context.Context, every time.Duration) iter.Seq2[engine.Gauges, error] {
	return func(yield func(engine.Gauges, error) bool) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			f.mu.Lock()
			g, err := f.sample(), f.gone()
			f.mu.Unlock()
			if !yield(g, err) || err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				yield(engine.Gauges{}, ctx.Err())
				return
			}
		}
	}
}

func (f *Fake) sample() engine.Gauges {
	g := engine.Gauges{At: now(), Sandboxes: map[engine.SandboxID]engine.Sample{}}
	g.Pool.MaxCapacity = 1000
	for id, sb := range f.snap.Sandboxes {
		g.Pool.Total++
		if sb.State == engine.Cold {
			g.Pool.Cold++
			continue
		}
		g.Pool.Waiting++
		g.Sandboxes[id] = engine.Sample{Usage: engine.Usage{Processes: 1, Memory: engine.MiB}, LogLine: "started"}
	}
	return g
}

// Heals yields the healer's records.
func (f *Fake) Heals(ctx context.Context, q engine.HealQuery) iter.Seq2[engine.HealRecord, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []engine.HealRecord
	for _, r := range f.records {
		if r.Seq > q.After && (q.Sandbox == "" || q.Sandbox == r.Body.Of()) && !r.Time.Before(q.Since) {
			list = append(list, r)
		}
	}
	return all(ctx, newest(list, q.Limit))
}

// Audit yields the audit log.
func (f *Fake) Audit(ctx context.Context, q engine.AuditQuery) iter.Seq2[engine.AuditEntry, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []engine.AuditEntry
	for _, e := range f.audit {
		if e.ID > q.After && (q.Subject == "" || q.Subject == e.Subject) && !e.At.Before(q.Since) {
			list = append(list, e)
		}
	}
	return all(ctx, newest(list, q.Limit))
}

func newest[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[len(list)-limit:]
	}
	return list
}

func all[T any](ctx context.Context, list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if err := ctx.Err(); err != nil {
				yield(v, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Checkpoints are those of the actions on files.
func (f *Fake) Checkpoints(_ context.Context, id engine.SandboxID) ([]engine.Checkpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []engine.Checkpoint
	for _, cp := range f.points {
		if cp.Sandbox == id {
			list = append(list, cp)
		}
	}
	_, err := f.sandbox(id)
	return list, err
}

// Diff knows which files differ, and no patch.
func (f *Fake) Diff(_ context.Context, id engine.SandboxID, from, to engine.CheckpointID) (engine.Diff, error) {
	now, err := f.contents(id)
	if err != nil {
		return engine.Diff{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, ok := f.trees[from]
	if !ok {
		return engine.Diff{}, engine.Errorf(engine.NotFound, "no checkpoint %q", from)
	}
	if to != "" {
		if now, ok = f.trees[to]; !ok {
			return engine.Diff{}, engine.Errorf(engine.NotFound, "no checkpoint %q", to)
		}
	}
	var d engine.Diff
	for _, name := range before.names() {
		if data, is := now[name]; !is {
			d.Changes = append(d.Changes, engine.Change{Path: name, Status: engine.Deleted})
		} else if data != before[name] {
			d.Changes = append(d.Changes, engine.Change{Path: name, Status: engine.Modified})
		}
	}
	for _, name := range now.names() {
		if _, was := before[name]; !was {
			d.Changes = append(d.Changes, engine.Change{Path: name, Status: engine.Added})
		}
	}
	return d, nil
}

// ReadDir lists a directory of a workspace.
func (f *Fake) ReadDir(_ context.Context, id engine.SandboxID, dir string) ([]engine.FileInfo, error) {
	root, err := f.root(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if dir == "" {
		dir = "."
	}
	d, err := root.Open(dir)
	if err != nil {
		return nil, fileError(dir, err)
	}
	defer d.Close()
	infos, err := d.Readdir(-1)
	if err != nil {
		return nil, fileError(dir, err)
	}
	var list []engine.FileInfo
	for _, fi := range infos {
		list = append(list, infoOf(fi))
	}
	slices.SortFunc(list, func(a, b engine.FileInfo) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list, nil
}

// ReadFile reads a file of a workspace.
func (f *Fake) ReadFile(_ context.Context, id engine.SandboxID, name string) (engine.File, error) {
	root, err := f.root(id)
	if err != nil {
		return engine.File{}, err
	}
	defer root.Close()
	fi, err := root.Stat(name)
	if err != nil {
		return engine.File{}, fileError(name, err)
	}
	b, err := root.ReadFile(name)
	if err != nil {
		return engine.File{}, fileError(name, err)
	}
	return engine.File{FileInfo: infoOf(fi), Version: versionOf(b), Data: b}, nil
}

func infoOf(fi fs.FileInfo) engine.FileInfo {
	return engine.FileInfo{Name: fi.Name(), Size: fi.Size(), Mode: fi.Mode(), ModTime: fi.ModTime().UTC()}
}

func fileError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return engine.Errorf(engine.NotFound, "%s: no such file", name)
	}
	return engine.Errorf(engine.Invalid, "%s: %w", name, err)
}
