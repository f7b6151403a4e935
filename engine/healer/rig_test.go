package healer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/driver"
	"sbx/store"
)

// rig is a healer over a real store, with sandboxes whose apps are functions
// of their files.
type rig struct {
	t     *testing.T
	store *store.Store
	model *script
	h     *Healer

	mu    sync.Mutex
	boxes map[engine.SandboxID]*box
	works func(files map[string]string) error // why the app crashes; nil: it runs
	log   map[engine.SandboxID]string
	sick  map[engine.SandboxID]bool // runs and does not answer

	stop func()
}

// newRig opens a store; the healer runs from start on.
func newRig(t *testing.T) *rig {
	t.Helper()
	st, err := store.Open(t.Context(), t.TempDir(), store.Options{Sync: "normal"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, store: st, model: &script{}, boxes: map[engine.SandboxID]*box{},
		log: map[engine.SandboxID]string{}, sick: map[engine.SandboxID]bool{},
		works: func(files map[string]string) error {
			if strings.Contains(files["app.js"], "bug") {
				return errors.New("TypeError: bug is not a function\n    at app.js:1")
			}
			return nil
		},
	}
	r.h = &Healer{
		Store: st, Model: r.model, Confined: true,
		Box:     func(_ context.Context, id engine.SandboxID) (driver.Box, error) { return r.box(id), nil },
		Restart: r.restart, Probe: r.probe, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		LogTail: func(_ context.Context, id engine.ProcessID, _ engine.LogPosition, _ int) (string, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.log[engine.SandboxID("sb-"+strings.TrimPrefix(string(id), "ps-"))], nil
		},
	}
	t.Cleanup(func() {
		if r.stop != nil {
			r.stop()
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// start runs the healer until the returned function is called.
func (r *rig) start() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.h.Run(ctx) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				r.t.Errorf("Run ended with %v", err)
			}
		})
	}
	return r.stop
}

func (r *rig) box(id engine.SandboxID) *box {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.boxes[id]
}

// sandbox makes one that is up and ready.
func (r *rig) sandbox(name string, files map[string]string) engine.SandboxID {
	r.t.Helper()
	id := engine.SandboxID(engine.NewID(engine.SandboxPrefix))
	now := time.Now().UTC()
	sb := engine.Sandbox{
		ID: id, Name: name, Wanted: engine.Up, State: engine.Waiting, Health: engine.Ready,
		Spec: engine.Spec{
			App: engine.ProcessSpec{
				Command: "node app.js", Health: "/health", StartTimeout: engine.Duration(20 * time.Second), Install: "npm ci",
			},
			Heal: engine.HealSpec{Attempts: 3, Protected: []string{"engine"}},
		},
		Created: now, StateChanged: now, HealthChanged: now, Active: now,
	}
	r.mu.Lock()
	r.boxes[id] = newBox(files)
	r.mu.Unlock()
	r.update(func(tx *store.Tx) error {
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		return tx.PutProcess(engine.Process{
			ID: procOf(id), Sandbox: id, Name: engine.AppName, Kind: engine.Supervised, Port: 4000 + len(r.boxes),
			Wanted: engine.WantRunning, State: engine.ProcessRunning, Started: now, Starts: 1,
		})
	})
	return id
}

func procOf(id engine.SandboxID) engine.ProcessID {
	return engine.ProcessID("ps-" + strings.TrimPrefix(string(id), "sb-"))
}

// change edits the row of a sandbox.
func (r *rig) change(id engine.SandboxID, fn func(sb *engine.Sandbox)) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return err
		}
		fn(&sb)
		return tx.PutSandbox(&sb)
	})
}

