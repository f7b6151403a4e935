package healer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sbx/engine"
)

func TestARestartThatIsNoUseIsRepairedAfterAMinute(t *testing.T) {
	for _, kind := range []engine.SignalKind{engine.StalledSignal, engine.PressureSignal} {
		t.Run(string(kind), func(t *testing.T) {
			patient(t, func(r *rig) {
				id := r.sandbox("web", map[string]string{"app.js": "fine"})
				r.start()
				time.Sleep(65 * time.Second)
				r.sick[id] = true
				r.raise(id, kind)
				time.Sleep(59 * time.Second)
				if n := len(r.runs(id)); n != 0 {
					t.Fatalf("%d runs within a minute", n)
				}
				run := r.ended(id)
				if run.Started.Sub(r.app(id).Started) > time.Minute+time.Second && run.FixedBy != "" {
					t.Errorf("the run began at %s", run.Started)
				}
				list := r.signals(id)
				if len(list) != 2 || list[1].Kind != kind || list[1].Run != run.ID ||
					list[1].Observed != "restarted, and not healthy within 1m0s (before: what was seen)" {
					t.Errorf("signals: %+v", list)
				}
				if sb := r.row(id); sb.Health != engine.Broken || run.Outcome != engine.NotHealed {
					t.Errorf("it is %s, the run %s", sb.Health, run.Outcome)
				}
				if strings.Contains(run.Summary, "Tried: restart") {
					t.Errorf("it was restarted once more: %s", run.Summary)
				}
			})
		})
	}
}

// TestARestartThatCannotBeMadeBlindsNobody: a restart that throws left the
// original healer blind, or its sandbox healing for ever.
func TestARestartThatCannotBeMadeBlindsNobody(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	refuse := func(context.Context) error { return errors.New("no such cgroup") }
	for name, restart := range map[string]func(context.Context) error{"refused": refuse, "hanging": hang} {
		for _, kind := range []engine.SignalKind{engine.StalledSignal, engine.PressureSignal} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				patient(t, func(r *rig) {
					id := r.sandbox("web", map[string]string{"app.js": "fine"})
					other := r.sandbox("other", map[string]string{"app.js": "fine"})
					r.h.Model, r.h.NoModel = nil, "no model in this test"
					r.h.Restart = func(ctx context.Context, sb engine.SandboxID) error {
						if sb == id {
							return restart(ctx)
						}
						return r.restart(ctx, sb)
					}
					r.start()
					time.Sleep(65 * time.Second)
					r.sick[id] = true
					r.raise(id, kind)
					time.Sleep(time.Second)
					r.raise(other, kind) // while the first one hangs
					time.Sleep(time.Second)
					if n := r.app(other).Starts; n != 2 {
						t.Errorf("the other was started %d times meanwhile", n)
					}
					r.passes(other)
					run := r.ended(id)
					sb := r.row(id)
					if sb.Health != engine.Broken || !strings.HasPrefix(run.Cause, "restarted, and the app could not be started") {
						t.Errorf("it is %s; the run's cause: %s", sb.Health, run.Cause)
					}
					time.Sleep(11 * time.Minute)
					r.raise(other, kind)
					time.Sleep(time.Second)
					if n := r.app(other).Starts; n != 3 {
						t.Errorf("afterwards the other was started %d times", n)
					}
				})
			})
		}
	}
}

func TestAnAppThatCrashesAtTheRestartIsItsSupervisorsToTell(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "bug"})
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		run := r.ended(id)
		if run.Outcome != engine.NotHealed || len(r.runs(id)) != 1 {
			t.Errorf("%d runs: %+v", len(r.runs(id)), run)
		}
		time.Sleep(10 * time.Minute)
		if n := len(r.runs(id)); n != 1 || r.row(id).Health != engine.Broken {
			t.Errorf("%d runs, it is %s", n, r.row(id).Health)
		}
	})
}

func TestAnAppThatWasStartedAfterAllHasItsTime(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error {
			return errors.Join(r.restart(ctx, id), errors.New("the journal was compacted"))
		}
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		time.Sleep(30 * time.Second)
		r.passes(id)
		time.Sleep(5 * time.Minute)
		if runs := r.runs(id); len(runs) != 0 || r.row(id).Health != engine.Ready {
			t.Errorf("it is %s: %+v", r.row(id).Health, runs)
		}
	})
}

// TestAnAnswerDoesNotProveThatAStallIsOver: it answered all along.
func TestAnAnswerDoesNotProveThatAStallIsOver(t *testing.T) {
	patient(t, func(r *rig) {
		id := r.sandbox("web", map[string]string{"app.js": "fine"})
		r.h.Stuck = func(engine.Process) string { return "Bundling…" }
		r.start()
		time.Sleep(65 * time.Second)
		r.raise(id, engine.StalledSignal)
		time.Sleep(time.Second)
		r.passes(id)
		time.Sleep(time.Minute)
		r.raise(id, engine.StalledSignal)
		run := r.ended(id)
		if run.Outcome != engine.NotHealed || !strings.Contains(run.Summary, "its log stops again") {
			t.Errorf("%s: %s", run.Outcome, run.Summary)
		}
	})
}
