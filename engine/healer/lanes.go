package healer

import (
	"context"
	"sync"

	"sbx/engine"
	"sbx/store"
)

// lanes knows which runs are at work, and where. Which enter a lane is decided
// by plan from the rows; this is where the decision is carried out.
type lanes struct {
	wake chan struct{} // holds one: something may have changed

	mu     sync.Mutex
	active map[engine.RunID]*active
	held   map[engine.SandboxID]bool // being saved or restarted: no run starts on them
}

// active is a run that a goroutine works on.
type active struct {
	run     engine.RunID
	sandbox engine.SandboxID
	lane    lane
	granted chan struct{} // closed when it may enter the model lane
	cut     context.CancelCauseFunc
}

func newLanes() *lanes {
	return &lanes{
		wake:   make(chan struct{}, 1),
		active: map[engine.RunID]*active{},
		held:   map[engine.SandboxID]bool{},
	}
}

// nudge has the rows looked at again.
func (l *lanes) nudge() {
	select {
	case l.wake <- struct{}{}:
	default: // somebody nudged already
	}
}

// of is the run at work on a sandbox; nil if there is none.
func (l *lanes) of(id engine.SandboxID) *active {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.active {
		if a.sandbox == id {
			return a
		}
	}
	return nil
}

// hold keeps runs from starting on a sandbox until release; ok is false if one
// is at work, or somebody else holds it.
func (l *lanes) hold(id engine.SandboxID) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.active {
		if a.sandbox == id {
			return nil, false
		}
	}
	if l.held[id] {
		return nil, false
	}
	l.held[id] = true
	return func() {
		l.mu.Lock()
		delete(l.held, id)
		l.mu.Unlock()
		l.nudge()
	}, true
}

// enter plans once and returns the runs to begin with; those in line are let
// into the model lane.
func (l *lanes) enter(p Policy, open []engine.HealRun) []engine.HealRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := make(map[engine.RunID]lane, len(l.active))
	for id, a := range l.active {
		at[id] = a.lane
	}
	var begin []engine.HealRun
	for _, s := range plan(p, open, at, l.held) {
		if s.lane == model {
			a := l.active[s.run.ID]
			a.lane = model
			close(a.granted)
			continue
		}
		l.active[s.run.ID] = &active{
			run: s.run.ID, sandbox: s.run.Sandbox, lane: s.lane, granted: make(chan struct{}),
			cut: func(error) {}, // until its goroutine is there
		}
		begin = append(begin, s.run)
	}
	return begin
}

// begin hands a run's entry to its goroutine.
func (l *lanes) begin(id engine.RunID, cut context.CancelCauseFunc) *active {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := *l.active[id]
	a.cut = cut
	l.active[id] = &a
	return &a
}

// waitForModel leaves the playbook lane and waits for a place in the other.
func (l *lanes) waitForModel(ctx context.Context, id engine.RunID) error {
	l.mu.Lock()
	a := l.active[id]
	a.lane = inLine
	l.mu.Unlock()
	l.nudge()
	select {
	case <-a.granted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave frees a run's place.
func (l *lanes) leave(id engine.RunID) {
	l.mu.Lock()
	delete(l.active, id)
	l.mu.Unlock()
	l.nudge()
}

// startRuns starts queued runs as their lanes have room, until ctx ends. It is
// level-triggered: it reads the open rows whenever something may have changed.
func (l *loop) startRuns(ctx context.Context, begin func(engine.HealRun)) error {
	l.lanes.nudge()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.lanes.wake: // before the read, so that no change slips between
		}
		if err := l.triage(ctx); err != nil {
			return err
		}
		var open []engine.HealRun
		err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
			open, err = tx.OpenRuns()
			return err
		})
		if err != nil {
			return err
		}
		for _, run := range l.lanes.enter(l.p, open) {
			begin(run)
		}
	}
}
