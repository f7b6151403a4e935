package healer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/store"
)

// raise is a detector that saw trouble with the app.
func (r *rig) raise(id engine.SandboxID, kind engine.SignalKind) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		_, err := tx.RaiseSignal(engine.Signal{Sandbox: id, Process: procOf(id), Kind: kind, Observed: "what was seen"})
		return err
	})
}

func (r *rig) signals(id engine.SandboxID) []engine.Signal {
	r.t.Helper()
	return view(r, func(tx *store.Tx) ([]engine.Signal, error) { return tx.Signals(id, time.Time{}) })
}

func (r *rig) runs(id engine.SandboxID) []engine.HealRun {
	r.t.Helper()
	return view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) })
}

func (r *rig) app(id engine.SandboxID) engine.Process {
	r.t.Helper()
	return view(r, func(tx *store.Tx) (engine.Process, error) { return tx.Process(procOf(id)) })
}

func (r *rig) row(id engine.SandboxID) engine.Sandbox {
	r.t.Helper()
	return view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
}

// passes is a health detector whose probe was answered.
func (r *rig) passes(id engine.SandboxID) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		_, err := tx.FireHealth(id, engine.Passed, "")
		return err
	})
}

// patient is a rig in a bubble whose apps have been up for a while.
func patient(t *testing.T, fn func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer func() { r.stop() }()
		fn(r)
	})
}

func TestAStallIsRestartedAndNothingElse(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		time.Sleep(time.Second)
		sb, app := r.row(id), r.app(id)
		if app.Starts != 2 || sb.Health != engine.Starting || sb.Reason != "restarted: stalled: what was seen" {
			t.Fatalf("started %d times; it is %s: %q", app.Starts, sb.Health, sb.Reason)
		}
		r.passes(id)
		time.Sleep(10 * time.Minute)
		list := r.signals(id)
		if len(list) != 1 || list[0].Verdict == nil || list[0].Verdict.Action != engine.Restart ||
			!strings.HasSuffix(list[0].Verdict.Reason, "what was seen; restarted: ready 1s after it was started") {
			t.Errorf("signals: %+v, %+v", list, list[0].Verdict)
		}
		if n, starts := len(r.runs(id)), r.app(id).Starts; n != 0 || starts != 2 || r.box(id).strays != 0 {
			t.Errorf("%d runs, %d starts, strays killed %d times", n, starts, r.box(id).strays)
		}
	})
}

func TestPressureKillsStraysAndThenRestarts(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		before := -1
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error {
			before = r.box(id).strays
			return r.restart(ctx, id)
		}
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.PressureSignal)
		time.Sleep(time.Second)
		r.passes(id)
		time.Sleep(time.Second)
		if before != 1 {
			t.Errorf("strays were killed %d times before the restart", before)
		}
		v := r.signals(id)[0].Verdict
		if v == nil || v.Action != engine.Restart || !strings.Contains(v.Reason, "killed node (pid 77); restarted: ready") {
			t.Errorf("verdict %+v", v)
		}
	})
}

func TestAStallWithinTenMinutesOfARestartIsRepairedAlsoByAnotherEngine(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		stuck := "Bundling…"
		r.h.Stuck = func(engine.Process) string { return stuck }
		r.model.will(call("edit", in{"path": "app.js", "old": "fine", "new": "better"}), call("restart", in{}), do(func() { stuck = "" }, say("It hung.")))
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		time.Sleep(time.Second)
		r.passes(id)
		time.Sleep(5 * time.Minute)
		r.stop()
		r.start()
		time.Sleep(3 * time.Minute)
		r.raise(id, engine.StalledSignal)
		run := r.ended(id)
		if run.Outcome != engine.Healed || run.FixedBy != "model" {
			t.Errorf("%s by %q: %s", run.Outcome, run.FixedBy, run.Summary)
		}
		if n := len(r.runs(id)); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// TestTheHourOfFlappingDoesNotShortenTheTenMinutes: the windows are two settings.
func TestTheHourOfFlappingDoesNotShortenTheTenMinutes(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		r.h.Policy.FlapWindow = time.Minute
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		time.Sleep(time.Second)
		r.passes(id)
		time.Sleep(8 * time.Minute)
		r.raise(id, engine.StalledSignal)
		r.ended(id)
		if n := r.app(id).Starts; n > 2 {
			t.Errorf("started %d times", n)
		}
	})
}

