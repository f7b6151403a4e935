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

var broken = map[string]string{"app.js": "bug()", "README.md": "hello", "notes.txt": "v1"}

func TestPlaybookHealsWithoutAskingTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"package.json": `{"dependencies":{"express":"4"}}`, "app.js": "ok"})
		r.works = func(files map[string]string) error {
			if files["node_modules/express/index.js"] == "" {
				return errors.New("Error: Cannot find module 'express'")
			}
			return nil
		}
		r.log[id] = "Error: Cannot find module 'express'"
		r.box(id).commands["npm ci"] = func(_ context.Context, b *box) (string, int) {
			b.put("node_modules/express/index.js", "express")
			return "added 1 package", 0
		}
		r.start()
		run := r.heal(id)

		if run.Outcome != engine.Healed || run.FixedBy != "reinstall" {
			t.Errorf("run ended %q by %q (%s), want healed by reinstall", run.Outcome, run.FixedBy, run.Summary)
		}
		if n := len(r.model.requests()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		if got := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) }); got.Health != engine.Ready || got.Reason != "" {
			t.Errorf("sandbox is %s (%s), want ready", got.Health, got.Reason)
		}
		var kinds []string
		for _, st := range r.steps(run) {
			kinds = append(kinds, string(st.Kind)+" "+st.Name+" "+string(st.State))
		}
		want := []string{"note checkpoint ok", "note evidence ok", "playbook reinstall ok", "verify verify ok"}
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
	})
}

func TestModelHealsOnSecondAttemptKnowingTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.model.will(
			call("read", in{"path": "README.md"}),
			call("edit", in{"path": "README.md", "old": "hello", "new": "bye"}),
			say("Cause: the greeting.\nFix: changed the greeting."),
			call("read", in{"path": "app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			call("restart", in{}),
			say("Cause: bug is not a function.\nFix: called fine instead."),
		)
		r.start()
		run := r.heal(id)

		if run.Outcome != engine.Healed || run.FixedBy != "model" || run.Attempt != 2 {
			t.Fatalf("run %+v, want healed by the model in attempt 2", run)
		}
		second := r.model.requests()[3].Messages[0].Text
		for _, want := range []string{"Attempt 2 of 3", "changed the greeting", "app is down: exit 1"} {
			if !strings.Contains(second, want) {
				t.Errorf("the second brief lacks %q:\n%s", want, second)
			}
		}
		if diff := cmp.Diff([]string{"README.md", "app.js"}, run.Changed); diff != "" {
			t.Errorf("changed (-want +got):\n%s", diff)
		}
		if got := r.box(id).commits; len(got) != 1 || !cmp.Equal(got[0].paths, []string{"README.md", "app.js"}) ||
			!strings.Contains(got[0].message, string(run.ID)) {
			t.Errorf("commits %+v, want one of both files that names the run", got)
		}
		if run.Spent.InputTokens != 700 || run.Spent.Steps != 5 {
			t.Errorf("spent %+v, want 700 input tokens and 5 steps", run.Spent)
		}
		attempts := view(r, func(tx *store.Tx) ([]engine.Attempt, error) { return tx.Attempts(run.ID) })
		if len(attempts) != 3 || attempts[1].Outcome != engine.NotHealed || attempts[2].Outcome != engine.Healed ||
			attempts[2].Why != "bug is not a function." || attempts[2].Spent.InputTokens != 400 {
			t.Errorf("attempts %+v", attempts)
		}
	})
}

func TestThreeFailuresRollBackAndLeaveItBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		for range 3 {
			r.model.will(
				call("read", in{"path": "README.md"}),
				call("edit", in{"path": "README.md", "old": "h", "new": "hh"}),
				call("write", in{"path": "new/file.js", "content": "x"}),
				say("Fixed!"),
			)
		}
		r.start()
		run := r.heal(id)

		if run.Outcome != engine.NotHealed || run.Attempt != 3 {
			t.Errorf("run ended %q in attempt %d", run.Outcome, run.Attempt)
		}
		if diff := cmp.Diff(broken, r.box(id).files); diff != "" {
			t.Errorf("files after the rollback (-want +got):\n%s", diff)
		}
		sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
		if sb.Health != engine.Broken || !strings.Contains(sb.Reason, "not healed in 3 attempts") {
			t.Errorf("sandbox is %s: %s", sb.Health, sb.Reason)
		}
		for _, want := range []string{"crash loop: exit 1 twice in 3s", "restart", "attempt 3"} {
			if !strings.Contains(run.Summary, want) {
				t.Errorf("summary lacks %q: %s", want, run.Summary)
			}
		}
		if !strings.Contains(run.Next, "sbx heal api") {
			t.Errorf("next: %s", run.Next)
		}
		if got := len(r.box(id).commits); got != 0 {
			t.Errorf("%d commits of a run that failed", got)
		}
		left := view(r, func(tx *store.Tx) ([]engine.Checkpoint, error) { return tx.Checkpoints(id) })
		if len(left) != 1 || left[0].ID != run.Checkpoint {
			t.Errorf("checkpoints %+v, want the run's alone", left)
		}
	})
}

func TestUsersEditDuringTheRunSurvivesAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) { sb.Spec.Heal.Attempts = 1 })
		b := r.box(id)
		r.model.will(
			call("read", in{"path": "notes.txt"}),
			call("edit", in{"path": "notes.txt", "old": "v1", "new": "v2"}),
			call("write", in{"path": "mine.txt", "content": "the run's"}),
			do(func() { b.put("notes.txt", "the user's"); b.put("app.js", "bug() // user") }, say("I tried.")),
		)
		r.start()
		run := r.heal(id)

		want := map[string]string{"app.js": "bug() // user", "README.md": "hello", "notes.txt": "the user's"}
		if diff := cmp.Diff(want, b.files); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"notes.txt"}, run.KeptByUser); diff != "" {
			t.Errorf("kept by user (-want +got):\n%s", diff)
		}
	})
}

