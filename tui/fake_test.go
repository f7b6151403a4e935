package tui

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"sbx/engine"
)

// fakeEngine is an engine in memory: a snapshot, a journal, samples and a log.
type fakeEngine struct {
	engine.Engine // nil: what no screen asks for

	mu      sync.Mutex
	wake    chan struct{}
	snap    *engine.Snapshot
	journal []engine.Event
	records []engine.HealRecord
	points  []engine.Checkpoint
	sample  engine.Gauges
	lines   []engine.LogLine
	away    error // what every read fails with
	acts    []engine.ActionBody
	chats   []engine.Message
	files   map[string]string // by path
	patch   engine.Diff
	// terminals are the viewers that were attached, latest last.
	terminals []*fakeTerminal
}

func newFake(s *engine.Snapshot) *fakeEngine {
	return &fakeEngine{snap: s, wake: make(chan struct{})}
}

// change edits the fake and wakes whoever waits.
func (f *fakeEngine) change(edit func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit()
	close(f.wake)
	f.wake = make(chan struct{})
}

// tell appends an event.
func (f *fakeEngine) tell(body engine.EventBody) {
	f.change(func() {
		ev := engine.Event{Seq: f.snap.Position.Seq + 1, Time: time.Now(), By: engine.System, Body: body}
		f.snap.Apply(ev)
		f.journal = append(f.journal, ev)
	})
}

func (f *fakeEngine) waiter() (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wake, f.away
}

func (f *fakeEngine) Do(_ context.Context, a engine.Action) (engine.Receipt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return engine.Receipt{}, f.away
	}
	f.acts = append(f.acts, a.Body)
	if w, ok := a.Body.(engine.WriteFile); ok {
		return f.write(w)
	}
	return engine.Receipt{Action: a.ID, Position: f.snap.Position}, nil
}

func (f *fakeEngine) Snapshot(context.Context) (*engine.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return nil, f.away
	}
	return f.snap.Clone(), nil
}

func (f *fakeEngine) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		for {
			wake, _ := f.waiter()
			f.mu.Lock()
			var more []engine.Event
			for _, ev := range f.journal {
				if ev.Seq > after.Seq {
					more = append(more, ev)
				}
			}
			f.mu.Unlock()
			for _, ev := range more {
				if !yield(ev, nil) {
					return
				}
				after.Seq = ev.Seq
			}
			select {
			case <-wake:
			case <-ctx.Done():
				yield(engine.Event{}, ctx.Err())
				return
			}
		}
	}
}

func (f *fakeEngine) Gauges(ctx context.Context, every time.Duration) iter.Seq2[engine.Gauges, error] {
	return func(yield func(engine.Gauges, error) bool) {
		for {
			wake, away := f.waiter()
			f.mu.Lock()
			g := f.sample
			f.mu.Unlock()
			g.At = time.Now()
			if away != nil {
				g = engine.Gauges{}
			}
			if !yield(g, away) {
				return
			}
			timer := time.NewTimer(every)
			select {
			case <-timer.C:
			case <-wake:
			case <-ctx.Done():
				timer.Stop()
				yield(engine.Gauges{}, ctx.Err())
				return
			}
			timer.Stop()
		}
	}
}

func (f *fakeEngine) Heals(_ context.Context, q engine.HealQuery) iter.Seq2[engine.HealRecord, error] {
	return func(yield func(engine.HealRecord, error) bool) {
		f.mu.Lock()
		list := f.records
		f.mu.Unlock()
		for _, r := range list {
			if (q.Sandbox == "" || r.Body.Of() == q.Sandbox) && !yield(r, nil) {
				return
			}
		}
	}
}

func (f *fakeEngine) Messages(_ context.Context, q engine.MessageQuery) ([]engine.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []engine.Message
	for _, m := range f.chats {
		if m.Sandbox == q.Sandbox {
			list = append(list, m)
		}
	}
	return list, f.away
}

func (f *fakeEngine) Checkpoints(context.Context, engine.SandboxID) ([]engine.Checkpoint, error) {
	return f.points, nil
}

func (f *fakeEngine) Audit(context.Context, engine.AuditQuery) iter.Seq2[engine.AuditEntry, error] {
	return func(func(engine.AuditEntry, error) bool) {}
}

func (f *fakeEngine) ListProcesses(context.Context, engine.SandboxID) ([]engine.Process, error) {
	return nil, errors.ErrUnsupported
}

func (f *fakeEngine) ProcessByID(context.Context, engine.ProcessID) (engine.Process, error) {
	return engine.Process{}, engine.NotFound
}

func (f *fakeEngine) Logs(ctx context.Context, q engine.LogQuery) iter.Seq2[engine.LogLine, error] {
	return func(yield func(engine.LogLine, error) bool) {
		for {
			wake, away := f.waiter()
			if away != nil {
				yield(engine.LogLine{}, away)
				return
			}
			f.mu.Lock()
			lines := f.lines
			f.mu.Unlock()
			for _, l := range lines {
				if l.Pos < q.After {
					continue
				}
				if !yield(l, nil) {
					return
				}
				q.After = l.Next
			}
			if !q.Follow {
				return
			}
			select {
			case <-wake:
			case <-ctx.Done():
				yield(engine.LogLine{}, ctx.Err())
				return
			}
		}
	}
}

func (f *fakeEngine) Pipe(context.Context, engine.ProcessID, engine.LogPosition) (engine.Pipe, error) {
	return nil, errors.ErrUnsupported
}

func (f *fakeEngine) Upload(context.Context, engine.SandboxID, io.Reader) (engine.UploadID, error) {
	return "", errors.ErrUnsupported
}

func (f *fakeEngine) Archives(context.Context, engine.SandboxID) ([]engine.Archive, error) {
	return nil, nil
}

func (f *fakeEngine) Close() error { return nil }

func (f *fakeEngine) AttachTerminal(_ context.Context, id engine.ProcessID, how engine.Attachment) (engine.Terminal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return nil, f.away
	}
	t := newFakeTerminal(id, how)
	f.terminals = append(f.terminals, t)
	return t, nil
}

func (f *fakeEngine) Recording(context.Context, engine.ProcessID) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) { yield(engine.Recorded{}, errors.ErrUnsupported) }
}

func (f *fakeEngine) Keys(context.Context, engine.SandboxID) ([]engine.Key, error) { return nil, nil }

func (f *fakeEngine) Notices(context.Context) ([]engine.Notice, error) { return nil, nil }