func TestNoRunBeginsInTheMiddleOfARestart(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error {
			time.Sleep(10 * time.Second)
			return r.restart(ctx, id)
		}
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		time.Sleep(time.Second)
		r.crash(id) // something else of it
		time.Sleep(5 * time.Second)
		run := view(r, func(tx *store.Tx) (engine.HealRun, error) {
			run, _, err := tx.OpenRun(id)
			return run, err
		})
		if run.State != engine.RunQueued {
			t.Errorf("the run is %q while the app is being restarted", run.State)
		}
		if run = r.ended(id); run.Outcome != engine.Healed {
			t.Errorf("%s: %s", run.Outcome, run.Summary)
		}
	})
}

func TestOnlyOneHoldsASandbox(t *testing.T) {
	l := newLanes()
	release, ok := l.hold("sb-a")
	if _, again := l.hold("sb-a"); !ok || again {
		t.Errorf("held: %v, and again: %v", ok, again)
	}
	release()
	if _, ok := l.hold("sb-a"); !ok {
		t.Error("not free after it was released")
	}
}

func TestARestartIsMadeByTheNextEngineIfThisOneEnds(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		began := 0
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error {
			if began++; began == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return r.restart(ctx, id)
		}
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		time.Sleep(time.Second)
		r.stop()
		if list := r.signals(id); len(list) != 1 || len(r.runs(id)) != 0 {
			t.Fatalf("as the engine left: %+v", list)
		}
		r.start()
		time.Sleep(time.Second)
		if n := r.app(id).Starts; n != 2 || began != 2 {
			t.Fatalf("started %d times, restarted %d times", n, began)
		}
		r.stop()
		r.start() // in mid-wait
		run := r.ended(id)
		if !strings.Contains(run.Cause, "not healthy within 1m0s") || began != 2 {
			t.Errorf("restarted %d times; %s", began, run.Cause)
		}
	})
}

func TestAnOperatorWhoStopsItEndsTheRestart(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error {
			r.change(id, func(sb *engine.Sandbox) { sb.Wanted = engine.Down })
			return engine.Errorf(engine.Conflict, "it is being stopped")
		}
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.PressureSignal)
		time.Sleep(10 * time.Minute)
		if list, runs := r.signals(id), r.runs(id); len(list) != 1 || len(runs) != 0 {
			t.Errorf("signals %+v, runs %+v", list, runs)
		}
	})
}

func TestManyStallsAtOnceAreAllRestartedAFewAtATime(t *testing.T) {
	patient(t, func(r *rig) {
		var ids []engine.SandboxID
		at, most := 0, 0
		r.h.Policy.PlaybookRuns = 4
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error {
			r.mu.Lock()
			at++
			most = max(most, at)
			r.mu.Unlock()
			time.Sleep(time.Second)
			r.mu.Lock()
			at--
			r.mu.Unlock()
			return r.restart(ctx, id)
		}
		for i := range 40 {
			ids = append(ids, r.sandbox("web-"+string(rune('a'+i/26))+string(rune('a'+i%26)), map[string]string{"app.js": "fine"}))
		}
		r.start()
		time.Sleep(2 * time.Minute)
		for _, id := range ids {
			r.raise(id, engine.StalledSignal)
		}
		time.Sleep(30 * time.Second)
		for _, id := range ids {
			if n := r.app(id).Starts; n != 2 {
				t.Errorf("%s was started %d times", id, n)
			}
		}
		for _, id := range ids {
			r.passes(id)
		}
		time.Sleep(time.Minute)
		last := r.sandbox("last", map[string]string{"app.js": "fine"})
		time.Sleep(time.Minute)
		r.raise(last, engine.StalledSignal) // the places are free again
		time.Sleep(5 * time.Second)
		if n := r.app(last).Starts; n != 2 {
			t.Errorf("one that stalled after them was started %d times", n)
		}
		if most != 4 {
			t.Errorf("%d at a time, want 4", most)
		}
	})
}
