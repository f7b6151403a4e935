package healer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/driver"
	"sbx/store"
)

// One run at a time also holds for plans, which can be cancelled, and which an
// engine's end leaves without a trace in the sandbox.
func TestAPlanIsOneRunThatCanBeCut(t *testing.T) {
	cuts := map[engine.Outcome]func(r *rig, id engine.SandboxID){
		engine.Cancelled: func(r *rig, id engine.SandboxID) {
			r.update(func(tx *store.Tx) error { return Cancel(tx, id, person) })
		},
		engine.Interrupted: func(r *rig, _ engine.SandboxID) {
			r.stop()
			r.start()
		},
	}
	for outcome, cut := range cuts {
		t.Run(string(outcome), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.start()
				id := r.gaveUp("api", broken)
				before := r.still(id)
				r.model.will(func(ctx context.Context, _ agent.Transcript) (agent.Turn, error) {
					<-ctx.Done() // a model that says nothing
					return agent.Turn{}, ctx.Err()
				})
				open := func(tx *store.Tx) error {
					_, _, err := OpenPlan(tx, id, person)
					return err
				}
				r.update(open)
				r.awaitRun(id, func(run engine.HealRun) bool { return run.State == engine.RunModel })
				if err := r.store.Update(t.Context(), open); engine.AsCode(err) != engine.Conflict || !strings.Contains(err.Error(), person.Name) {
					t.Errorf("a second plan: %v, want a conflict that names who asked for the first", err)
				}
				cut(r, id)
				if run := r.ended(id); run.Outcome != outcome || !run.Plan {
					t.Errorf("run %+v, want %q", run, outcome)
				}
				synctest.Wait()
				if diff := cmp.Diff(before, r.still(id)); diff != "" {
					t.Errorf("it changed (-before +after):\n%s", diff)
				}
			})
		})
	}
}

func TestAPlanWritesOverNoLinkAndNoMoreThanItMay(t *testing.T) {
	k := workshop(newBox(map[string]string{"link": "link:/etc/passwd", "app.js": "bug()"}))
	k.h.staged = newStaged(k.files)
	k = newKit(k.h)
	for _, c := range []struct{ tool, input, words string }{
		{"write", `{"path":"../out","content":"x"}`, "outside of the workspace"},
		{"write", `{"path":"conf/a.toml","content":"x"}`, "protected"},
		{"write", `{"path":".git/hooks/pre-commit","content":"x"}`, "protected"},
		{"write", `{"path":"app.js","content":"x"}`, "read it first"},
		{"write", `{"path":"big","content":"` + strings.Repeat("x", maxStaged+1) + `"}`, "a plan may change"},
		{"install", `{}`, "names no install command"},
	} {
		if _, err := use(k, c.tool, c.input); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s %.60s: %v, want %q", c.tool, c.input, err, c.words)
		}
	}
	if _, err := use(k, "read", `{"path":"link"}`); err != nil {
		t.Fatal(err)
	}
	if _, err := use(k, "write", `{"path":"link","content":"x"}`); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("over a link: %v", err)
	}
	if p, diff := k.staged.plan(); k.staged.any() || len(p.Edits) > 0 || diff != "" {
		t.Errorf("what was refused is in the plan: %+v\n%s", p, diff)
	}
}

// A playbook that would do something else by now does nothing.
func TestAPlaybooksPlanThatIsNotSoAnyMoreIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "bug()"})
		r.change(id, func(sb *engine.Sandbox) { sb.Health, sb.Maintenance = engine.Starting, engine.Maintenance{On: true} })
		r.start()
		r.log[id] = "Error: listen EADDRINUSE: address already in use"
		r.box(id).holder = driver.Holder{Held: true, Own: true, PID: 77, Name: "node"}
		r.crash(id)
		plan := r.plan(id)
		if plan.Outcome != engine.Planned || len(plan.Would) != 2 {
			t.Fatalf("run %+v, want the plan to kill and restart", plan)
		}
		r.log[id] = "TypeError: bug is not a function"
		r.box(id).holder = driver.Holder{}
		run, err := r.apply(id)
		if err != nil || run.Outcome != engine.NotHealed || !strings.Contains(run.Summary, "is not so any more: nothing was done") {
			t.Errorf("applied: %+v, %v", run, err)
		}
		if n := r.box(id).strays; n != 0 {
			t.Errorf("it killed strays %d times", n)
		}
	})
}
