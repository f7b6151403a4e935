package store

import (
	"context"

	"sbx/engine"
)

// Snapshot is everything at one position, read in one transaction. What the
// engine says of itself (About) is left for the engine.
func (s *Store) Snapshot(ctx context.Context) (*engine.Snapshot, error) {
	var snap *engine.Snapshot
	err := s.View(ctx, func(tx *Tx) error {
		p, err := tx.position()
		if err != nil {
			return err
		}
		snap = engine.NewSnapshot(p)
		for _, read := range []func(*engine.Snapshot) error{tx.snapSandboxes, tx.snapProcesses, tx.snapRuns, tx.snapSignals, tx.snapIncidents, tx.snapSessions} {
			if err := read(snap); err != nil {
				return err
			}
		}
		return nil
	})
	return snap, err
}

func (tx *Tx) snapSandboxes(s *engine.Snapshot) error {
	list, err := tx.Sandboxes()
	for _, sb := range list {
		s.Sandboxes[sb.ID] = sb
	}
	return err
}

func (tx *Tx) snapProcesses(s *engine.Snapshot) error {
	list, err := bodies[engine.Process](tx, "SELECT body FROM processes WHERE held = 1", nil)
	for _, p := range list {
		s.Processes[p.ID] = p
	}
	return err
}

// latestRuns are the newest run of each sandbox.
const latestRuns = "SELECT max(num) FROM runs GROUP BY sandbox"

func (tx *Tx) snapRuns(s *engine.Snapshot) error {
	runs, err := bodies[engine.HealRun](tx, "SELECT body FROM runs WHERE num IN ("+latestRuns+")", nil)
	if err != nil {
		return err
	}
	for _, r := range runs {
		s.Runs[r.Sandbox] = r
	}
	attempts, err := bodies[engine.Attempt](tx, `SELECT attempts.body FROM attempts JOIN runs ON runs.id = attempts.run
		WHERE runs.num IN (`+latestRuns+`) ORDER BY attempts.rowid`, nil)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		s.Attempts[a.Sandbox] = append(s.Attempts[a.Sandbox], a)
	}
	steps, err := bodies[engine.Step](tx, `SELECT steps.body FROM steps JOIN runs ON runs.id = steps.run
		WHERE runs.open = 1 AND runs.num IN (`+latestRuns+`) ORDER BY steps.rowid`, nil)
	for _, st := range steps {
		s.Steps[st.Sandbox] = append(s.Steps[st.Sandbox], st)
	}
	return err
}

func (tx *Tx) snapSignals(s *engine.Snapshot) error {
	list, err := bodies[engine.Signal](tx,
		"SELECT body FROM signals WHERE id IN (SELECT max(id) FROM signals GROUP BY sandbox)", nil)
	for _, sig := range list {
		s.Signals[sig.Sandbox] = sig
	}
	return err
}

func (tx *Tx) snapSessions(s *engine.Snapshot) error {
	list, err := tx.Sessions()
	for _, ss := range list {
		s.Sessions[ss.ID] = ss
	}
	return err
}
