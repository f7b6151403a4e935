package pool

import (
	"testing"

	"sbx/engine"
)

func TestPlanSaysWhatASandboxNeedsNext(t *testing.T) {
	app := func(s engine.ProcessState) engine.Process {
		return engine.Process{Kind: engine.Supervised, State: s}
	}
	command := func(s engine.ProcessState) engine.Process {
		return engine.Process{Kind: engine.Spawned, State: s}
	}
	for _, c := range []struct {
		name   string
		wanted engine.Wanted
		state  engine.State
		health engine.Health
		procs  []engine.Process
		want   step
	}{
		{"wanted up and warming", engine.Up, engine.Warming, engine.Unknown, nil, boot},
		{"wanted up and cold: an action resumes it", engine.Up, engine.Cold, engine.Unknown, nil, nothing},
		{"up and idle", engine.Up, engine.Waiting, engine.Ready, []engine.Process{app(engine.ProcessRunning)}, nothing},
		{"a command runs", engine.Up, engine.Waiting, engine.Ready, []engine.Process{command(engine.ProcessRunning)}, begin},
		{"a command goes on", engine.Up, engine.Running, engine.Ready, []engine.Process{command(engine.ProcessStarting)}, nothing},
		{"the last command ended", engine.Up, engine.Running, engine.Ready, []engine.Process{command(engine.ProcessExited)}, rest},
		{"wanted down, processes alive", engine.Down, engine.Waiting, engine.Ready, []engine.Process{app(engine.ProcessStopping)}, nothing},
		{"wanted down, between two starts", engine.Down, engine.Waiting, engine.Ready, []engine.Process{app(engine.ProcessBackoff)}, nothing},
		{"wanted down, processes down", engine.Down, engine.Waiting, engine.Ready, []engine.Process{app(engine.ProcessStopped)}, settle},
		{"wanted down before it was booted", engine.Down, engine.Warming, engine.Unknown, nil, settle},
		{"down already", engine.Down, engine.Cold, engine.Unknown, nil, nothing},
		{"to be removed, processes alive", engine.Removed, engine.Waiting, engine.Ready, []engine.Process{app(engine.ProcessRunning)}, nothing},
		{"to be removed, processes down", engine.Removed, engine.Waiting, engine.Ready, []engine.Process{app(engine.ProcessFailed)}, remove},
		{"to be removed and cold", engine.Removed, engine.Cold, engine.Unknown, nil, remove},
		{"being healed: not booted", engine.Up, engine.Warming, engine.Healing, nil, nothing},
		{"being healed: not settled", engine.Down, engine.Waiting, engine.Healing, nil, nothing},
		{"being healed: not removed", engine.Removed, engine.Waiting, engine.Healing, nil, nothing},
		{"being healed, and a command runs", engine.Up, engine.Waiting, engine.Healing, []engine.Process{command(engine.ProcessRunning)}, begin},
	} {
		t.Run(c.name, func(t *testing.T) {
			sb := engine.Sandbox{Wanted: c.wanted, State: c.state, Health: c.health}
			if got := plan(sb, c.procs); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