func (r *rig) update(fn func(tx *store.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

func view[T any](r *rig, fn func(tx *store.Tx) (T, error)) T {
	r.t.Helper()
	var v T
	err := r.store.View(r.t.Context(), func(tx *store.Tx) (err error) {
		v, err = fn(tx)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// crash is the supervisor giving up on the app.
func (r *rig) crash(id engine.SandboxID) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error { return r.exit(tx, id, true) })
}

func (r *rig) exit(tx *store.Tx, id engine.SandboxID, raise bool) error {
	p, err := tx.Process(procOf(id))
	if err != nil {
		return err
	}
	e := engine.Exit{Code: 1, At: tx.Now, Uptime: engine.Duration(300 * time.Millisecond)}
	p.State, p.Exit, p.Exits = engine.ProcessFailed, &e, append(p.Exits, e)
	if err := tx.PutProcess(p); err != nil || !raise {
		return err
	}
	_, err = tx.RaiseSignal(engine.Signal{
		Sandbox: id, Process: p.ID, Kind: engine.ExitSignal, Exit: &e, Observed: "crash loop: exit 1 twice in 3s",
	})
	return err
}

// restart is the supervisor: it starts the app, which runs or exits at once.
func (r *rig) restart(ctx context.Context, id engine.SandboxID) error {
	b := r.box(id)
	b.mu.Lock()
	crash := r.works(b.files)
	b.mu.Unlock()
	r.mu.Lock()
	r.log[id] = "listening\n"
	if crash != nil {
		r.log[id] = crash.Error()
	}
	r.mu.Unlock()
	return r.store.Update(ctx, func(tx *store.Tx) error {
		p, err := tx.Process(procOf(id))
		if err != nil {
			return err
		}
		p.State, p.Started, p.Starts, p.Wanted = engine.ProcessRunning, tx.Now, p.Starts+1, engine.WantRunning
		if err := tx.PutProcess(p); err != nil || crash == nil {
			return err
		}
		return r.exit(tx, id, true)
	})
}

func (r *rig) probe(ctx context.Context, sb engine.Sandbox) engine.Probe {
	var p engine.Process
	err := r.store.View(ctx, func(tx *store.Tx) (err error) {
		p, err = tx.Process(procOf(sb.ID))
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || p.State != engine.ProcessRunning {
		return engine.Probe{At: time.Now(), Detail: "connection refused"}
	}
	if r.sick[sb.ID] {
		return engine.Probe{At: time.Now(), Detail: "500"}
	}
	return engine.Probe{At: time.Now(), OK: true, Detail: "200"}
}

// await waits until rows are as fn says, and fails after an hour of the
// bubble's time.
func (r *rig) await(what string, fn func(tx *store.Tx) (bool, error)) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Hour)
	defer cancel()
	look := func() bool { return view(r, fn) }
	if look() {
		return
	}
	for _, err := range r.store.Events(ctx, 0) {
		if err != nil {
			r.t.Fatalf("%s: %v; %+v", what, err, view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.OpenRuns() }))
		}
		if look() {
			return
		}
	}
}

func (r *rig) awaitHealth(id engine.SandboxID, want engine.Health) {
	r.t.Helper()
	r.await(string("health "+want), func(tx *store.Tx) (bool, error) {
		sb, err := tx.Sandbox(id)
		return sb.Health == want, err
	})
}

// ended waits for the sandbox's newest run to end and returns it.
func (r *rig) ended(id engine.SandboxID) engine.HealRun {
	r.t.Helper()
	var run engine.HealRun
	r.await("the end of the run", func(tx *store.Tx) (bool, error) {
		runs, err := tx.RunsOf(id, time.Time{})
		if err != nil || len(runs) == 0 {
			return false, err
		}
		run = runs[len(runs)-1]
		return !run.Open(), nil
	})
	return run
}

// heal crashes a sandbox and returns the run that follows.
func (r *rig) heal(id engine.SandboxID) engine.HealRun {
	r.t.Helper()
	count := func(tx *store.Tx) (int, error) {
		runs, err := tx.RunsOf(id, time.Time{})
		return len(runs), err
	}
	before := view(r, count)
	r.crash(id)
	r.await("a run", func(tx *store.Tx) (bool, error) {
		n, err := count(tx)
		return n > before, err
	})
	return r.ended(id)
}

// awaitRun waits until the sandbox's open run is as fn says.
func (r *rig) awaitRun(id engine.SandboxID, fn func(engine.HealRun) bool) {
	r.t.Helper()
	r.await("a run", func(tx *store.Tx) (bool, error) {
		run, open, err := tx.OpenRun(id)
		return open && fn(run), err
	})
}

func (r *rig) steps(run engine.HealRun) []engine.Step {
	r.t.Helper()
	return view(r, func(tx *store.Tx) ([]engine.Step, error) {
		var all []engine.Step
		attempts, err := tx.Attempts(run.ID)
		for _, a := range attempts {
			steps, err := tx.Steps(run.ID, a.Number)
			if err != nil {
				return nil, err
			}
			all = append(all, steps...)
		}
		return all, err
	})
}

// script is a model that answers as it was told to.
type script struct {
	mu    sync.Mutex
	turns []func(ctx context.Context, t agent.Transcript) (agent.Turn, error)
	asked []agent.Transcript
}

func (s *script) Name() string { return "scripted" }

func (s *script) Reply(ctx context.Context, t agent.Transcript, _ []agent.Tool, _ func(string)) (agent.Turn, error) {
	s.mu.Lock()
	s.asked = append(s.asked, t)
	if len(s.turns) == 0 {
		s.mu.Unlock()
		return say("I give up.")(ctx, t)
	}
	next := s.turns[0]
	s.turns = s.turns[1:]
	s.mu.Unlock()
	return next(ctx, t)
}

func (s *script) will(turns ...func(context.Context, agent.Transcript) (agent.Turn, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, turns...)
}

func (s *script) requests() []agent.Transcript {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]agent.Transcript(nil), s.asked...)
}

type turn = func(context.Context, agent.Transcript) (agent.Turn, error)

func say(text string) turn {
	return func(context.Context, agent.Transcript) (agent.Turn, error) {
		return agent.Turn{
			Message: agent.Message{Role: agent.Assistant, Text: text}, Stop: agent.EndTurn,
			Spent: engine.Spent{InputTokens: 100, OutputTokens: 10, Dollars: 0.01},
		}, nil
	}
}

func call(name string, input any) turn {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return func(context.Context, agent.Transcript) (agent.Turn, error) {
		return agent.Turn{
			Message: agent.Message{Role: agent.Assistant, Calls: []agent.Call{{ID: engine.NewID("c-"), Name: name, Input: raw}}},
			Stop:    agent.ToolUse, Spent: engine.Spent{InputTokens: 100, OutputTokens: 10, Dollars: 0.01},
		}, nil
	}
}

// do does something outside of the run before the next turn.
func do(fn func(), next turn) turn {
	return func(ctx context.Context, t agent.Transcript) (agent.Turn, error) {
		fn()
		return next(ctx, t)
	}
}

func fails(err error) turn {
	return func(context.Context, agent.Transcript) (agent.Turn, error) { return agent.Turn{}, err }
}

type in = map[string]any

// lastResult is what the tool call before this request gave back.
func lastResult(t agent.Transcript) agent.Result {
	m := t.Messages[len(t.Messages)-1]
	if len(m.Results) == 0 {
		return agent.Result{}
	}
	return m.Results[len(m.Results)-1]
}
