package healer

import "sbx/engine"

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
// and where each is now.
func plan(p Policy, open []engine.HealRun, at map[engine.RunID]lane, heldBoxes map[engine.SandboxID]bool) []start {
	free := map[lane]int{playbooks: p.PlaybookRuns, model: p.MaxModelRuns}
	for _, l := range at {
		free[l]--
	}
	var starts []start
	for _, r := range open {
		var to lane
		switch at[r.ID] {
		case nowhere:
			if r.State != engine.RunQueued || r.Outcome != "" || heldBoxes[r.Sandbox] {
				continue
			}
			to = playbooks
		case inLine:
			to = model
		default:
			continue
		}
		if free[to] > 0 {
			free[to]--
			starts = append(starts, start{r, to})
		}
	}
	return starts
}
