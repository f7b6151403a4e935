package healer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/store"
)

// part is a member of an incident of a table.
func partOf(name string, h engine.Health, st engine.RunState, o engine.Outcome) member {
	return member{
		sb: engine.Sandbox{
			ID: engine.SandboxID("sb-" + name), Name: name, Wanted: engine.Up, State: engine.Waiting, Health: h,
			Spec: engine.Spec{App: engine.ProcessSpec{Health: "/"}},
		},
		run: engine.HealRun{
			ID: engine.RunID("ru-" + name), Sandbox: engine.SandboxID("sb-" + name), State: st, Outcome: o, By: actor,
			FixedBy: "restart", Summary: "it was hopeless",
		},
	}
}

func TestAnIncidentGoesOnAsItsRowsSay(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	queued := func(name string) member { return partOf(name, engine.Healing, engine.RunQueued, "") }
	ended := func(name string, h engine.Health, o engine.Outcome) member {
		return partOf(name, h, engine.RunEnded, o)
	}
	down := ended("c", engine.Unknown, engine.Cancelled)
	down.sb.Wanted = engine.Down
	for _, c := range []struct {
		name    string
		state   engine.IncidentState
		canary  string
		members []member
		want    engine.IncidentState
		leads   string
	}{
		{"the oldest is the canary", engine.IncidentCanary, "", []member{queued("a"), queued("b"), queued("c")}, engine.IncidentCanary, "a"},
		{"one that is at work already is", engine.IncidentCanary, "", []member{queued("a"), partOf("b", engine.Healing, engine.RunPlaybooks, ""), queued("c")}, engine.IncidentCanary, "b"},
		{"one that has ended is not", engine.IncidentCanary, "", []member{ended("a", engine.Ready, engine.Healed), queued("b"), queued("c")}, engine.IncidentCanary, "b"},
		{"it stays the canary", engine.IncidentCanary, "b", []member{queued("a"), queued("b"), queued("c")}, engine.IncidentCanary, "b"},
		{"it worked", engine.IncidentCanary, "a", []member{ended("a", engine.Ready, engine.Healed), queued("b"), queued("c")}, engine.IncidentFollow, "a"},
		{"it did not", engine.IncidentCanary, "a", []member{ended("a", engine.Broken, engine.NotHealed), queued("b"), queued("c")}, engine.IncidentFailed, "a"},
		{"its budget was spent", engine.IncidentCanary, "a", []member{ended("a", engine.Broken, engine.OverBudget), queued("b"), queued("c")}, engine.IncidentFailed, "a"},
		{"it was cancelled", engine.IncidentCanary, "a", []member{ended("a", engine.Unknown, engine.Cancelled), queued("b"), queued("c")}, engine.IncidentCanary, "b"},
		{"the engine ended in it", engine.IncidentCanary, "a", []member{ended("a", engine.Starting, engine.Interrupted), ended("b", engine.Starting, engine.Interrupted)}, engine.IncidentCanary, ""},
		{"it was removed", engine.IncidentCanary, "a", []member{{gone: true}, queued("b"), queued("c")}, engine.IncidentCanary, "b"},
		{"the rest follow", engine.IncidentFollow, "a", []member{ended("a", engine.Ready, engine.Healed), ended("b", engine.Ready, engine.Healed), queued("c")}, engine.IncidentFollow, "a"},
		{"all are ready", engine.IncidentFollow, "a", []member{ended("a", engine.Ready, engine.Healed), ended("b", engine.Ready, engine.Healed), ended("c", engine.Ready, engine.Healed)}, engine.IncidentEnded, "a"},
		{"some are broken, one is stopped", engine.IncidentFollow, "a", []member{ended("a", engine.Ready, engine.Healed), ended("b", engine.Broken, engine.NotHealed), down}, engine.IncidentEnded, "a"},
		{"all were told broken", engine.IncidentFailed, "a", []member{ended("a", engine.Broken, engine.NotHealed), ended("b", engine.Broken, engine.NotHealed)}, engine.IncidentEnded, "a"},
		{"all were removed", engine.IncidentCanary, "a", []member{{gone: true}, {gone: true}}, engine.IncidentEnded, ""},
	} {
		i := engine.Incident{ID: "in-aaaa", State: c.state}
		if c.canary != "" {
			i.Canary, i.CanaryRun = engine.SandboxID("sb-"+c.canary), engine.RunID("ru-"+c.canary)
		}
		for _, m := range c.members {
			i = joined(i, m.run, m.sb.Name)
		}
		i = advance(now, i, c.members)
		leads := engine.RunID("")
		if c.leads != "" {
			leads = engine.RunID("ru-" + c.leads)
		}
		if i.State != c.want || i.CanaryRun != leads || i.Reason == "" && c.state != engine.IncidentFollow {
			t.Errorf("%s: %s with the canary %q (%q), want %s with %q", c.name, i.State, i.CanaryRun, i.Reason, c.want, leads)
		}
		if !i.Open() != !i.Ended.IsZero() {
			t.Errorf("%s: %s ended at %s", c.name, i.State, i.Ended)
		}
	}
}

