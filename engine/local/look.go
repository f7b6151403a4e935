package local

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/healer"
	"sbx/engine/logs"
	"sbx/store"
)

// Looker is an engine.Engine over a data directory that no engine runs on. It
// reads the store and the logs, starts nothing and changes nothing.
type Looker struct {
	store *store.Store // nil: the data directory is empty
	logs  *logs.Store
	about engine.About
	heal  healer.Policy
	kept  func(context.Context) []driver.KeptProcess
}

var _ engine.Engine = (*Looker)(nil)

// Look opens a data directory read-only. An empty one is an empty fleet. heal
// is the policy that an engine would have, kept says what goes on without one; nil:
// nothing does.
func Look(ctx context.Context, dir, version string, heal healer.Policy, kept func(context.Context) []driver.KeptProcess) (*Looker, error) {
	l := &Looker{about: engine.About{Version: version, Protocol: engine.Protocol}, heal: heal, kept: kept}
	st, err := store.OpenReadOnly(ctx, dir)
	if errors.Is(err, engine.NotFound) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.store = st
	logDir := filepath.Join(dir, "logs")
	if _, err := os.Stat(logDir); err == nil {
		if l.logs, err = logs.Open(logDir, logs.Options{}); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	return l, nil
}

var errNotRunning = engine.Errorf(engine.Unavailable, "no engine is running").WithHint("start one with: sbx serve --detach")

// Do refuses: there is nobody who could act.
func (l *Looker) Do(context.Context, engine.Action) (engine.Receipt, error) {
	return engine.Receipt{}, errNotRunning
}

// unwatched is said of what goes on without an engine.
const unwatched = "it goes on, and no engine watches it"

// alive are the processes that go on without an engine.
func (l *Looker) alive(ctx context.Context) map[engine.ProcessID]bool {
	on := map[engine.ProcessID]bool{}
	if l.kept == nil {
		return on
	}
	for _, k := range l.kept(ctx) {
		if !k.Exited {
			on[k.Process] = true
		}
	}
	return on
}

// Snapshot is the last that the store knows. Without an engine nothing runs but
// what is kept, whatever the rows of one that was killed may say.
func (l *Looker) Snapshot(ctx context.Context) (*engine.Snapshot, error) {
	if l.store == nil {
		s := engine.NewSnapshot(engine.Position{Epoch: 1})
		s.About = l.about
		return s, nil
	}
	s, err := l.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	s.About = l.about
	on := l.alive(ctx)
	up := map[engine.SandboxID]bool{}
	for id, p := range s.Processes {
		up[p.Sandbox] = up[p.Sandbox] || on[id] && !p.State.Over()
		s.Processes[id] = atRest(p, on)
	}
	for id, sb := range s.Sandboxes {
		if sb.State.Live() {
			s.Sandboxes[id] = unseen(sb, up[id])
		}
	}
	return s, nil
}

// unseen is a sandbox without an engine that was live when there was one.
func unseen(sb engine.Sandbox, up bool) engine.Sandbox {
	why := unwatched
	if !up {
		sb.State, why = engine.Cold, "no engine is running"
	}
	if sb.Health != engine.Broken || up {
		sb.Health, sb.Reason = engine.Unknown, why
	}
	return sb
}

// atRest is a process without an engine: whatever its row may say, it is over,
// unless it is one of those that go on.
func atRest(p engine.Process, on map[engine.ProcessID]bool) engine.Process {
	switch {
	case p.State.Over():
		return p
	case on[p.ID]:
		p.Reason = unwatched
		return p
	case p.Once():
		p.State, p.Reason = engine.ProcessExited, "no engine is running"
	default:
		p.State = engine.ProcessStopped
	}
	p.PID = 0
	return p
}

// Events yields what the journal has, then ends: nothing more will come.
func (l *Looker) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		if l.store == nil {
			yield(engine.Event{}, errNotRunning)
			return
		}
		end, err := l.store.Position(ctx)
		if err == nil && after.Epoch != end.Epoch {
			err = engine.Errorf(engine.Compacted, "position %s is of another journal", after)
		}
		if err != nil {
			yield(engine.Event{}, err)
			return
		}
		if after.Seq < end.Seq {
			for ev, err := range l.store.Events(ctx, after.Seq) {
				if !yield(ev, err) || err != nil {
					return
				}
				if ev.Seq >= end.Seq {
					break
				}
			}
		}
		yield(engine.Event{}, errNotRunning)
	}
}

// Gauges yields that there is nobody to measure.
func (l *Looker) Gauges(context.Context, time.Duration) iter.Seq2[engine.Gauges, error] {
	return func(yield func(engine.Gauges, error) bool) { yield(engine.Gauges{}, errNotRunning) }
}

// Heals yields the healer's records.
func (l *Looker) Heals(ctx context.Context, q engine.HealQuery) iter.Seq2[engine.HealRecord, error] {
	if l.store == nil {
		return func(func(engine.HealRecord, error) bool) {}
	}
	return l.store.Heals(ctx, q)
}

