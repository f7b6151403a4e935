package main

import (
	"context"
	"time"

	"sbx/engine"
)

// heldWithin is how long a wait for a sandbox bears that its heal is held by
// an incident: another one's is tried first, and may wait for its model long.
const heldWithin = time.Minute

// holdWatch ends a wait for a sandbox whose heal stays held.
type holdWatch struct {
	cancel context.CancelCauseFunc
	run    engine.RunID
	timer  *time.Timer
}

// look is told the sandbox's latest run with each change.
func (h *holdWatch) look(sb engine.Sandbox, run engine.HealRun) {
	if !run.Open() || run.Held == "" {
		h.free()
		return
	}
	if h.timer != nil && h.run == run.ID {
		return
	}
	h.free()
	h.run = run.ID
	h.timer = time.AfterFunc(heldWithin, func() {
		h.cancel(engine.Errorf(engine.Conflict, "%s failed, and its heal is %s", sb.Name, cleanLine(run.Held)).
			WithHint("see the incident with: sbx incidents show %s; heal it by itself with: sbx heal --cancel %s; then: sbx heal %s",
				engine.Short(run.Incident), sb.Name, sb.Name))
	})
}

func (h *holdWatch) free() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}
