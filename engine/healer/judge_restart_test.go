package healer

import (
	"strings"
	"testing"
	"time"

	"sbx/engine"
)

func TestVerdictsOnTroubleThatARestartMayEnd(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stall := engine.Signal{ID: 9, Kind: engine.StalledSignal, Observed: "the log says Bundling", At: now.Add(-time.Second)}
	press := engine.Signal{ID: 9, Kind: engine.PressureSignal, Observed: "memory 95%", At: now.Add(-time.Second)}
	up := engine.Sandbox{Wanted: engine.Up, State: engine.Waiting, Health: engine.Ready, HealthChanged: now.Add(-time.Hour)}
	runs := engine.Process{State: engine.ProcessRunning, Wanted: engine.WantRunning, Started: now.Add(-3 * time.Minute)}
	with := func(fn func(sb *engine.Sandbox)) engine.Sandbox { sb := up; fn(&sb); return sb }
	proc := func(fn func(p *engine.Process)) engine.Process { p := runs; fn(&p); return p }
	past := func(kind engine.SignalKind, ago time.Duration, a engine.VerdictAction) []engine.Signal {
		at := now.Add(-ago)
		return []engine.Signal{{ID: 3, Kind: kind, At: at, Verdict: &engine.Verdict{Action: a, At: at}}}
	}
	healed := make([]engine.HealRun, 3)
	for i := range healed {
		healed[i] = engine.HealRun{State: engine.RunEnded, Outcome: engine.Healed, By: actor, Started: now.Add(-20 * time.Minute)}
	}
	for _, c := range []struct {
		name   string
		sb     engine.Sandbox
		proc   engine.Process
		past   []engine.Signal
		runs   []engine.HealRun
		sig    engine.Signal
		action engine.VerdictAction
		reason string
	}{
		{"a stall", up, runs, nil, nil, stall, engine.Restart, "restart: the log says Bundling"},
		{"a stall while it starts", with(func(sb *engine.Sandbox) { sb.Health = engine.Starting }), runs, nil, nil, stall, engine.Restart, "restart"},
		{"pressure", up, runs, nil, nil, press, engine.Restart, "emergency: kill what earlier starts left running, and restart: memory 95%"},
		{"a stall again", up, runs, past(engine.StalledSignal, 599*time.Second, engine.Restart), nil, stall, engine.Repair, "stalled again, 9m59s after a restart"},
		{"pressure again", up, runs, past(engine.PressureSignal, 5*time.Minute, engine.Restart), nil, press, engine.Repair, "pressure again, 5m0s after"},
		{"a stall again, much later", up, runs, past(engine.StalledSignal, 10*time.Minute, engine.Restart), nil, stall, engine.Restart, "restart"},
		{"a stall after pressure", up, runs, past(engine.PressureSignal, 5*time.Minute, engine.Restart), nil, stall, engine.Restart, "restart"},
		{"a stall after one that was ignored", up, runs, past(engine.StalledSignal, 5*time.Minute, engine.Ignore), nil, stall, engine.Restart, "restart"},
		{"one that is being restarted", up, runs, past(engine.PressureSignal, 10*time.Second, engine.Restart), nil, stall, engine.Wait, "being restarted already (pressure)"},
		{"a stall again, flapping", up, runs, past(engine.StalledSignal, 5*time.Minute, engine.Restart), healed, stall, engine.Ignore, "flapping"},
		{"a stall after three heals", up, runs, nil, healed, stall, engine.Restart, "restart"},
		{"started since", up, proc(func(p *engine.Process) { p.Started = now }), nil, nil, stall, engine.Wait, "started again since"},
		{"exited since", up, proc(func(p *engine.Process) { p.State = engine.ProcessBackoff }), nil, nil, press, engine.Wait, "not running"},
		{"being restarted by hand", up, proc(func(p *engine.Process) { p.Wanted = engine.WantRestart }), nil, nil, press, engine.Wait, "not running"},
		{"its app was stopped", up, proc(func(p *engine.Process) { p.Wanted = engine.WantStopped }), nil, nil, stall, engine.Ignore, "somebody wanted"},
		{"stopped", with(func(sb *engine.Sandbox) { sb.Wanted = engine.Down }), runs, nil, nil, press, engine.Ignore, "somebody wanted"},
		{"cold", with(func(sb *engine.Sandbox) { sb.State = engine.Cold }), runs, nil, nil, press, engine.Ignore, "cold"},
		{"coming up", with(func(sb *engine.Sandbox) { sb.State = engine.Warming }), runs, nil, nil, stall, engine.Wait, "coming up"},
		{"maintenance", with(func(sb *engine.Sandbox) { sb.Maintenance.On = true }), runs, nil, nil, stall, engine.Ignore, "paused"},
		{"being healed", with(func(sb *engine.Sandbox) { sb.Health = engine.Healing }), runs, nil, nil, press, engine.Ignore, "being healed"},
		{"broken", with(func(sb *engine.Sandbox) { sb.Health = engine.Broken }), runs, nil, nil, stall, engine.Ignore, "broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge(now, Policy{}, c.sb, c.proc, c.past, c.runs, c.sig)
			if v.Action != c.action || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("%s: %q, want %s: …%s…", v.Action, v.Reason, c.action, c.reason)
			}
		})
	}
}