func TestThreeOfAKindWithinFiveMinutesAreAnIncident(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	run := func(name string, ago time.Duration) engine.HealRun {
		return engine.HealRun{
			ID: engine.RunID("ru-" + name), Sandbox: engine.SandboxID("sb-" + name), By: actor,
			State: engine.RunQueued, Fingerprint: "exit 1 · boom", Started: now.Add(-ago),
		}
	}
	byHand := run("h", 0)
	byHand.By = engine.Actor{Kind: engine.ActorOperator}
	untold := run("u", 0)
	untold.Fingerprint = noFingerprint
	elsewhere := run("e", 0)
	elsewhere.Incident = "in-other"
	again := run("a", time.Minute)
	again.ID = "ru-a2"
	for _, c := range []struct {
		name string
		run  engine.HealRun
		like []engine.HealRun
		want int
	}{
		{"three", run("c", 0), []engine.HealRun{run("a", 4*time.Minute), run("b", time.Minute)}, 3},
		{"two", run("c", 0), []engine.HealRun{run("b", 0)}, 0},
		{"one too old", run("c", 0), []engine.HealRun{run("a", 5*time.Minute), run("b", 0)}, 0},
		{"the same sandbox again", run("c", 0), []engine.HealRun{run("a", 2*time.Minute), again}, 0},
		{"one by hand", run("c", 0), []engine.HealRun{byHand, run("b", 0)}, 0},
		{"asked for by hand itself", byHand, []engine.HealRun{run("a", 0), run("b", 0)}, 0},
		{"nobody knows what it is", untold, []engine.HealRun{run("a", 0), run("b", 0)}, 0},
		{"one of an incident that has ended", run("c", 0), []engine.HealRun{elsewhere, run("b", 0)}, 0},
	} {
		i, ok := gather(now, Policy{}, c.run, "boom", c.like, nil)
		if ok != (c.want > 0) || len(i.Members) != c.want {
			t.Errorf("%s: an incident of %d (%t), want %d", c.name, len(i.Members), ok, c.want)
		}
	}
}

func TestAnIncidentDoesNotKeepOthersWaitingForTheModel(t *testing.T) {
	run := func(id string, in engine.IncidentID) engine.HealRun {
		return engine.HealRun{ID: engine.RunID(id), Sandbox: engine.SandboxID(id), Incident: in, State: engine.RunWaiting}
	}
	held := run("h", "in-1")
	held.Held = "held"
	open := []engine.HealRun{run("m", "in-1"), run("a", "in-1"), run("b", "in-1"), held, run("c", "in-2"), run("d", "in-2"), run("e", "")}
	at := map[engine.RunID]lane{"m": model, "a": inLine, "b": inLine, "h": inLine, "c": inLine, "d": inLine, "e": inLine}
	var got []string
	for _, r := range inTurn(open, at) {
		got = append(got, string(r.ID))
	}
	if diff := cmp.Diff([]string{"c", "e", "a", "d", "b"}, got); diff != "" {
		t.Errorf("in turn (-want +got):\n%s", diff)
	}
}

// burst crashes all sandboxes in one transaction.
func (r *rig) burst(ids []engine.SandboxID) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		for _, id := range ids {
			if err := r.exit(tx, id, true); err != nil {
				return err
			}
		}
		return nil
	})
}

// buggy makes n sandboxes whose app has the same bug.
func (r *rig) buggy(n int) []engine.SandboxID {
	r.t.Helper()
	ids := make([]engine.SandboxID, n)
	for i := range ids {
		ids[i] = r.sandbox(fmt.Sprintf("s%02d", i), map[string]string{"app.js": "bug"})
		r.log[ids[i]] = "TypeError: bug is not a function\n    at app.js:1"
	}
	return ids
}

