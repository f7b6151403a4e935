package healer

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/store"
)

func used(r *rig, id engine.SandboxID) engine.Use {
	return view(r, func(tx *store.Tx) (engine.Use, error) { return tx.Used(id) })
}

func TestWhatModelsUseIsCountedByDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		wait := func(d time.Duration, next turn) turn { return do(func() { time.Sleep(d) }, next) }
		r.model.will(wait(time.Minute, call("read", in{"path": "app.js"})), say("I give up."), say("I give up."), say("I give up."))
		r.start()
		if run := r.heal(id); run.Outcome != engine.NotHealed {
			t.Fatalf("the run: %s (%s)", run.Outcome, run.Summary)
		}
		u := used(r, id)
		if u.Attempts != 3 || u.Steps != 1 || u.Tokens != 440 || u.Dollars < 0.039 || u.Dollars > 0.041 {
			t.Errorf("used %+v, want 3 attempts, a step, 4 answers of 110 tokens and a cent", u)
		}
		if u.Time.D() < time.Minute || u.Time.D() > 5*time.Minute {
			t.Errorf("used %s of time, want the minute that the model took, and little more", u.Time)
		}
		if all := used(r, ""); all != u {
			t.Errorf("the fleet has used %+v, want the same", all)
		}
		time.Sleep(24 * time.Hour)
		if u := used(r, id); u != (engine.Use{}) {
			t.Errorf("a day later %+v are used, want none", u)
		}
	})
}

func TestNothingIsSentAfterABudgetIsCrossed(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(p *Policy)
		most  int // requests
		scope string
	}{
		"steps of a run":              {func(p *Policy) { p.RunSteps = 2 }, 2, "the run"},
		"attempts of a run":           {func(p *Policy) { p.Attempts = 1; p.Steps = 3 }, 3, "the run"},
		"tokens of a run":             {func(p *Policy) { p.Tokens = 200 }, 2, "budget"},
		"dollars of a run":            {func(p *Policy) { p.Dollars = 0.015 }, 2, "budget"},
		"steps of the sandbox's day":  {func(p *Policy) { p.SandboxDay.Steps = 2 }, 2, "the sandbox's day"},
		"tokens of the sandbox's day": {func(p *Policy) { p.SandboxDay.Tokens = 200 }, 2, "the sandbox's day"},
		"time of the sandbox's day":   {func(p *Policy) { p.SandboxDay.Time = engine.Duration(time.Second) }, 1, "the sandbox's day"},
		"attempts of the fleet's day": {func(p *Policy) { p.FleetDay.Attempts = 1; p.Steps = 3 }, 3, "the fleet's day"},
		"dollars of the fleet's day":  {func(p *Policy) { p.FleetDay.Dollars = 0.015 }, 2, "the fleet's day"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				c.set(&r.h.Policy)
				id := r.sandbox("api", broken)
				for i := range 20 { // it would go on for ever
					name := []string{"app.js", "package.json"}[i%2]
					r.model.will(do(func() { time.Sleep(2 * time.Second) }, call("read", in{"path": name})))
				}
				r.start()
				run := r.heal(id)
				if run.Outcome != engine.OverBudget || !strings.Contains(run.Summary, c.scope) || run.Next == "" {
					t.Errorf("the run: %s (%s; next: %s), want it over the budget of %s", run.Outcome, run.Summary, run.Next, c.scope)
				}
				if n := len(r.model.requests()); n != c.most {
					t.Errorf("%d requests were sent, want %d", n, c.most)
				}
				r.awaitHealth(id, engine.Broken)
			})
		})
	}
}

func TestBudgetsOutliveTheEngineAndTheSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Policy.FleetDay.Attempts = 3
		first, second := r.sandbox("api", broken), r.sandbox("web", broken)
		r.model.will(say("I give up."), say("I give up."), say("I give up."))
		stop := r.start()
		r.heal(first)
		stop()
		r.update(func(tx *store.Tx) error { return tx.RemoveSandbox(first) })
		r.start()
		run := r.heal(second)
		if run.Outcome != engine.OverBudget || len(r.model.requests()) != 3 {
			t.Errorf("the next sandbox: %s (%s) after %d requests, want no more than the fleet may make", run.Outcome, run.Summary, len(r.model.requests()))
		}
	})
}
