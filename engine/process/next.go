package process

import "sbx/engine"

// step is what a row needs, of a process that has no actor or whose actor is
// between two lives.
type step string

// The steps.
const (
	rest   step = "rest"   // nothing
	start  step = "start"  // it is to run and doesn't
	settle step = "settle" // it is not to run, and its row doesn't say so yet
)

// outlook is what next must know beside the row.
type outlook struct {
	up      bool // the sandbox has a box
	renewed bool // it was wanted otherwise since it failed
	resume  bool // it failed while the healer was at work, and the healer is done
	// inherited: it lives, or has an end to be told, from before this engine
	inherited bool
}

// next says what a row needs. It is pure.
//
// What failed stays failed until somebody wants it anew: else giving up would
// mean nothing.
func next(p engine.Process, o outlook) step {
	switch {
	case o.inherited && !p.State.Over():
		return start
	case p.Once():
		return nextSpawned(p, o)
	case p.Wanted == engine.WantStopped && p.State == engine.ProcessStopped:
		return rest
	case p.Wanted == engine.WantStopped:
		return settle
	case !o.up:
		return rest
	case p.Wanted == engine.WantRestart || p.State != engine.ProcessFailed:
		return start
	case o.renewed || o.resume:
		return start
	}
	return rest
}

func nextSpawned(p engine.Process, o outlook) step {
	switch {
	case p.State.Over():
		return rest
	case p.Wanted == engine.WantStopped, p.Starts > 0: // a command runs once
		return settle
	case o.up:
		return start
	}
	return rest
}

// outlook gathers what next must know. The caller holds mu.
func (s *Supervisor) outlook(p engine.Process, renewed bool) outlook {
	c := s.sandboxes[p.Sandbox]
	_, held := s.held[p.ID]
	return outlook{up: c.up, renewed: renewed, resume: held && !c.healing, inherited: s.inherited[p.ID]}
}