func (r *rig) incidents(q engine.IncidentQuery) []engine.Incident {
	r.t.Helper()
	list, err := r.store.Incidents(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// awaitIncident waits until the only incident is as fn says.
func (r *rig) awaitIncident(what string, fn func(engine.Incident) bool) engine.Incident {
	r.t.Helper()
	var last engine.Incident
	r.await(what, func(*store.Tx) (bool, error) {
		list := r.incidents(engine.IncidentQuery{})
		if len(list) > 0 {
			last = list[len(list)-1]
		}
		return len(list) > 0 && fn(last), nil
	})
	return last
}

// fixer is a model that mends the bug, and counts who asks it at once.
type fixer struct {
	mu        sync.Mutex
	now, most int
	asked     int
	fixes     bool
}

func (f *fixer) Name() string { return "fixer" }

func (f *fixer) Reply(ctx context.Context, t agent.Transcript, _ []agent.Tool, _ func(string)) (agent.Turn, error) {
	f.mu.Lock()
	f.asked++
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	time.Sleep(3 * time.Second) // of the bubble's time: so that many are asked at once
	f.mu.Lock()
	f.now--
	fixes := f.fixes
	f.mu.Unlock()
	switch {
	case !fixes:
		return say("Cause: none. Fix: none.")(ctx, t)
	case len(t.Messages) == 1:
		return call("read", in{"path": "app.js"})(ctx, t)
	case len(t.Messages) == 3:
		return call("edit", in{"path": "app.js", "old": "bug", "new": "fine"})(ctx, t)
	case len(t.Messages) == 5:
		return call("restart", in{})(ctx, t)
	}
	return say("Cause: a bug.\nFix: none left.")(ctx, t)
}

func TestThirtySandboxesWithOneFaultAreOneIncident(t *testing.T) {
	for name, fixes := range map[string]bool{"the first heal works": true, "the first heal does not work": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				f := &fixer{fixes: fixes}
				r.h.Model = f
				ids := r.buggy(30)
				r.start()
				r.burst(ids)
				i := r.awaitIncident("the end", func(i engine.Incident) bool { return !i.Open() })
				if n := len(r.incidents(engine.IncidentQuery{})); n != 1 || len(i.Members) != 30 {
					t.Errorf("%d incidents, the last of %d sandboxes, want one of all 30", n, len(i.Members))
				}
				began := 0
				for _, id := range ids {
					runs := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) })
					sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
					if len(runs) != 1 || runs[0].Incident != i.ID {
						t.Fatalf("%s has %d runs (%+v), want one, of the incident", id, len(runs), runs)
					}
					if runs[0].Checkpoint != "" {
						began++
					}
					want := map[bool]engine.Health{true: engine.Ready, false: engine.Broken}[fixes]
					if sb.Health != want {
						t.Errorf("%s is %s (%s), want %s", sb.Name, sb.Health, sb.Reason, want)
					}
				}
				if f.most > 4 || fixes && f.most < 2 {
					t.Errorf("%d asked the model at once, want at most 4, and no fewer than need be", f.most)
				}
				// Two may be at it before the third makes it an incident; their
				// playbooks cost nothing, and the model is asked by one.
				if fixes && began != 30 || !fixes && began > 2 {
					t.Errorf("%d runs began", began)
				}
				if !fixes && f.most != 1 {
					t.Errorf("%d asked the model at once, want the canary alone", f.most)
				}
			})
		})
	}
}

func TestAnIncidentOutlivesTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		f := &fixer{fixes: true}
		r.h.Model = f
		ids := r.buggy(5)
		stop := r.start()
		r.burst(ids)
		before := r.awaitIncident("a canary at the model", func(i engine.Incident) bool {
			if i.CanaryRun == "" {
				return false
			}
			run := view(r, func(tx *store.Tx) (engine.HealRun, error) { return tx.Run(i.CanaryRun) })
			return run.State == engine.RunModel && len(i.Members) == 5
		})
		stop()
		r.start()
		after := r.awaitIncident("the end", func(i engine.Incident) bool { return !i.Open() })
		if n := len(r.incidents(engine.IncidentQuery{})); n != 1 || after.ID != before.ID || len(after.Members) != 5 {
			t.Errorf("%d incidents, the last is %s of %d, want %s of 5 to go on", n, after.ID, len(after.Members), before.ID)
		}
		for _, m := range after.Members {
			run := view(r, func(tx *store.Tx) (engine.HealRun, error) { return tx.Run(m.Run) })
			if m.Outcome != engine.Healed || run.Incident != after.ID {
				t.Errorf("%s: %s in run %s of %q, want it healed in the incident", m.Name, m.Outcome, m.Run, run.Incident)
			}
		}
	})
}

func TestACanaryThatIsCutIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Model = &fixer{fixes: true}
		ids := r.buggy(4)
		r.start()
		r.burst(ids)
		first := r.awaitIncident("a canary at the model", func(i engine.Incident) bool {
			if i.CanaryRun == "" {
				return false
			}
			run := view(r, func(tx *store.Tx) (engine.HealRun, error) { return tx.Run(i.CanaryRun) })
			return run.State == engine.RunModel && len(i.Members) == 4
		})
		r.update(func(tx *store.Tx) error {
			return Cancel(tx, first.Canary, engine.Actor{Kind: engine.ActorOperator, Name: "dana"})
		})
		second := r.awaitIncident("another canary", func(i engine.Incident) bool { return i.CanaryRun != first.CanaryRun && i.CanaryRun != "" })
		if second.Canary == first.Canary {
			t.Errorf("%s was cancelled, and is the canary again", first.Canary)
		}
		for _, id := range ids {
			if id != first.Canary {
				r.awaitHealth(id, engine.Ready)
			}
		}
	})
}

func TestWhatAnOperatorAsksForIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Model = &fixer{fixes: false}
		ids := r.buggy(4)
		r.start()
		r.burst(ids)
		i := r.awaitIncident("the end", func(i engine.Incident) bool { return !i.Open() })
		last := i.Members[3].Sandbox
		if sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(last) }); sb.Health != engine.Broken {
			t.Fatalf("%s is %s", sb.Name, sb.Health)
		}
		r.h.Model.(*fixer).mend()
		r.update(func(tx *store.Tx) error {
			_, _, err := Open(tx, Policy{}, last, engine.Actor{Kind: engine.ActorOperator, Name: "dana"})
			return err
		})
		r.awaitHealth(last, engine.Ready)
	})
}

func (f *fixer) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fixes = true
}
