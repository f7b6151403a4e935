package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sbx/engine"
)

// TestSnapshotWithTheEventsAfterItIsTheLaterSnapshot is the journal's law, over
// random histories through the real store, with events that went over a wire.
func TestSnapshotWithTheEventsAfterItIsTheLaterSnapshot(t *testing.T) {
	s, err := Open(t.Context(), plant(t, t.TempDir()), Options{Sync: "normal"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rapid.Check(t, func(r *rapid.T) {
		h := &historian{r: r, s: s}
		h.forget(t)
		snaps := []*engine.Snapshot{h.snapshot(t)}
		for range rapid.IntRange(1, 4).Draw(r, "parts") {
			for range rapid.IntRange(1, 8).Draw(r, "transactions") {
				h.transaction(t)
			}
			snaps = append(snaps, h.snapshot(t))
		}
		want := snaps[len(snaps)-1]
		for _, got := range snaps {
			from := got.Position
			for ev := range h.events(t, from.Seq, want.Position.Seq) {
				got.Apply(ev)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("events %v to %v give another snapshot (-rows +events):\n%s", from, want.Position, diff)
			}
		}
	})
}

// A historian makes a random history.
type historian struct {
	r *rapid.T
	s *Store
	n int
}

// forget removes what an earlier history left.
func (h *historian) forget(t *testing.T) {
	err := h.s.Update(t.Context(), func(tx *Tx) error {
		list, err := tx.Sandboxes()
		for _, sb := range list {
			err = errors.Join(err, tx.RemoveSandbox(sb.ID))
		}
		return err
	})
	if err != nil {
		h.r.Fatal(err)
	}
}

func (h *historian) snapshot(t *testing.T) *engine.Snapshot {
	snap, err := h.s.Snapshot(t.Context())
	if err != nil {
		h.r.Fatal(err)
	}
	return snap
}

// events yields those up to last, each through JSON.
func (h *historian) events(t *testing.T, after, last engine.Seq) func(func(engine.Event) bool) {
	return func(yield func(engine.Event) bool) {
		if after == last {
			return
		}
		for ev, err := range h.s.Events(t.Context(), after) {
			var back engine.Event
			b, err2 := json.Marshal(ev)
			if err := errors.Join(err, err2, json.Unmarshal(b, &back)); err != nil {
				h.r.Fatal(err)
			}
			if !yield(back) || ev.Seq == last {
				return
			}
		}
	}
}

// transaction makes a few changes and commits them, or fails and undoes them.
// A change that the rows refuse is part of the history.
func (h *historian) transaction(t *testing.T) {
	errUndo := errors.New("undo")
	err := h.s.Update(t.Context(), func(tx *Tx) error {
		tx.By = engine.Actor{Kind: engine.ActorScript, Name: "historian"}
		for range rapid.IntRange(1, 4).Draw(h.r, "changes") {
			if err := h.change(tx); err != nil && !expected(err) {
				return err
			}
		}
		if rapid.IntRange(0, 5).Draw(h.r, "undo") == 0 {
			return errUndo
		}
		return nil
	})
	if err != nil && !errors.Is(err, errUndo) {
		h.r.Fatal(err)
	}
}

func expected(err error) bool {
	return errors.Is(err, engine.Conflict) || errors.Is(err, engine.NotFound)
}

func pick[T any](h *historian, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(h.r, label)
}

func (h *historian) sandbox() engine.SandboxID {
	return engine.SandboxID(fmt.Sprint("sb-", rapid.IntRange(1, 3).Draw(h.r, "sandbox")))
}

func (h *historian) run() engine.RunID {
	return engine.RunID(fmt.Sprint("ru-", rapid.IntRange(1, 5).Draw(h.r, "run")))
}

func (h *historian) change(tx *Tx) error {
	h.n++
	changes := []func(*Tx) error{
		h.putSandbox, h.putSandbox, h.fire, h.fireHealth, h.remove, h.process, h.raise, h.judge,
		h.runs, h.runs, h.attempt, h.step, h.step, h.session, h.session,
	}
	return changes[rapid.IntRange(0, len(changes)-1).Draw(h.r, "kind of change")](tx)
}

func (h *historian) putSandbox(tx *Tx) error {
	id := h.sandbox()
	sb, err := tx.Sandbox(id)
	if errors.Is(err, engine.NotFound) {
		sb, err = sampleSandbox("name of "+string(id)), nil
		sb.ID = id
	}
	if err != nil {
		return err
	}
	sb.Labels = pick(h, "labels", nil, map[string]string{}, map[string]string{"n": fmt.Sprint(h.n)})
	sb.Owner = pick(h, "owner", "ada", "bob", "\xff\x00<>&\u2028")
	sb.Active = time.Now()
	return tx.PutSandbox(&sb)
}

func (h *historian) fire(tx *Tx) error {
	_, err := tx.Fire(h.sandbox(), pick(h, "trigger", engine.Begin, engine.Rest, engine.Evict, engine.Resume, engine.Restored, engine.Stop))
	return err
}

func (h *historian) fireHealth(tx *Tx) error {
	on := pick(h, "trigger", engine.Fault, engine.Repaired, engine.GaveUp, engine.Recovered, engine.Cut, engine.Passed)
	_, err := tx.FireHealth(h.sandbox(), on, pick(h, "reason", "", "exit 1", "bad \xff\xfe bytes"))
	return err
}

func (h *historian) remove(tx *Tx) error {
	if rapid.IntRange(0, 3).Draw(h.r, "really") > 0 {
		return nil
	}
	return tx.RemoveSandbox(h.sandbox())
}

func (h *historian) process(tx *Tx) error {
	id := h.sandbox()
	p := engine.Process{
		ID: engine.ProcessID(fmt.Sprintf("ps-%s-%d", id, rapid.IntRange(1, 3).Draw(h.r, "process"))), Sandbox: id,
		Wanted: engine.WantRunning, Starts: h.n, Exits: []engine.Exit{{Code: 1, At: time.Now()}},
		Kind:  pick(h, "process kind", engine.Supervised, engine.Spawned),
		State: pick(h, "process state", engine.ProcessStarting, engine.ProcessRunning, engine.ProcessExited, engine.ProcessFailed),
	}
	return tx.PutProcess(p)
}

func (h *historian) raise(tx *Tx) error {
	_, err := tx.RaiseSignal(engine.Signal{Sandbox: h.sandbox(), Kind: engine.ExitSignal, Observed: fmt.Sprint(h.n)})
	return err
}

func (h *historian) judge(tx *Tx) error {
	list, err := tx.Signals(h.sandbox(), time.Time{})
	if len(list) == 0 || err != nil {
		return err
	}
	sig := list[rapid.IntRange(0, len(list)-1).Draw(h.r, "signal")]
	sig.Verdict = &engine.Verdict{Action: engine.Ignore, Reason: fmt.Sprint(h.n), At: tx.Now}
	return tx.JudgeSignal(sig)
}

func (h *historian) runs(tx *Tx) error {
	run, err := tx.Run(h.run())
	if errors.Is(err, engine.NotFound) {
		run, err = engine.HealRun{ID: h.run(), Sandbox: h.sandbox(), Started: tx.Now}, nil
	}
	if err != nil {
		return err
	}
	run.State = pick(h, "run state", engine.RunQueued, engine.RunModel, engine.RunEnded)
	run.Summary = fmt.Sprint(h.n)
	return tx.PutRun(run)
}

func (h *historian) attempt(tx *Tx) error {
	run, err := tx.Run(h.run())
	if err != nil {
		return err
	}
	return tx.PutAttempt(engine.Attempt{
		Run: run.ID, Sandbox: run.Sandbox, Number: rapid.IntRange(0, 2).Draw(h.r, "attempt"), Why: fmt.Sprint(h.n), Started: tx.Now,
	})
}

func (h *historian) step(tx *Tx) error {
	run, err := tx.Run(h.run())
	if err != nil {
		return err
	}
	return tx.PutStep(engine.Step{
		Run: run.ID, Sandbox: run.Sandbox, Attempt: rapid.IntRange(0, 2).Draw(h.r, "attempt"),
		Number: rapid.IntRange(1, 3).Draw(h.r, "step"), Text: fmt.Sprint(h.n),
		State: pick(h, "step state", engine.StepRunning, engine.StepOK),
	})
}

func (h *historian) session(tx *Tx) error {
	s, err := tx.Session(engine.SessionID(fmt.Sprint("se-", rapid.IntRange(1, 3).Draw(h.r, "session"))))
	if err != nil && !errors.Is(err, engine.NotFound) {
		return err
	}
	if errors.Is(err, engine.NotFound) {
		s = engine.Session{ID: engine.SessionID(fmt.Sprint("se-", rapid.IntRange(1, 3).Draw(h.r, "session"))), Created: tx.Now}
	}
	s.Name, s.Sandbox = fmt.Sprint(h.n), h.sandbox()
	s.Live = rapid.Bool().Draw(h.r, "live")
	s.State = pick(h, "session state", engine.SessionActive, engine.SessionPaused, engine.SessionEnded)
	return tx.PutSession(s)
}