func TestUsersVersionComesBackWhenTheRunChangedItAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) { sb.Spec.Heal.Attempts = 1 })
		b := r.box(id)
		r.model.will(
			do(func() { b.put("notes.txt", "the user's") }, call("read", in{"path": "notes.txt"})),
			call("edit", in{"path": "notes.txt", "old": "the user's", "new": "the run's"}),
			say("I tried."),
		)
		r.start()
		r.heal(id)
		if got, _ := b.file("notes.txt"); got != "the user's" {
			t.Errorf("notes.txt is %q, want what the user had made of it", got)
		}
	})
}

func TestWriteOverSomebodysChangeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) { sb.Spec.Heal.Attempts = 1 })
		b := r.box(id)
		var told []agent.Result
		see := func(next turn) turn {
			return func(ctx context.Context, t agent.Transcript) (agent.Turn, error) {
				told = append(told, lastResult(t))
				return next(ctx, t)
			}
		}
		r.model.will(
			call("write", in{"path": "app.js", "content": "blind"}),
			see(call("read", in{"path": "app.js"})),
			do(func() { b.put("app.js", "bug() // typing") }, call("edit", in{"path": "app.js", "old": "bug()", "new": "x"})),
			see(call("write", in{"path": "engine/core.js", "content": "x"})),
			see(call("write", in{"path": ".git/hooks/post-commit", "content": "x"})),
			see(call("write", in{"path": "../out", "content": "x"})),
			see(say("no")),
		)
		r.start()
		r.heal(id)
		if got, _ := b.file("app.js"); got != "bug() // typing" {
			t.Errorf("app.js is %q, want the user's", got)
		}
		want := []string{"read it first", "changed by somebody else", "protected", "protected", "outside of the workspace"}
		for i, w := range want {
			if !told[i].Error || !strings.Contains(told[i].Text, w) {
				t.Errorf("answer %d is %+v, want an error that says %q", i, told[i], w)
			}
		}
	})
}

func TestDirtyPathsAreNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		b := r.box(id)
		b.put("README.md", "unfinished")      // dirty, and not the run's business
		b.put("notes.txt", "half written")    // dirty, and the run must change it
		b.ignored = append(b.ignored, ".env") // never in a commit
		r.model.will(
			call("read", in{"path": "app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			call("read", in{"path": "notes.txt"}),
			call("edit", in{"path": "notes.txt", "old": "half", "new": "all"}),
			call("write", in{"path": ".env", "content": "KEY=1"}),
			call("restart", in{}),
			say("Cause: a.\nFix: b."),
		)
		r.start()
		run := r.heal(id)
		if run.Outcome != engine.Healed || len(b.commits) != 1 || !cmp.Equal(b.commits[0].paths, []string{"app.js"}) {
			t.Fatalf("run %s, commits %+v, want one of app.js alone", run.Outcome, b.commits)
		}
		want := "notes.txt had uncommitted changes before the run; .env is ignored by git"
		if run.NotCommitted != want {
			t.Errorf("not committed: %q, want %q", run.NotCommitted, want)
		}
		if diff := cmp.Diff([]string{"README.md", "notes.txt"}, run.Baseline); diff != "" {
			t.Errorf("baseline (-want +got):\n%s", diff)
		}
		if got, _ := b.file("README.md"); got != "unfinished" {
			t.Errorf("README.md is %q, want it untouched", got)
		}
	})
}

func TestCheckThatFailsRefusesTheFix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) { sb.Spec.App.Check, sb.Spec.Heal.Attempts = "npm test", 1 })
		r.box(id).commands["npm test"] = func(context.Context, *box) (string, int) { return "1 failing", 1 }
		r.model.will(
			call("read", in{"path": "app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			call("restart", in{}),
			say("Fix: done."),
		)
		r.start()
		run := r.heal(id)
		if run.Outcome != engine.NotHealed || !strings.Contains(run.Summary, "the check failed: exit 1 1 failing") {
			t.Errorf("run ended %q: %s", run.Outcome, run.Summary)
		}
		if got, _ := r.box(id).file("app.js"); got != "bug()" {
			t.Errorf("app.js is %q, want it rolled back", got)
		}
	})
}

func TestSandboxThatWorksAgainIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		r.update(func(tx *store.Tx) error {
			_, err := tx.RaiseSignal(engine.Signal{Sandbox: id, Kind: engine.HealthSignal, Process: procOf(id), Observed: "health failed twice"})
			return err
		})
		r.start()
		r.awaitHealth(id, engine.Healing)
		run := r.ended(id)
		if run.Outcome != engine.Healed || run.FixedBy != byItself {
			t.Errorf("run ended %q by %q", run.Outcome, run.FixedBy)
		}
		if p := view(r, func(tx *store.Tx) (engine.Process, error) { return tx.Process(procOf(id)) }); p.Starts != 1 {
			t.Errorf("the app was started %d times", p.Starts)
		}
	})
}

func TestGoodCheckpointIsMadeAfterAMinuteOfReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		r.start()
		good := func() (n int) {
			for _, cp := range view(r, func(tx *store.Tx) ([]engine.Checkpoint, error) { return tx.Checkpoints(id) }) {
				if cp.Good {
					n++
				}
			}
			return n
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := good(); n != 0 {
			t.Errorf("%d good checkpoints before a minute", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := good(); n != 1 {
			t.Errorf("%d good checkpoints after a minute, want 1", n)
		}
	})
}
