package healer

import (
	"context"

	"sbx/engine"
	"sbx/store"
)

// seenFault is what a run's fault looks like.
type seenFault struct {
	run          engine.RunID
	print, title string
}

// triage gives each new run its fingerprint, makes incidents of those that are
// alike, and takes open incidents a step further. No run begins before it has
// been through here. What it decides, it decides from rows in one transaction.
func (l *loop) triage(ctx context.Context) error {
	var fresh []engine.HealRun
	var prior []engine.Incident
	moved := false
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		open, err := tx.OpenRuns()
		if err != nil {
			return err
		}
		for _, r := range open {
			if r.Fingerprint == "" && r.Outcome == "" {
				fresh = append(fresh, r)
			}
		}
		if prior, err = tx.OpenIncidents(); err != nil {
			return err
		}
		moved, err = l.wouldMove(tx, prior)
		return err
	})
	l.incidents.Store(len(prior) > 0)
	if err != nil || len(fresh) == 0 && !moved {
		return err
	}
	faults := make([]seenFault, 0, len(fresh))
	for _, r := range fresh {
		f, err := l.look(ctx, r)
		if err != nil {
			return err
		}
		faults = append(faults, f)
	}
	return l.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By = actor
		open, err := tx.OpenIncidents()
		if err != nil {
			return err
		}
		for _, f := range faults {
			if open, err = l.admitRun(tx, open, f); err != nil {
				return err
			}
		}
		l.incidents.Store(len(open) > 0)
		for _, i := range open {
			if err := l.move(tx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// look reads what a run's process wrote since its last start.
func (l *loop) look(ctx context.Context, run engine.HealRun) (seenFault, error) {
	var sig engine.Signal
	var proc engine.Process
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if sig, err = signalOf(tx, run); err != nil {
			return err
		}
		proc, _, err = appOf(tx, run.Sandbox, engine.AppName)
		if err != nil || sig.Process == "" || sig.Process == proc.ID {
			return err
		}
		if other, err := tx.Process(sig.Process); err == nil {
			proc = other
		} else if engine.AsCode(err) != engine.NotFound {
			return err
		}
		return nil
	})
	if err != nil {
		return seenFault{}, ignoreGone(err)
	}
	log := ""
	if proc.ID != "" && l.LogTail != nil {
		log, err = l.LogTail(ctx, proc.ID, engine.LogPosition(proc.LogStart), logRead/4)
		if ctx.Err() != nil {
			return seenFault{}, context.Cause(ctx)
		}
		if err != nil { // then it can't be told from others, and is healed by itself
			l.Log.Debug("a fingerprint without the log", "run", run.ID, "err", err)
		}
	}
	exit := sig.Exit
	if exit == nil {
		exit = proc.Exit
	}
	f := seenFault{run: run.ID}
	f.print, f.title = fingerprint(sig, exit, l.redact(log))
	return f, nil
}

// admitRun writes a run's fingerprint, and the incident that it makes or joins
// into the list of the open ones, which its caller writes.
func (l *loop) admitRun(tx *store.Tx, open []engine.Incident, f seenFault) ([]engine.Incident, error) {
	if f.run == "" {
		return open, nil // its sandbox is gone
	}
	run, err := tx.Run(f.run)
	if err != nil || !run.Open() || run.Fingerprint != "" {
		return open, ignoreGone(err)
	}
	run.Fingerprint = f.print
	sb, err := tx.Sandbox(run.Sandbox)
	if err != nil {
		return open, err
	}
	for n, i := range open {
		if i.Fingerprint == run.Fingerprint && byLoop(run) {
			run.Incident = i.ID
			open[n] = joined(i, run, sb.Name)
			return open, tx.PutRun(run)
		}
	}
	i, ok, err := l.gatherLike(tx, run, f.title)
	if ok {
		run.Incident = i.ID
		open = append(open, i)
	}
	if err != nil {
		return open, err
	}
	return open, tx.PutRun(run)
}

