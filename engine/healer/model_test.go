package healer

import (
	"strings"
	"testing"
	"testing/synctest"

	"sbx/engine"
	"sbx/store"
)

func TestBudgetEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Policy.Tokens = 300
		id := r.sandbox("api", broken)
		for i := range 50 {
			r.model.will(call("wait", in{"seconds": 1 + i}))
		}
		r.start()
		run := r.heal(id)
		if run.Outcome != engine.OverBudget || !strings.Contains(run.Summary, "Over the budget") {
			t.Errorf("run ended %q: %s", run.Outcome, run.Summary)
		}
		if n := len(r.model.requests()); n != 3 {
			t.Errorf("the model was asked %d times, want 3: nothing after the budget", n)
		}
		r.awaitHealth(id, engine.Broken)
	})
}

func TestProvidersTroubleUsesUpNoAttempt(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		next string
	}{
		{"a wrong key", engine.Errorf(engine.Unauthorized, "401: invalid x-api-key"), "check the key"},
		{"a spend limit", engine.Errorf(engine.Exhausted, "spend limit reached"), "spend limit"},
		{"a provider that is away", engine.Errorf(engine.Unavailable, "529: overloaded"), "when the provider answers again"},
		{"a key that may not", engine.Errorf(engine.Forbidden, "403: not yours").WithHint("set another model.name"), "set another model.name, then: sbx heal api"},
		{"no such model", engine.Errorf(engine.NotFound, "404: no such model").WithHint("set model.name"), "set model.name, then: sbx heal api"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				id := r.sandbox("api", broken)
				for range 500 {
					r.model.will(fails(c.err))
				}
				r.start()
				r.crash(id)
				if engine.AsCode(c.err) == engine.Unavailable {
					r.awaitRun(id, func(run engine.HealRun) bool {
						return run.State == engine.RunWaiting && strings.Contains(run.Doing, "overloaded")
					})
				}
				r.awaitHealth(id, engine.Broken)
				run := r.ended(id)
				sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
				if run.Attempt != 0 || !strings.HasPrefix(sb.Reason, "model unavailable: ") || !strings.Contains(run.Next, c.next) {
					t.Errorf("attempt %d, reason %q, next %q", run.Attempt, sb.Reason, run.Next)
				}
			})
		})
	}
}

func TestEndThatTheModelDidNotChooseIsTold(t *testing.T) {
	refusal := engine.Errorf(engine.Invalid, "the model refused the request: no such beta")
	for _, c := range []struct{ name, words string }{
		{"a refused request", refusal.Error()},
		{"the same call again and again", "looping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				id := r.sandbox("api", broken)
				for range 50 {
					if c.name == "a refused request" {
						r.model.will(fails(refusal))
					} else {
						r.model.will(call("list", in{}))
					}
				}
				r.start()
				run := r.heal(id)
				if run.Outcome != engine.NotHealed || run.Attempt != 3 || !strings.Contains(run.Summary, c.words) {
					t.Errorf("after %d attempts %q: %s", run.Attempt, run.Outcome, run.Summary)
				}
				for _, a := range view(r, func(tx *store.Tx) ([]engine.Attempt, error) { return tx.Attempts(run.ID) })[1:] {
					if !strings.Contains(a.Summary, c.words) {
						t.Errorf("attempt %d does not say it: %s", a.Number, a.Summary)
					}
				}
			})
		})
	}
}

func TestRunWithoutAModelEndsBrokenAndSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(r *rig, id engine.SandboxID)
		reason string
		next   string
	}{
		{
			"none configured", func(r *rig, _ engine.SandboxID) { r.h.Model, r.h.NoModel = nil, "no model is configured" },
			"no model is configured", "set ANTHROPIC_API_KEY (or model.key in config.toml), then: sbx heal api",
		},
		{
			"nothing confines it", func(r *rig, _ engine.SandboxID) { r.h.Confined = false },
			"nothing confines a model's commands", "sbx doctor",
		},
		{
			"no checkpoint", func(r *rig, id engine.SandboxID) {
				r.box(id).noSave = engine.Errorf(engine.Unavailable, "there is no git on this host")
			},
			"there is no git on this host", "make git available",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				id := r.sandbox("api", broken)
				c.set(r, id)
				r.start()
				run := r.heal(id)
				sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
				if sb.Health != engine.Broken || !strings.Contains(sb.Reason, c.reason) || !strings.Contains(run.Next, c.next) {
					t.Errorf("%s: %q, next %q", sb.Health, sb.Reason, run.Next)
				}
				if len(r.model.requests()) != 0 {
					t.Error("a model was asked")
				}
			})
		})
	}
}

func TestModelsWordProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.model.will(say("Fixed, all healthy."), say(""), say("Cause: x.\nFix: y."))
		r.start()
		if run := r.heal(id); run.Outcome != engine.NotHealed {
			t.Errorf("run ended %q", run.Outcome)
		}
		r.awaitHealth(id, engine.Broken)
	})
}