// Audit yields the audit log.
func (l *Looker) Audit(ctx context.Context, q engine.AuditQuery) iter.Seq2[engine.AuditEntry, error] {
	if l.store == nil {
		return func(func(engine.AuditEntry, error) bool) {}
	}
	return l.store.Audit(ctx, q)
}

// Checkpoints are a sandbox's, newest first.
func (l *Looker) Checkpoints(ctx context.Context, id engine.SandboxID) (list []engine.Checkpoint, err error) {
	if l.store == nil {
		return nil, engine.Errorf(engine.NotFound, "no sandbox %s", id)
	}
	err = l.store.View(ctx, func(tx *store.Tx) error {
		list, err = tx.Checkpoints(id)
		return err
	})
	return list, err
}

// Diff needs an engine: workspaces are a driver's.
func (l *Looker) Diff(context.Context, engine.SandboxID, engine.CheckpointID, engine.CheckpointID) (engine.Diff, error) {
	return engine.Diff{}, errNotRunning
}

// ProcessByID is a process as it was last seen.
func (l *Looker) ProcessByID(ctx context.Context, id engine.ProcessID) (p engine.Process, err error) {
	if l.store == nil {
		return p, engine.Errorf(engine.NotFound, "no process %s", id)
	}
	err = l.store.View(ctx, func(tx *store.Tx) error {
		p, err = tx.Process(id)
		return err
	})
	return atRest(p, l.alive(ctx)), err
}

// ListProcesses are the processes as they were last seen.
func (l *Looker) ListProcesses(ctx context.Context, id engine.SandboxID) ([]engine.Process, error) {
	switch {
	case l.store == nil && id == "":
		return nil, nil
	case l.store == nil:
		return nil, engine.Errorf(engine.NotFound, "no sandbox %s", id)
	}
	list, err := listProcesses(ctx, l.store, id)
	on := l.alive(ctx)
	for i, p := range list {
		list[i] = atRest(p, on)
	}
	return list, err
}

// Logs yields what was written. Following ends there, saying that nobody
// writes more.
func (l *Looker) Logs(ctx context.Context, q engine.LogQuery) iter.Seq2[engine.LogLine, error] {
	if l.store == nil || l.logs == nil {
		return func(yield func(engine.LogLine, error) bool) {
			yield(engine.LogLine{}, engine.Errorf(engine.NotFound, "no log of sandbox %s", q.Sandbox))
		}
	}
	e := &Engine{store: l.store, logs: l.logs}
	follow := q.Follow
	q.Follow = false
	return func(yield func(engine.LogLine, error) bool) {
		for line, err := range e.Logs(ctx, q) {
			if !yield(line, err) || err != nil {
				return
			}
		}
		if follow {
			yield(engine.LogLine{}, errNotRunning)
		}
	}
}

// Pipe needs an engine.
func (l *Looker) Pipe(context.Context, engine.ProcessID, engine.LogPosition) (engine.Pipe, error) {
	return nil, errNotRunning
}

// AttachTerminal needs an engine.
func (l *Looker) AttachTerminal(context.Context, engine.ProcessID, engine.Attachment) (engine.Terminal, error) {
	return nil, errNotRunning
}

// Recording reads what a terminal left.
func (l *Looker) Recording(ctx context.Context, id engine.ProcessID) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) { yield(engine.Recorded{}, errNotRunning) }
}

// ReadDir needs an engine: workspaces are a driver's.
func (l *Looker) ReadDir(context.Context, engine.SandboxID, string) ([]engine.FileInfo, error) {
	return nil, errNotRunning
}

// ReadFile needs an engine: workspaces are a driver's.
func (l *Looker) ReadFile(context.Context, engine.SandboxID, string) (engine.File, error) {
	return engine.File{}, errNotRunning
}

// OpenFile needs an engine: workspaces are a driver's.
func (l *Looker) OpenFile(context.Context, engine.SandboxID, string, int64) (engine.File, io.ReadCloser, error) {
	return engine.File{}, nil, errNotRunning
}

// Find needs an engine: workspaces are a driver's.
func (l *Looker) Find(context.Context, engine.FindQuery) iter.Seq2[engine.Found, error] {
	return func(yield func(engine.Found, error) bool) { yield(engine.Found{}, errNotRunning) }
}

// Upload needs an engine.
func (l *Looker) Upload(context.Context, engine.SandboxID, io.Reader) (engine.UploadID, error) {
	return "", errNotRunning
}

// Archives needs an engine: it knows where they are kept.
func (l *Looker) Archives(context.Context, engine.SandboxID) ([]engine.Archive, error) {
	return nil, errNotRunning
}

// Close lets go of the store.
func (l *Looker) Close() error {
	var errs []error
	if l.logs != nil {
		errs = append(errs, l.logs.Close())
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	return errors.Join(errs...)
}
