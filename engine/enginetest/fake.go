package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/engine"
)

// Fake is an engine in memory, for tests of what stands before an engine:
// servers, clients, screens. Its journal, logs and history are slices, its
// apps only pretend to run, but the commands that it spawns are real, in
// workspaces under its directory. It passes [Run].
type Fake struct {
	dir string
	ctx context.Context // ends with the engine; commands are killed then
	end context.CancelFunc
	wg  sync.WaitGroup // all goroutines

	mu       sync.Mutex
	wake     chan struct{} // closed by the next change
	closed   bool
	snap     *engine.Snapshot
	first    engine.Seq // of events[0]
	events   []engine.Event
	records  []engine.HealRecord
	audit    []engine.AuditEntry
	receipts map[engine.ActionID]engine.Receipt
	procs    map[engine.ProcessID]*proc

	incidents map[engine.IncidentID]engine.Incident
	chat      chat
	uploads   map[engine.UploadID][]byte
	points    []engine.Checkpoint // newest first
	trees     map[engine.CheckpointID]files
	archives  map[engine.SandboxID]archive
}

var _ engine.Engine = (*Fake)(nil)

// Epoch is that of a Fake's journal.
const Epoch = 7

// NewFake returns an engine whose workspaces are in dir.
func NewFake(dir string) *Fake {
	f := &Fake{
		dir: dir, wake: make(chan struct{}), first: 1,
		snap:     engine.NewSnapshot(engine.Position{Epoch: Epoch}),
		receipts: map[engine.ActionID]engine.Receipt{},
		procs:    map[engine.ProcessID]*proc{},

		incidents: map[engine.IncidentID]engine.Incident{},
		uploads:   map[engine.UploadID][]byte{},
		trees:     map[engine.CheckpointID]files{},
		archives:  map[engine.SandboxID]archive{},
	}
	f.snap.About = engine.About{
		Version: "fake", Protocol: engine.Protocol, Host: "nowhere",
		Isolation: engine.Isolation{Name: "none"}, NoModel: "a fake has none",
	}
	f.ctx, f.end = context.WithCancel(context.Background())
	return f
}

// Close stops the engine and what runs in it.
func (f *Fake) Close() error {
	f.mu.Lock()
	f.closed = true
	f.stir()
	f.mu.Unlock()
	f.end()
	f.wg.Wait()
	return nil
}

// stir wakes whoever waits for a change. The lock is held.
func (f *Fake) stir() {
	close(f.wake)
	f.wake = make(chan struct{})
}

func (f *Fake) gone() error {
	if f.closed {
		return engine.Errorf(engine.Unavailable, "the engine was stopped")
	}
	return nil
}

// author is who makes an event, and by which action.
type author struct {
	by     engine.Actor
	action engine.ActionID
}

var itself = author{by: engine.System}

// append writes facts into the journal. The lock is held.
func (f *Fake) append(a author, bodies ...engine.EventBody) {
	for _, b := range bodies {
		seq := f.snap.Position.Seq + 1
		if c, ok := b.(engine.SandboxChanged); ok {
			c.Sandbox.Seq = seq
			b = c
		}
		ev := engine.Event{Seq: seq, Time: now(), By: a.by, Action: a.action, Body: b}
		f.events = append(f.events, ev)
		f.snap.Apply(ev)
		if k := ev.Kind(); strings.HasPrefix(k, "heal.") && k != engine.KindHealChanged || strings.HasPrefix(k, "signal.") || strings.HasPrefix(k, "incident.") {
			f.records = append(f.records, ev)
		}
		if p, ok := b.(engine.ProcessChanged); ok && f.procs[p.Process.ID] != nil {
			f.procs[p.Process.ID].row = p.Process
		}
	}
	f.stir()
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Emit appends n events that change nothing but the label "n" of a sandbox.
func (f *Fake) Emit(id engine.SandboxID, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		sb := f.snap.Sandboxes[id]
		f.append(itself, engine.SandboxChanged{Sandbox: sb})
	}
}

// Print has the app of a sandbox write text to its log.
func (f *Fake) Print(id engine.SandboxID, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.procs[f.snap.App(id).ID]; p != nil {
		p.out.write(text)
		f.stir()
	}
}

// Prune forgets all events up to and including seq.
func (f *Fake) Prune(seq engine.Seq) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(max(0, int(seq-f.first)+1), len(f.events))
	f.events = slices.Clone(f.events[n:])
	f.first += engine.Seq(n)
}

func (f *Fake) sandbox(id engine.SandboxID) (engine.Sandbox, error) {
	sb, ok := f.snap.Sandboxes[id]
	if !ok {
		return sb, engine.Errorf(engine.NotFound, "no sandbox %q", id).WithHint("see them with: sbx ls")
	}
	return sb, nil
}

func (f *Fake) workspace(id engine.SandboxID) string { return filepath.Join(f.dir, string(id)) }

// root opens a sandbox's workspace, which nothing read through it can leave.
func (f *Fake) root(id engine.SandboxID) (*os.Root, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.sandbox(id); err != nil {
		return nil, err
	}
	return os.OpenRoot(f.workspace(id))
}

func versionOf(b []byte) engine.Version {
	sum := sha256.Sum256(b)
	return engine.Version(hex.EncodeToString(sum[:8]))
}