func TestWhatIsLeftToDoAboutARestart(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	long := engine.Sandbox{
		Wanted: engine.Up, State: engine.Waiting, Health: engine.Starting, HealthChanged: at,
		Spec: engine.Spec{App: engine.ProcessSpec{Health: "/health", StartTimeout: engine.Duration(20 * time.Second)}},
	}
	with := func(fn func(sb *engine.Sandbox)) engine.Sandbox { sb := long; fn(&sb); return sb }
	before := engine.Process{State: engine.ProcessRunning, Wanted: engine.WantRunning, Started: at.Add(-time.Hour)}
	after := engine.Process{State: engine.ProcessRunning, Wanted: engine.WantRunning, Started: at.Add(4 * time.Second)}
	down := engine.Process{State: engine.ProcessFailed, Wanted: engine.WantRunning, Started: at.Add(-time.Hour)}
	ready := func(sb *engine.Sandbox) { sb.Health, sb.HealthChanged = engine.Ready, at.Add(6*time.Second) }
	for _, c := range []struct {
		name string
		sb   engine.Sandbox
		app  engine.Process
		runs []engine.HealRun
		past time.Duration // since the verdict
		want task
		due  time.Duration // after the verdict, where it waits
	}{
		{"just judged", with(func(sb *engine.Sandbox) { sb.Health, sb.HealthChanged = engine.Ready, at.Add(-time.Hour) }), before, nil, 0, restartNow, 0},
		{"just judged, and it answered meanwhile", with(ready), before, nil, 7 * time.Second, restartNow, 0},
		{"started", long, after, nil, 5 * time.Second, restartWait, 64 * time.Second},
		{"healthy", with(ready), after, nil, 7 * time.Second, restartDone, 0},
		{"was ready before", with(func(sb *engine.Sandbox) { sb.Health, sb.HealthChanged = engine.Ready, at.Add(-time.Hour) }), after, nil, 7 * time.Second, restartWait, 64 * time.Second},
		{"its time is over", long, after, nil, 64 * time.Second, restartFails, 0},
		{"it has longer than that to start", with(func(sb *engine.Sandbox) { sb.Spec.App.StartTimeout = engine.Duration(2 * time.Minute) }), after, nil, 64 * time.Second, restartWait, 124 * time.Second},
		{"nothing to probe", with(func(sb *engine.Sandbox) {
			sb.Health, sb.Spec.App.Health, sb.HealthChanged = engine.Unknown, "", at.Add(14*time.Second)
		}), after, nil, 15 * time.Second, restartDone, 0},
		{"not heard of", with(func(sb *engine.Sandbox) { sb.Health = engine.Unknown }), after, nil, 15 * time.Second, restartWait, 64 * time.Second},
		{"it went down before", long, down, nil, 5 * time.Second, restartWait, 60 * time.Second},
		{"it went down before, and stays so", long, down, nil, time.Minute, restartFails, 0},
		{"the engine restarted", with(func(sb *engine.Sandbox) { sb.State = engine.Warming }), before, nil, time.Hour, restartWait, time.Hour + time.Minute},
		{"a run took it up", long, after, []engine.HealRun{{Started: at.Add(time.Second)}}, time.Hour, restartDone, 0},
		{"a run before it", long, after, []engine.HealRun{{Started: at.Add(-time.Second)}}, time.Hour, restartFails, 0},
		{"being healed", with(func(sb *engine.Sandbox) { sb.Health = engine.Healing }), before, nil, 0, restartDone, 0},
		{"given up", with(func(sb *engine.Sandbox) { sb.Health = engine.Broken }), after, nil, time.Hour, restartDone, 0},
		{"stopped", with(func(sb *engine.Sandbox) { sb.Wanted = engine.Down }), before, nil, 0, restartDone, 0},
		{"maintenance", with(func(sb *engine.Sandbox) { sb.Maintenance.On = true }), before, nil, 0, restartDone, 0},
	} {
		got, due, _ := progress(at.Add(c.past), Policy{}, at, c.sb, c.app, c.runs)
		if got != c.want || got == restartWait && !due.Equal(at.Add(c.due)) {
			t.Errorf("%s: %d, due after %s; want %d after %s", c.name, got, due.Sub(at), c.want, c.due)
		}
	}
}
