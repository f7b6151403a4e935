package healer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

func TestVerdicts(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	exit := engine.Signal{ID: 9, Kind: engine.ExitSignal, Observed: "exit 1 twice in 3s", At: now.Add(-time.Second)}
	sick := engine.Signal{ID: 9, Kind: engine.HealthSignal, Observed: "health failed twice", At: now.Add(-time.Second)}
	hand := engine.Signal{ID: 9, Kind: engine.HandSignal, At: now}
	up := engine.Sandbox{Wanted: engine.Up, State: engine.Waiting, Health: engine.Ready, HealthChanged: now.Add(-time.Hour)}
	failed := engine.Process{State: engine.ProcessFailed, Wanted: engine.WantRunning, Started: now.Add(-3 * time.Second)}
	with := func(fn func(sb *engine.Sandbox)) engine.Sandbox { sb := up; fn(&sb); return sb }
	ran := func(n int, ago time.Duration, o engine.Outcome) (runs []engine.HealRun) {
		for range n {
			runs = append(runs, engine.HealRun{
				State: engine.RunEnded, Outcome: o, By: actor, Started: now.Add(-ago),
			})
		}
		return runs
	}
	stopped := ran(1, time.Minute, engine.Cancelled)
	stopped[0].Summary, stopped[0].Ended = "cancelled by operator dana", now.Add(-time.Second)
	open := []engine.HealRun{{ID: "ru-abcdefghij", State: engine.RunModel, Cause: "by hand: operator dana"}}

	for _, c := range []struct {
		name   string
		sb     engine.Sandbox
		proc   engine.Process
		runs   []engine.HealRun
		sig    engine.Signal
		action engine.VerdictAction
		reason string
	}{
		{"an app that gave up", up, failed, nil, exit, engine.Repair, "exit 1 twice in 3s"},
		{"an app that does not answer", up, engine.Process{State: engine.ProcessRunning}, nil, sick, engine.Repair, "health failed twice"},
		{"a stopped sandbox", with(func(sb *engine.Sandbox) { sb.Wanted = engine.Down }), failed, nil, exit, engine.Ignore, "stopped"},
		{"one being removed", with(func(sb *engine.Sandbox) { sb.Wanted = engine.Removed }), failed, nil, hand, engine.Ignore, "removed"},
		{"a cold one", with(func(sb *engine.Sandbox) { sb.State = engine.Cold }), failed, nil, exit, engine.Ignore, "cold"},
		{"one coming up", with(func(sb *engine.Sandbox) { sb.State = engine.Warming }), failed, nil, exit, engine.Wait, "coming up"},
		{"one being healed", with(func(sb *engine.Sandbox) { sb.Health = engine.Healing }), failed, open, exit, engine.Ignore, "ru-abcd, by hand: operator dana"},
		{"one being healed, by hand", with(func(sb *engine.Sandbox) { sb.Health = engine.Healing }), failed, open, hand, engine.Ignore, "being healed"},
		{"maintenance", with(func(sb *engine.Sandbox) { sb.Maintenance = engine.Maintenance{On: true, By: "dana"} }), failed, nil, exit, engine.Ignore, "paused by dana"},
		{"maintenance that is over", with(func(sb *engine.Sandbox) {
			sb.Maintenance = engine.Maintenance{On: true, Until: now.Add(-time.Minute)}
		}), failed, nil, exit, engine.Repair, "gave up"},
		{"maintenance, by hand", with(func(sb *engine.Sandbox) { sb.Maintenance.On = true }), failed, nil, hand, engine.Repair, "by hand"},
		{"a broken one", with(func(sb *engine.Sandbox) { sb.Health = engine.Broken }), failed, nil, exit, engine.Ignore, "waits for an operator"},
		{"a broken one, by hand", with(func(sb *engine.Sandbox) { sb.Health = engine.Broken }), failed, nil, hand, engine.Repair, "by hand"},
		{"started again since", up, engine.Process{State: engine.ProcessRunning, Started: now}, nil, exit, engine.Wait, "started again since"},
		{"started again and failed again", up, engine.Process{State: engine.ProcessFailed, Started: now}, nil, exit, engine.Repair, "gave up"},
		{"a probe that passed just before the exit", with(func(sb *engine.Sandbox) { sb.HealthChanged = now }), failed, nil, exit, engine.Repair, "gave up"},
		{"stopped process", up, engine.Process{State: engine.ProcessStopped, Wanted: engine.WantStopped}, nil, exit, engine.Ignore, "stopped since"},
		{"health: ready since", with(func(sb *engine.Sandbox) { sb.HealthChanged = now }), engine.Process{State: engine.ProcessRunning}, nil, sick, engine.Ignore, "ready again"},
		{"health: still starting", with(func(sb *engine.Sandbox) {
			sb.Health, sb.HealthChanged = engine.Starting, now.Add(-30*time.Second)
		}), engine.Process{State: engine.ProcessRunning}, nil, sick, engine.Wait, "it has 1m0s"},
		{"health: started for too long", with(func(sb *engine.Sandbox) {
			sb.Health, sb.HealthChanged = engine.Starting, now.Add(-61*time.Second)
		}), engine.Process{State: engine.ProcessRunning}, nil, sick, engine.Repair, "not healthy"},
		{"health: about to be started", up, engine.Process{State: engine.ProcessBackoff}, nil, sick, engine.Wait, "about to start"},
		{"wake", up, failed, nil, engine.Signal{Kind: engine.WakeSignal}, engine.Reconnect, "slept"},
		{"an unknown kind", up, failed, nil, engine.Signal{Kind: "moon"}, engine.Ignore, "unknown"},
		{"three heals within the hour", up, failed, ran(3, 50*time.Minute, engine.Healed), exit, engine.Ignore, "flapping"},
		{"three heals, by hand", up, failed, ran(3, 50*time.Minute, engine.Healed), hand, engine.Repair, "by hand"},
		{"three heals, longer ago", up, failed, ran(3, time.Hour, engine.Healed), exit, engine.Repair, "gave up"},
		{"two heals", up, failed, ran(2, time.Minute, engine.Healed), exit, engine.Repair, "gave up"},
		{"three that were cancelled", up, failed, ran(3, time.Minute, engine.Cancelled), exit, engine.Repair, "gave up"},
		{"two heals and one cut", up, failed, append(ran(2, time.Minute, engine.Healed), ran(1, time.Minute, engine.Interrupted)...), exit, engine.Repair, "gave up"},
		{"three heals that ended the engine", up, failed, ran(3, time.Minute, engine.Interrupted), exit, engine.Ignore, "the engine ended"},
		{"cancelled by hand, and failed at the next start", with(func(sb *engine.Sandbox) { sb.Health = engine.Starting }), failed, stopped, exit, engine.Ignore, "cancelled by operator dana, and it failed again"},
		{"cancelled by hand, and ready since", up, failed, stopped, exit, engine.Repair, "gave up"},
		{"cancelled by hand, and brought up anew", with(func(sb *engine.Sandbox) {
			sb.Health, sb.StateChanged = engine.Starting, now
		}), failed, stopped, exit, engine.Repair, "gave up"},
		{"three heals of a cold one", with(func(sb *engine.Sandbox) { sb.State = engine.Cold }), failed, ran(3, time.Minute, engine.Healed), exit, engine.Ignore, "cold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge(now, Policy{}, c.sb, c.proc, nil, c.runs, c.sig)
			if v.Action != c.action || !strings.Contains(v.Reason, c.reason) || !v.At.Equal(now) {
				t.Errorf("%s: %q, want %s: …%s…", v.Action, v.Reason, c.action, c.reason)
			}
		})
	}
}

