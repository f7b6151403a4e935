package healer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/store"
)

var person = engine.Actor{Kind: engine.ActorOperator, Name: "dana"}

// gaveUp is a sandbox whose heal failed, with its files.
func (r *rig) gaveUp(name string, files map[string]string) engine.SandboxID {
	r.t.Helper()
	id := r.sandbox(name, files)
	r.heal(id)
	r.awaitHealth(id, engine.Broken)
	return id
}

// plan makes a plan and returns the run that did.
func (r *rig) plan(id engine.SandboxID) engine.HealRun {
	r.t.Helper()
	synctest.Wait() // an engine that has begun
	var run engine.HealRun
	r.update(func(tx *store.Tx) (err error) {
		note := ""
		if run, note, err = OpenPlan(tx, id, person); err == nil && run.ID == "" {
			err = errors.New(note)
		}
		return err
	})
	r.await("the end of the plan", func(tx *store.Tx) (bool, error) { // another run may follow at once
		now, err := tx.Run(run.ID)
		run = now
		return !run.Open(), err
	})
	return run
}

// apply does as an engine does with an ApplyPlan.
func (r *rig) apply(id engine.SandboxID) (engine.HealRun, error) {
	r.t.Helper()
	var p Plan
	err := r.store.View(r.t.Context(), func(tx *store.Tx) (err error) {
		p, _, err = FindPlan(tx, id, "")
		return err
	})
	if err == nil {
		err = p.MovedOn(r.t.Context(), r.box(id))
	}
	if err == nil {
		err = r.store.Update(r.t.Context(), func(tx *store.Tx) error {
			_, err := p.Open(tx, person)
			return err
		})
	}
	if err != nil {
		return engine.HealRun{}, err
	}
	return r.ended(id), nil
}

// still is what a plan must leave as it is.
type still struct {
	Files  map[string]string
	Health engine.Health
	Reason string
	Starts int
	Last   engine.RunID
	Ran    int
}

func (r *rig) still(id engine.SandboxID) still {
	r.t.Helper()
	s := view(r, func(tx *store.Tx) (s still, err error) {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return s, err
		}
		p, err := tx.Process(procOf(id))
		return still{Health: sb.Health, Reason: sb.Reason, Starts: p.Starts, Last: sb.Run}, err
	})
	b := r.box(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Files = maps.Clone(b.files)
	for _, cmd := range b.ran {
		if !strings.Contains(cmd.Shell, "--version") {
			s.Ran++
		}
	}
	return s
}

func TestAModelsPlanIsMadeAsideAndAppliedAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		id := r.gaveUp("api", broken)
		before, asked := r.still(id), len(r.model.requests())
		r.model.will(
			call("read", in{"path": "app.js"}),
			call("run", in{"command": "sed -i s/bug/fine/ app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "first()"}),
			call("edit", in{"path": "app.js", "old": "first()", "new": "fine()"}),
			call("write", in{"path": "lib/fine.js", "content": "fine\n"}),
			call("write", in{"path": "engine/x", "content": "no"}),
			call("list", in{"path": "lib"}),
			call("search", in{"pattern": "fine"}),
			say("Cause: bug is not a function.\nFix: call fine instead."),
		)
		plan := r.plan(id)

		if plan.Outcome != engine.Planned || !plan.Plan || !strings.Contains(plan.Summary, "call fine instead") {
			t.Fatalf("run %+v, want a plan that explains itself", plan)
		}
		if diff := cmp.Diff([]string{"change app.js", "change lib/fine.js", "restart the app"}, plan.Would); diff != "" {
			t.Errorf("would (-want +got):\n%s", diff)
		}
		for _, want := range []string{"-bug()", "+fine()", "+++ b/lib/fine.js"} {
			if !strings.Contains(plan.Diff, want) || strings.Contains(plan.Diff, "engine/x") {
				t.Errorf("the diff lacks %q or has a protected path:\n%s", want, plan.Diff)
			}
		}
		if diff := cmp.Diff(before, r.still(id)); diff != "" {
			t.Errorf("the plan changed (-before +after):\n%s", diff)
		}
		requests := r.model.requests()[asked:]
		for i, want := range map[int]string{2: `no tool called "run"`, 6: "protected", 7: "fine.js (5 bytes)", 8: "lib/fine.js:1: fine"} {
			if got := lastResult(requests[i]); !strings.Contains(got.Text, want) {
				t.Errorf("request %d has the result %q, want %q", i, got.Text, want)
			}
		}

		run, err := r.apply(id)
		if err != nil || run.Outcome != engine.Healed || run.FixedBy != "plan" || run.Applies != plan.ID {
			t.Fatalf("applied: %+v, %v; want healed by the plan", run, err)
		}
		if now := r.still(id); now.Files["app.js"] != "fine()" || now.Files["lib/fine.js"] != "fine\n" || now.Health != engine.Ready {
			t.Errorf("after it: %+v", now)
		}
		if diff := cmp.Diff([]string{"app.js", "lib/fine.js"}, run.Changed); diff != "" || run.Commit == "" {
			t.Errorf("changed (-want +got):\n%s\ncommit %q", diff, run.Commit)
		}
		if n := len(r.model.requests()) - asked; n != 9 {
			t.Errorf("the model was asked %d times, want 9: applying asks nobody", n)
		}
	})
}

