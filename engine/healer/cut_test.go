package healer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/store"
)

var dana = engine.Actor{Kind: engine.ActorOperator, Name: "dana"}

// hang is a command of the model's that never ends by itself.
func (r *rig) hang(id engine.SandboxID) {
	r.box(id).commands["sleep 1d"] = func(ctx context.Context, b *box) (string, int) {
		b.put("half.txt", "written by the command")
		<-ctx.Done()
		return "", 143
	}
	r.model.will(
		call("read", in{"path": "app.js"}),
		call("edit", in{"path": "app.js", "old": "bug()", "new": "bug() // touched"}),
		call("run", in{"command": "sleep 1d", "timeout": 600}),
	)
	r.crash(id)
	r.awaitRun(id, func(run engine.HealRun) bool { return strings.HasPrefix(run.Doing, "run ") })
	synctest.Wait()
}

func TestCancelCutsTheRunWithinASecondAndUndoesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.start()
		r.hang(id)
		asked := time.Now()
		r.update(func(tx *store.Tx) error { return Cancel(tx, id, dana) })
		run := r.ended(id)

		if took := time.Since(asked); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if run.Outcome != engine.Cancelled || run.Summary != "cancelled by operator dana" {
			t.Errorf("run ended %q: %s", run.Outcome, run.Summary)
		}
		if diff := cmp.Diff(broken, r.box(id).files); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		if r.box(id).live != 0 {
			t.Error("the command lives on")
		}
		for _, st := range r.steps(run) {
			if st.State == engine.StepRunning {
				t.Errorf("step %s still runs", st.Name)
			}
		}
		// What is on disk was started again. It fails as before, and whoever
		// cancelled its heal gets no other.
		r.awaitHealth(id, engine.Broken)
		if p := view(r, func(tx *store.Tx) (engine.Process, error) { return tx.Process(procOf(id)) }); p.Starts != 3 {
			t.Errorf("the app was started %d times, want 3: at first, by the playbook, after the rollback", p.Starts)
		}
		if runs := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) }); len(runs) != 1 {
			t.Errorf("%d runs, want the one that was cancelled", len(runs))
		}
	})
}

func TestStopCutsTheRunAndStartsNothing(t *testing.T) {
	for _, wanted := range []engine.Wanted{engine.Down, engine.Removed} {
		t.Run(string(wanted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				id := r.sandbox("api", broken)
				r.start()
				r.hang(id)
				before := view(r, func(tx *store.Tx) (engine.Process, error) { return tx.Process(procOf(id)) })
				r.change(id, func(sb *engine.Sandbox) { sb.Wanted = wanted })
				run := r.ended(id)
				if run.Outcome != engine.Cancelled {
					t.Errorf("run ended %q", run.Outcome)
				}
				if diff := cmp.Diff(broken, r.box(id).files); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
				after := view(r, func(tx *store.Tx) (engine.Process, error) { return tx.Process(procOf(id)) })
				if after.Starts != before.Starts {
					t.Error("the app was started in a sandbox that is to be down")
				}
				r.awaitHealth(id, engine.Unknown)
			})
		})
	}
}

func TestRemovedRowEndsTheRunQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.start()
		r.hang(id)
		r.update(func(tx *store.Tx) error { return tx.RemoveSandbox(id) })
		synctest.Wait()
		if r.box(id).live != 0 {
			t.Error("the command lives on")
		}
	})
}

func TestQueuedRunOfAStoppedSandboxEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Policy.PlaybookRuns = 1
		first, second := r.sandbox("a", broken), r.sandbox("b", broken)
		r.works = func(map[string]string) error { return nil }
		r.start()
		r.update(func(tx *store.Tx) error { return errors.Join(r.exit(tx, first, true), r.exit(tx, second, true)) })
		r.awaitRun(second, func(run engine.HealRun) bool { return run.State == engine.RunQueued })
		r.change(second, func(sb *engine.Sandbox) { sb.Wanted = engine.Down })
		if run := r.ended(second); run.Outcome != engine.Cancelled {
			t.Errorf("run ended %q", run.Outcome)
		}
		if run := r.ended(first); run.Outcome != engine.Healed {
			t.Errorf("the other run ended %q", run.Outcome)
		}
	})
}

func TestEngineStopInARunIsUndoneAndJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		stop := r.start()
		r.hang(id)
		r.box(id).put("README.md", "the user's, while the call ran") // counts as the run's: it changed during a call
		stop()
		cut := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.OpenRuns() })
		if len(cut) != 1 || !cut[0].Open() {
			t.Fatalf("open runs %+v, want the one that was cut", cut)
		}
		r.box(id).put("notes.txt", "edited while no engine ran")

		// The next engine: what was live is parked and on its way up again.
		r.update(func(tx *store.Tx) error {
			if _, err := tx.Fire(id, engine.Lost); err != nil {
				return err
			}
			_, err := tx.Fire(id, engine.Resume)
			return err
		})
		r.model.will(
			call("read", in{"path": "app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			call("restart", in{}), say("Cause: c.\nFix: f."),
		)
		r.start()
		run := r.ended(id)
		if run.ID != cut[0].ID || run.Outcome != engine.Interrupted {
			t.Fatalf("run %s ended %q, want %s interrupted", run.ID, run.Outcome, cut[0].ID)
		}
		want := map[string]string{"app.js": "bug()", "README.md": "hello", "notes.txt": "edited while no engine ran"}
		if diff := cmp.Diff(want, r.box(id).files); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		for _, a := range view(r, func(tx *store.Tx) ([]engine.Attempt, error) { return tx.Attempts(run.ID) }) {
			if a.Number == 1 && a.Outcome != engine.Interrupted {
				t.Errorf("attempt %d reads %q", a.Number, a.Outcome)
			}
		}

		r.boot(id) // the pool
		r.awaitHealth(id, engine.Ready)
		runs := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) })
		if len(runs) != 2 || runs[1].Outcome != engine.Healed {
			t.Errorf("runs %+v, want the cut one and one that healed", runs)
		}
	})
}

func TestFixThatWasCommittedIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.model.will(
			call("read", in{"path": "app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			call("restart", in{}), say("Fix: done."),
		)
		release := make(chan struct{})
		r.h.Redact = func(s string) string { // holds the run up after its commit
			if strings.HasPrefix(s, "committed app.js") {
				<-release
			}
			return s
		}
		stop := r.start()
		r.crash(id)
		r.awaitRun(id, func(run engine.HealRun) bool { return run.Commit != "" })
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		synctest.Wait()
		close(release)
		<-stopped
		r.start()
		r.awaitHealth(id, engine.Ready)
		run := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) })[0]
		if run.Outcome != engine.Interrupted || run.Commit != "c1" {
			t.Errorf("run ended %q with commit %q", run.Outcome, run.Commit)
		}
		if got, _ := r.box(id).file("app.js"); got != "fine()" {
			t.Errorf("app.js is %q, want the fix", got)
		}
	})
}

// boot is the pool and the supervisor bringing a warming sandbox up.
func (r *rig) boot(id engine.SandboxID) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		if _, err := tx.Fire(id, engine.Restored); err != nil {
			return err
		}
		_, err := tx.FireHealth(id, engine.Boot, "starting")
		return err
	})
	if err := r.restart(r.t.Context(), id); err != nil {
		r.t.Fatal(err)
	}
}

func TestInterruptedRunOfAnAppThatNobodyStartsIsRaisedAnewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		stop := r.start()
		r.hang(id)
		stop()
		r.model.will(
			call("read", in{"path": "app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			call("restart", in{}), say("Cause: c.\nFix: f."),
		)
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error { // the first start is lost
			r.h.Restart = r.restart
			return errors.New("the supervisor is not there yet")
		}
		r.start() // the sandbox stayed up, its app failed, and nothing starts it
		r.awaitHealth(id, engine.Ready)
		signals := view(r, func(tx *store.Tx) ([]engine.Signal, error) { return tx.Signals(id, time.Time{}) })
		again := 0
		for _, s := range signals {
			if strings.HasSuffix(s.Observed, "(again, after the engine restarted)") {
				again++
			}
		}
		runs := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) })
		if again != 1 || len(runs) != 2 {
			t.Errorf("raised anew %d times, %d runs; want 1 and 2", again, len(runs))
		}
	})
}