// gatherLike is the incident that a run makes together with those before it,
// if there are enough; those of them that are open know it from then on.
func (l *loop) gatherLike(tx *store.Tx, run engine.HealRun, title string) (engine.Incident, bool, error) {
	like, err := tx.RunsLike(run.Fingerprint, tx.Now.Add(-l.p.IncidentWindow))
	if err != nil {
		return engine.Incident{}, false, err
	}
	names := map[engine.SandboxID]string{}
	for _, r := range append(like, run) {
		sb, err := tx.Sandbox(r.Sandbox)
		if err != nil {
			return engine.Incident{}, false, err
		}
		names[r.Sandbox] = sb.Name
	}
	i, ok := gather(tx.Now, l.p, run, title, like, names)
	if !ok {
		return i, false, nil
	}
	for _, m := range i.Members {
		if m.Run == run.ID {
			continue
		}
		r, err := tx.Run(m.Run)
		if err != nil {
			return i, false, err
		}
		if !r.Open() {
			continue // it is told by the incident alone
		}
		r.Incident = i.ID
		if err := tx.PutRun(r); err != nil {
			return i, false, err
		}
	}
	return i, true, nil
}

// membersOf are the rows of an incident's members.
func membersOf(tx *store.Tx, i engine.Incident) ([]member, error) {
	list := make([]member, len(i.Members))
	for n, m := range i.Members {
		sb, err := tx.Sandbox(m.Sandbox)
		if err == nil {
			list[n].run, err = tx.Run(m.Run)
		}
		list[n].sb, list[n].gone = sb, engine.AsCode(err) == engine.NotFound
		if ignoreGone(err) != nil {
			return nil, err
		}
	}
	return list, nil
}

func (l *loop) wouldMove(tx *store.Tx, open []engine.Incident) (bool, error) {
	for _, i := range open {
		members, err := membersOf(tx, i)
		if err != nil {
			return false, err
		}
		if !same(advance(tx.Now, i, members), i) {
			return true, nil
		}
		for _, m := range members {
			if m.run.Open() && m.run.State == engine.RunQueued && i.State == engine.IncidentFailed {
				return true, nil
			}
		}
	}
	return false, nil
}

// move takes an incident a step further: it holds and frees its runs, and ends
// those that need not begin.
func (l *loop) move(tx *store.Tx, i engine.Incident) error {
	members, err := membersOf(tx, i)
	if err != nil {
		return err
	}
	i = advance(tx.Now, i, members)
	for _, m := range members {
		if m.gone || !m.run.Open() || m.run.Outcome != "" {
			continue
		}
		if i.State == engine.IncidentFailed && m.run.State == engine.RunQueued && byLoop(m.run) {
			if err := l.giveUpHeld(tx, i, m); err != nil {
				return err
			}
			continue
		}
		run := m.run
		run.Held = heldBy(i, run)
		if run.Held != "" || m.run.Held != "" {
			run.Doing = run.Held
		}
		if err := tx.PutRun(run); err != nil {
			return err
		}
	}
	return tx.PutIncident(i)
}

// giveUpHeld ends a run that never began: what it waited for did not work.
func (l *loop) giveUpHeld(tx *store.Tx, i engine.Incident, m member) error {
	run := m.run
	run.Held = "held by incident " + engine.Short(i.ID)
	run.State, run.Outcome, run.Doing, run.Ended = engine.RunEnded, engine.NotHealed, "", tx.Now
	run.Summary = run.Held + ": " + i.Reason
	run.Next = "see what was tried with: sbx incidents show " + engine.Short(i.ID) + "; heal it by itself with: sbx heal " + m.sb.Name
	if err := tx.PutRun(run); err != nil {
		return err
	}
	return fireHealth(tx, run.Sandbox, engine.GaveUp, line(run.Summary, maxReason))
}

// failedIncident says why a run must ask no model: the incident that it is of
// has had its try. "" if it may.
func (h *heal) failedIncident(ctx context.Context) (why string, err error) {
	err = h.Store.View(ctx, func(tx *store.Tx) error {
		run, err := tx.Run(h.id)
		if err != nil || run.Incident == "" || !byLoop(run) {
			return err
		}
		i, err := tx.Incident(run.Incident)
		if err == nil && i.State == engine.IncidentFailed && i.CanaryRun != h.id {
			why = "held by incident " + engine.Short(i.ID) + ": " + i.Reason
		}
		return err
	})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return why, err
}

func same(a, b engine.Incident) bool {
	if len(a.Members) != len(b.Members) || a.State != b.State || a.CanaryRun != b.CanaryRun || a.Reason != b.Reason {
		return false
	}
	for n := range a.Members {
		if a.Members[n] != b.Members[n] {
			return false
		}
	}
	return true
}