func TestAPlaybooksPlanSaysWhatItWouldDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"package.json": `{"dependencies":{"express":"4"}}`, "app.js": "ok"})
		r.works = func(files map[string]string) error {
			if files["node_modules/express/index.js"] == "" {
				return errors.New("Error: Cannot find module 'express'")
			}
			return nil
		}
		r.change(id, func(sb *engine.Sandbox) { sb.Health, sb.Maintenance = engine.Starting, engine.Maintenance{On: true} })
		r.start()
		r.log[id] = "Error: Cannot find module 'express'"
		r.crash(id)
		r.box(id).commands["npm ci"] = func(_ context.Context, b *box) (string, int) {
			b.put("node_modules/express/index.js", "express")
			return "added 1 package", 0
		}
		before := r.still(id)
		plan := r.plan(id)
		if plan.Outcome != engine.Planned || !strings.Contains(plan.Summary, "the package express is missing") {
			t.Fatalf("run %+v, want the plan to install", plan)
		}
		if want := []string{"install with: npm ci", "restart the app"}; !slices.Equal(plan.Would, want) || plan.Diff != "" {
			t.Errorf("would %q with the diff %q, want %q", plan.Would, plan.Diff, want)
		}
		if diff := cmp.Diff(before, r.still(id)); diff != "" {
			t.Errorf("the plan changed (-before +after):\n%s", diff)
		}
		run, err := r.apply(id)
		if err != nil || run.Outcome != engine.Healed || run.FixedBy != "reinstall" {
			t.Errorf("applied: %+v, %v; want healed by reinstall", run, err)
		}
		if n := len(r.model.requests()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
	})
}

func TestAPlanIsNotAppliedToWhatMovedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		id := r.gaveUp("api", broken)
		if _, err := r.apply(id); engine.AsCode(err) != engine.NotFound {
			t.Errorf("without a plan: %v, want not found", err)
		}
		r.model.will(
			call("read", in{"path": "app.js"}), call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			say("Cause: a bug.\nFix: none of it."),
		)
		r.plan(id)
		r.box(id).put("notes.txt", "v2")
		r.box(id).put("new.txt", "new")
		before := r.still(id)
		_, err := r.apply(id)
		if engine.AsCode(err) != engine.Conflict || !strings.Contains(err.Error(), "new.txt, notes.txt") {
			t.Errorf("%v, want a conflict that names both paths", err)
		}
		if diff := cmp.Diff(before, r.still(id)); diff != "" {
			t.Errorf("the refusal changed (-before +after):\n%s", diff)
		}
		r.box(id).put("notes.txt", "v1")
		r.box(id).remove("new.txt")
		if run, err := r.apply(id); err != nil || run.Outcome != engine.Healed {
			t.Errorf("as it was again: %+v, %v; want healed", run, err)
		}
	})
}

func TestAPlanThatDoesNotHelpIsRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		id := r.gaveUp("api", broken)
		r.model.will(call("write", in{"path": "guess.txt", "content": "a guess"}), say("Cause: who knows.\nFix: a guess."))
		if plan := r.plan(id); plan.Outcome != engine.Planned {
			t.Fatalf("run %+v, want a plan", plan)
		}
		run, err := r.apply(id)
		if err != nil || run.Outcome != engine.NotHealed || !strings.Contains(run.Summary, "plan did not heal") {
			t.Errorf("applied: %+v, %v; want that it did not heal", run, err)
		}
		if now := r.still(id); !cmp.Equal(now.Files, broken) || now.Health != engine.Broken {
			t.Errorf("after it: %+v, want the files as they were", now)
		}
	})
}

func TestNoPlan(t *testing.T) {
	cases := map[string]struct {
		set     func(r *rig)
		outcome engine.Outcome
		words   string
	}{
		"no model":        {func(r *rig) { r.h.Model = nil }, engine.NotHealed, "no model is configured"},
		"nothing to say":  {func(r *rig) { r.model.will(say("Cause: no idea.\nFix: nothing.")) }, engine.NotHealed, "would change nothing: no idea"},
		"over the budget": {func(r *rig) { r.h.Policy.SandboxDay.Attempts = 3 }, engine.OverBudget, "the sandbox's day"},
		"provider away": {func(r *rig) {
			r.model.will(fails(engine.Errorf(engine.Unauthorized, "the key was refused")))
		}, engine.NotHealed, "the key was refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				if c.outcome == engine.OverBudget {
					c.set(r)
				}
				stop := r.start()
				id := r.gaveUp("api", broken)
				stop()
				if c.outcome != engine.OverBudget {
					c.set(r)
				}
				r.start()
				before := r.still(id)
				plan := r.plan(id)
				if plan.Outcome != c.outcome || !strings.Contains(plan.Summary, c.words) || plan.Next == "" {
					t.Errorf("run %+v, want %q with %q", plan, c.outcome, c.words)
				}
				if diff := cmp.Diff(before, r.still(id)); diff != "" {
					t.Errorf("it changed (-before +after):\n%s", diff)
				}
				if _, err := r.apply(id); engine.AsCode(err) != engine.NotFound {
					t.Errorf("applying it: %v, want not found", err)
				}
			})
		})
	}
}

// What fails while a plan is made is neither lost nor healed in the middle.
func TestWhatFailsDuringAPlanIsHealedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "fine()"})
		r.change(id, func(sb *engine.Sandbox) { sb.Health = engine.Starting })
		r.sick[id] = true
		r.start()
		during := do(func() {
			r.box(id).put("app.js", "bug()")
			r.crash(id)
			r.await("a verdict", func(tx *store.Tx) (bool, error) {
				list, err := tx.Signals(id, time.Time{})
				return len(list) > 0 && list[len(list)-1].Verdict != nil, err
			})
		}, say("Cause: nothing.\nFix: nothing."))
		r.model.will(during)
		plan := r.plan(id)
		if plan.Outcome != engine.Planned {
			t.Errorf("run %+v, want the plan to restart", plan)
		}
		r.await("a heal", func(tx *store.Tx) (bool, error) {
			runs, err := tx.RunsOf(id, time.Time{})
			return len(runs) == 2 && !runs[1].Open() && !runs[1].Plan, err
		})
	})
}