func TestOneRunPerSandboxAndTheSecondIsToldWhoHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) { sb.Health, sb.Reason = engine.Broken, "gave up" })
		open := func(by engine.Actor) (run engine.HealRun, note string, err error) {
			err = r.store.Update(t.Context(), func(tx *store.Tx) error {
				run, note, err = Open(tx, Policy{}, id, by)
				return err
			})
			return run, note, err
		}
		run, _, err := open(dana)
		if err != nil || run.Cause != "by hand: operator dana" || run.By != dana {
			t.Fatalf("run %+v, %v", run, err)
		}
		_, _, err = open(engine.Actor{Kind: engine.ActorScript})
		if !errors.Is(err, engine.Conflict) || !strings.Contains(err.Error(), "operator dana") {
			t.Errorf("second request: %v, want a conflict that names dana", err)
		}
		if sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) }); sb.Health != engine.Healing || sb.Run != run.ID {
			t.Errorf("sandbox %s, run %s", sb.Health, sb.Run)
		}
	})
}

func TestHealthySandboxIsNotHealedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.update(func(tx *store.Tx) error {
			run, note, err := Open(tx, Policy{}, id, dana)
			if run.ID != "" || note != "api is healthy: nothing to heal" {
				t.Errorf("run %q, note %q", run.ID, note)
			}
			return err
		})
	})
}

func TestFourthHealWithinAnHourIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		stop := r.start()
		for i := range 3 {
			if i == 2 { // the count is in the rows
				stop()
				r.start()
			}
			if run := r.heal(id); run.Outcome != engine.Healed || run.FixedBy != "restart" {
				t.Fatalf("heal %d ended %q by %q", i, run.Outcome, run.FixedBy)
			}
			time.Sleep(5 * time.Minute)
		}
		r.crash(id)
		r.awaitHealth(id, engine.Broken)
		sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
		if !strings.HasPrefix(sb.Reason, "flapping") {
			t.Errorf("reason %q", sb.Reason)
		}
		if runs := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) }); len(runs) != 3 {
			t.Errorf("%d runs, want 3", len(runs))
		}
		time.Sleep(2 * time.Hour) // it waits for an operator, however long
		r.crash(id)
		synctest.Wait()
		r.awaitHealth(id, engine.Broken)
	})
}

func TestPlaybooksDoNotWaitBehindModelRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Policy.MaxModelRuns, r.h.Policy.PlaybookRuns = 2, 1
		started := make(chan struct{}, 10)
		hold := make(chan struct{})
		for range 3 {
			r.model.will(func(ctx context.Context, tr agent.Transcript) (agent.Turn, error) {
				started <- struct{}{}
				<-hold
				return say("no")(ctx, tr)
			})
		}
		r.start()
		var ids []engine.SandboxID
		for _, name := range []string{"m1", "m2", "m3"} {
			id := r.sandbox(name, broken)
			r.change(id, func(sb *engine.Sandbox) { sb.Spec.Heal.Attempts = 1 })
			r.crash(id)
			ids = append(ids, id)
		}
		<-started
		<-started
		r.awaitRun(ids[2], func(run engine.HealRun) bool { return run.State == engine.RunWaiting })
		if n := len(r.model.requests()); n != 2 {
			t.Errorf("%d conversations at once, want 2", n)
		}
		quick := r.sandbox("quick", map[string]string{"app.js": "ok"})
		if run := r.heal(quick); run.Outcome != engine.Healed {
			t.Errorf("the quick one ended %q", run.Outcome)
		}
		close(hold)
		for _, id := range ids {
			r.ended(id)
		}
	})
}

func TestSignalsOfASandboxInMaintenanceAreIgnoredWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) {
			sb.Maintenance = engine.Maintenance{On: true, By: "dana", Reason: "migrating"}
		})
		r.start()
		r.crash(id)
		r.await("a verdict", func(tx *store.Tx) (bool, error) {
			list, err := tx.Signals(id, time.Time{})
			if err != nil || len(list) == 0 || list[0].Verdict == nil {
				return false, err
			}
			if v := list[0].Verdict; v.Action != engine.Ignore || v.Reason != "auto-heal is paused by dana: migrating" {
				t.Errorf("verdict %+v", v)
			}
			return true, nil
		})
	})
}
