package healer

import (
	"cmp"
	"slices"

	"sbx/engine"
)

// lane is where an open run is. Playbooks are quick and free, so they never
// wait behind conversations with a model.
type lane int

const (
	nowhere   lane = iota // a row that nothing works on
	playbooks             // in the playbook lane
	inLine                // done with playbooks, waits for a place in the model lane
	model                 // in the model lane
)

// start is a run that may enter a lane.
type start struct {
	run  engine.HealRun
	lane lane
}

// plan says which runs enter which lane. It is pure: open runs, oldest first,
// and where each is now. No run begins without a fingerprint, since it may be
// one that an incident holds.
func plan(p Policy, open []engine.HealRun, at map[engine.RunID]lane, heldBoxes map[engine.SandboxID]bool) []start {
	free := map[lane]int{playbooks: p.PlaybookRuns, model: p.MaxModelRuns}
	for _, l := range at {
		free[l]--
	}
	var starts []start
	for _, r := range inTurn(open, at) {
		if free[model] > 0 {
			free[model]--
			starts = append(starts, start{r, model})
		}
	}
	for _, r := range open {
		ready := at[r.ID] == nowhere && r.State == engine.RunQueued && r.Outcome == "" && r.Fingerprint != "" && r.Held == ""
		if ready && !heldBoxes[r.Sandbox] && free[playbooks] > 0 {
			free[playbooks]--
			starts = append(starts, start{r, playbooks})
		}
	}
	return starts
}

// inTurn are the runs that wait for the model lane, in the order in which they
// may enter: the oldest first, but an incident of thirty doesn't keep another
// sandbox waiting until all of its own are healed. Each round takes one of
// every incident, and every run that is of none.
func inTurn(open []engine.HealRun, at map[engine.RunID]lane) []engine.HealRun {
	taken := map[engine.IncidentID]int{} // places in the lane, or before it in line
	for _, r := range open {
		if at[r.ID] == model && r.Incident != "" {
			taken[r.Incident]++
		}
	}
	type turn struct {
		run   engine.HealRun
		round int
	}
	var line []turn
	for _, r := range open {
		if at[r.ID] != inLine || r.Held != "" {
			continue
		}
		t := turn{run: r}
		if r.Incident != "" {
			t.round = taken[r.Incident]
			taken[r.Incident]++
		}
		line = append(line, t)
	}
	slices.SortStableFunc(line, func(a, b turn) int { return cmp.Compare(a.round, b.round) })
	runs := make([]engine.HealRun, len(line))
	for i, t := range line {
		runs[i] = t.run
	}
	return runs
}
