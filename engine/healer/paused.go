package healer

import (
	"context"
	"time"

	"sbx/engine"
	"sbx/store"
)

// notePause schedules the end of a sandbox's maintenance, if it has one that
// is after since: what was over before was looked at then.
func (s *schedule) notePause(sb engine.Sandbox, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch until := sb.Maintenance.Until; {
	case !sb.Maintenance.On || until.IsZero():
		delete(s.due, sb.ID)
	case until.After(since):
		s.set(sb.ID, until)
	}
}

// endPauses looks at each sandbox whose maintenance is over, until ctx ends.
func (l *loop) endPauses(ctx context.Context) error {
	return l.pauses.follow(ctx, func(id engine.SandboxID) error {
		return l.Store.Update(ctx, func(tx *store.Tx) error {
			tx.By = actor
			return Resumed(tx, id)
		})
	})
}

// Resumed has a sandbox judged again whose maintenance is over. An exit that
// was ignored because of it is raised anew: the supervisor has given up, so
// there would be no other, and the app would be down for ever. What fails its
// probes, stalls or is short of something is noticed again without this.
func Resumed(tx *store.Tx, id engine.SandboxID) error {
	sb, err := tx.Sandbox(id)
	if err != nil || !wantedUp(sb) || sb.Maintenance.Active(tx.Now) ||
		sb.Health == engine.Healing || sb.Health == engine.Broken {
		return ignoreGone(err)
	}
	all, err := tx.ProcessesOf(id)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !givenUp(p) {
			continue
		}
		if was, err := ignored(tx, p); err != nil || !was {
			return err
		}
		return raiseDown(tx, p, "as its maintenance ended")
	}
	return nil
}

// ignored reports whether the last exit signal of a process led to nothing.
func ignored(tx *store.Tx, p engine.Process) (was bool, err error) {
	if p.Exit == nil {
		return false, nil
	}
	list, err := tx.Signals(p.Sandbox, p.Exit.At.Add(-time.Minute))
	for _, sig := range list {
		if sig.Process == p.ID && sig.Kind == engine.ExitSignal {
			was = sig.Verdict != nil && sig.Verdict.Action == engine.Ignore
		}
	}
	return was, err
}