func TestPlanFillsBothLanesOldestFirst(t *testing.T) {
	run := func(id, box string, st engine.RunState) engine.HealRun {
		return engine.HealRun{ID: engine.RunID(id), Sandbox: engine.SandboxID(box), State: st, Fingerprint: noFingerprint}
	}
	cancelled := run("x", "x", engine.RunQueued)
	cancelled.Outcome = engine.Cancelled
	open := []engine.HealRun{
		run("a", "a", engine.RunWaiting), run("b", "b", engine.RunWaiting), run("c", "c", engine.RunModel), cancelled,
		run("held", "held", engine.RunQueued), run("d", "d", engine.RunQueued), run("e", "e", engine.RunQueued), run("f", "f", engine.RunQueued),
	}
	undecided := run("u", "u", engine.RunQueued)
	undecided.Fingerprint = ""
	waits := run("w", "w", engine.RunQueued)
	waits.Held = "held by an incident"
	open = append([]engine.HealRun{undecided, waits}, open...)
	at := map[engine.RunID]lane{"a": inLine, "b": inLine, "c": model}
	var got []string
	for _, s := range plan(Policy{PlaybookRuns: 2, MaxModelRuns: 2}, open, at, map[engine.SandboxID]bool{"held": true}) {
		got = append(got, string(s.run.ID)+map[lane]string{playbooks: " playbooks", model: " model"}[s.lane])
	}
	if diff := cmp.Diff([]string{"a model", "d playbooks", "e playbooks"}, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestWhatBecomesOfASandboxWhoseRunWasCut(t *testing.T) {
	sb := func(st engine.State, h engine.Health) engine.Sandbox {
		return engine.Sandbox{Wanted: engine.Up, State: st, Health: h, Spec: engine.Spec{App: engine.ProcessSpec{Health: "/"}}}
	}
	bare := sb(engine.Waiting, engine.Unknown)
	bare.Spec.App.Health = ""
	down := sb(engine.Waiting, engine.Unknown)
	down.Wanted = engine.Down
	for _, c := range []struct {
		name  string
		sb    engine.Sandbox
		app   engine.ProcessState
		since int
		want  move
	}{
		{"on its way up", sb(engine.Warming, engine.Unknown), engine.ProcessFailed, 0, notYet},
		{"cold still", sb(engine.Cold, engine.Unknown), engine.ProcessStopped, 0, notYet},
		{"about to be started", sb(engine.Waiting, engine.Starting), engine.ProcessStopped, 0, notYet},
		{"starting", sb(engine.Waiting, engine.Starting), engine.ProcessRunning, 0, notYet},
		{"failed, and a signal told", sb(engine.Waiting, engine.Starting), engine.ProcessFailed, 1, forget},
		{"failed, and nobody told", sb(engine.Waiting, engine.Unknown), engine.ProcessFailed, 0, raise},
		{"runs, and nobody probes it", sb(engine.Waiting, engine.Unknown), engine.ProcessRunning, 0, raise},
		{"runs, and there is nothing to probe", bare, engine.ProcessRunning, 0, fine},
		{"ready", sb(engine.Waiting, engine.Ready), engine.ProcessRunning, 0, fine},
		{"healed by somebody", sb(engine.Waiting, engine.Healing), engine.ProcessRunning, 0, forget},
		{"given up", sb(engine.Waiting, engine.Broken), engine.ProcessFailed, 0, forget},
		{"stopped by somebody", down, engine.ProcessFailed, 0, forget},
	} {
		if got := again(c.sb, engine.Process{State: c.app}, make([]engine.Signal, c.since)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestPolicyIsScaledOnce(t *testing.T) {
	set := DefaultPolicy()
	set.Scale = 0.1
	if set.filled() != (Policy{Scale: 0.1}).filled() {
		t.Error("a default policy that is scaled is not the scaled default")
	}
	p := Policy{Scale: 0.1}.filled().filled()
	if p.VerifyFor != time.Second || p.RunTimeout != 120*time.Second || p.patience(20*time.Second, 0) != 2*time.Second {
		t.Errorf("verify %s, run %s, patience %s", p.VerifyFor, p.RunTimeout, p.patience(20*time.Second, 0))
	}
}
