// Package enginetest is what it means to be an engine.Engine: [Run] holds any
// of them to the contract, whether it is local, a client of another, or the
// [Fake] that is here for tests of what stands before an engine.
//
// The one rule: the suite knows nothing of an engine but the interface. What
// it needs besides is in the [Harness].
package enginetest

import (
	"context"
	"testing"
	"time"

	"sbx/engine"
)

// Harness is an engine under test, and what the suite must know to use it.
type Harness struct {
	// Engine may do everything: it holds an admin's token, if any.
	Engine engine.Engine
	// Origin is of a workspace whose app prints the line "started" at each
	// start, listens on $PORT, and answers GET /health with 200.
	Origin engine.Origin
	// Patience is how long something may take that takes long, like a sandbox
	// that comes up; 0: 30 s.
	Patience time.Duration
	// Chats: the engine has a model, which answers whatever is said in words.
	Chats bool
}

// Run holds an engine to the contract. open makes the engine, and cleans up
// with t.Cleanup; the cases share it, and run one after another.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	s := &suite{Harness: open(t)}
	if s.Patience == 0 {
		s.Patience = 30 * time.Second
	}
	s.home = s.ready(t, engine.CreateSandbox{Name: "enginetest home", Keep: true})
	for _, group := range [][]testCase{
		journalCases, actionCases, processCases, handleCases, pipeCases, terminalCases, logCases, fileCases, treeCases, historyCases, triageCases,
		chatCases, keyCases,
		sessionCases,
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { c.run(t, s) })
		}
	}
}

// testCase is one thing that is true of every engine.
type testCase struct {
	name string
	run  func(t *testing.T, s *suite)
}

// suite is the engine under test and a sandbox in it that is ready, for cases
// that leave it so.
type suite struct {
	Harness
	home engine.Sandbox
}

// soon is how long what doesn't take long may take, on a machine with other
// things to do.
const soon = 5 * time.Second

func (s *suite) ctx(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	t.Cleanup(cancel)
	return ctx
}

// create makes a sandbox of the harness's origin, and removes it at the end.
func (s *suite) create(t *testing.T, body engine.CreateSandbox) engine.Sandbox {
	t.Helper()
	body.Origin = s.Origin
	sb, err := engine.Create(s.ctx(t), s.Engine, body)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() { s.remove(t, sb.ID) })
	return sb
}

// remove takes a sandbox away, if the case hasn't.
func (s *suite) remove(t *testing.T, id engine.SandboxID) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	switch _, err := engine.Destroy(ctx, s.Engine, id); engine.AsCode(err) {
	case "", engine.NotFound, engine.Conflict, engine.Unavailable: // gone, going, or the engine is
	default:
		t.Errorf("remove %s: %v", id, err)
	}
}

// ready makes a sandbox and waits until it is.
func (s *suite) ready(t *testing.T, body engine.CreateSandbox) engine.Sandbox {
	t.Helper()
	sb := s.create(t, body)
	return s.until(t, "be ready", sb.ID, func(sb engine.Sandbox, _ *engine.Snapshot) bool {
		return sb.Health == engine.Ready && sb.State == engine.Waiting
	})
}

// until waits for a sandbox to be as cond wants it.
func (s *suite) until(t *testing.T, what string, id engine.SandboxID, cond func(engine.Sandbox, *engine.Snapshot) bool) engine.Sandbox {
	t.Helper()
	var last engine.Sandbox
	err := engine.Until(s.ctx(t), s.Engine, s.Patience, func(snap *engine.Snapshot) bool {
		last = snap.Sandboxes[id]
		return cond(last, snap)
	})
	if err != nil {
		t.Fatalf("waiting for %s to %s: %v; it is %s and %s (%s)", id, what, err, last.State, last.Health, last.Reason)
	}
	return last
}

func (s *suite) snapshot(t *testing.T) *engine.Snapshot {
	t.Helper()
	snap, err := s.Engine.Snapshot(s.ctx(t))
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return snap
}

func (s *suite) do(t *testing.T, body engine.ActionBody) engine.Receipt {
	t.Helper()
	r, err := s.Engine.Do(s.ctx(t), engine.NewAction(body))
	if err != nil {
		t.Fatalf("%s: %v", engine.EntryOf(body).Kind, err)
	}
	return r
}

// wantCode fails unless err has one of the codes.
func wantCode(t *testing.T, what string, err error, codes ...engine.Code) {
	t.Helper()
	got := engine.AsCode(err)
	for _, c := range codes {
		if got == c {
			return
		}
	}
	t.Errorf("%s: got %q (%v), want %q", what, got, err, codes)
}
