package healer

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sbx/engine"
	"sbx/store"
)

// recoverAtOnce is how many sandboxes are rolled back at the same time.
const recoverAtOnce = 4

// recover ends the runs that a stopped engine left open. Each is undone first:
// until its sandbox is no longer healing, nothing of it is started. It then
// fills in which sandboxes are to be judged again.
func (l *loop) recover(ctx context.Context) error {
	var open []engine.HealRun
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		open, err = tx.OpenRuns()
		return err
	})
	if err != nil {
		return err
	}
	g, each := errgroup.WithContext(ctx)
	g.SetLimit(recoverAtOnce)
	for _, run := range open {
		g.Go(func() error { return l.recoverRun(each, run) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return l.Store.Update(ctx, l.settle)
}

// recoverRun undoes and ends one run. What goes wrong with its workspace is
// written into the run and keeps no other from being recovered.
func (l *loop) recoverRun(ctx context.Context, run engine.HealRun) error {
	h := &heal{loop: l, id: run.ID, run: run, ending: true}
	var all []engine.Checkpoint
	var steps []engine.Step
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if h.sb, err = tx.Sandbox(run.Sandbox); err != nil {
			return err
		}
		if all, err = tx.Checkpoints(run.Sandbox); err != nil {
			return err
		}
		attempts, err := tx.Attempts(run.ID)
		if err != nil || len(attempts) == 0 {
			return err
		}
		h.attempt = attempts[len(attempts)-1]
		steps, err = tx.Steps(run.ID, h.attempt.Number)
		h.steps = len(steps)
		return err
	})
	if err != nil {
		return ignoreGone(err)
	}
	undoing, cancel := context.WithTimeout(ctx, l.p.UndoTimeout)
	defer cancel()
	done := result{commit: run.Commit, changed: run.Changed}
	if run.Commit == "" && !run.Plan {
		done = h.undoOpen(undoing, all, steps)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return h.closeInterrupted(ctx, done)
}

// undoOpen rolls back what the run had changed, told from everybody else's by
// its moments. Dependencies are not installed again here: what needs them fails
// in words that a playbook knows.
func (h *heal) undoOpen(ctx context.Context, all []engine.Checkpoint, steps []engine.Step) result {
	i := slices.IndexFunc(all, func(cp engine.Checkpoint) bool { return cp.ID == h.run.Checkpoint })
	if i < 0 {
		return result{} // it had changed nothing yet
	}
	var done result
	back, err := h.undoFrom(ctx, all, all[i].Tree, steps, &done)
	if err != nil {
		done.trouble = "Not everything could be rolled back: " + err.Error() +
			" (the workspace before the run is checkpoint " + string(h.run.Checkpoint) + ")"
	}
	if err := h.noteUndone(ctx, back, done); err != nil {
		h.Log.Warn("a rollback was not recorded as a step", "run", h.id, "err", err) // the run's end tells it too
	}
	// Only where Run ended and the engine did not: then the app may run with
	// what was just put back.
	done.startAfter = len(back) > 0 && wantedUp(h.sb) && h.sb.State != engine.Warming
	return done
}

func (h *heal) undoFrom(ctx context.Context, all []engine.Checkpoint, base string, steps []engine.Step, done *result) (back []string, err error) {
	if h.box, err = h.Box(ctx, h.sb.ID); err != nil {
		return nil, err
	}
	t := newTrack(h.box.Checkpoints(), base)
	for _, m := range momentsOf(all, h.id) {
		if _, err := t.advance(ctx, m); err != nil {
			return nil, err
		}
	}
	if name, arg, ok := cutCall(steps); ok { // what it did until the end is the run's
		now, err := t.saved.Save(ctx, "found")
		if err != nil {
			return nil, err
		}
		if _, err := t.advance(ctx, moment{call: true, own: ownArgument(name, arg), tree: now}); err != nil {
			return nil, err
		}
	}
	back, done.kept, err = t.undo(ctx)
	return back, err
}

// cutCall is the call that was under way when the engine ended.
func cutCall(steps []engine.Step) (name, argument string, ok bool) {
	for _, st := range steps {
		if st.State == engine.StepRunning && (st.Kind == engine.StepTool || st.Kind == engine.StepPlaybook) {
			return st.Name, st.Argument, true
		}
	}
	return "", "", false
}

// ownArgument is own for a call of which only the step is left. Looking at
// something changes nothing, so then nothing is the run's.
func ownArgument(name, argument string) string {
	switch name {
	case "write", "edit":
		return argument
	case "read", "list", "search", "probe", "restart", "wait":
		return "."
	}
	return ""
}

func (h *heal) closeInterrupted(ctx context.Context, done result) error {
	outcome, summary := engine.Interrupted, "the engine stopped in it; what it had changed was rolled back"
	if done.commit != "" {
		summary = "the engine stopped as it ended; its fix was verified and committed before"
	}
	if h.run.Plan {
		summary = "the engine stopped in it; a plan changes nothing"
	}
	if h.run.Outcome != "" { // cancelled, and the engine stopped before that was done
		outcome, summary = h.run.Outcome, h.run.Summary
	}
	err := h.writeEnd(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		attempts, err := tx.Attempts(run.ID)
		if err != nil {
			return err
		}
		for _, a := range attempts {
			if a.Outcome == "" {
				a.Outcome, a.Summary, a.Ended = outcome, summary, tx.Now
				if err := tx.PutAttempt(a); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return ignoreGone(err)
	}
	if err := h.close(ctx, ending{outcome: outcome, summary: summary}, done); err != nil {
		return err
	}
	h.startAfter(ctx, done)
	return nil
}

// settle frees sandboxes that are healing without a run, finds those whose
// last run was cut by an engine's end, and schedules good checkpoints.
func (l *loop) settle(tx *store.Tx) error {
	tx.By = actor
	l.cut = interrupted{}
	all, err := tx.Sandboxes()
	if err != nil {
		return err
	}
	for _, sb := range all {
		l.good.noteHealth(sb, l.p.GoodAfter)
		l.pauses.notePause(sb, time.Time{})
		if err := l.settleOne(tx, sb); err != nil {
			return err
		}
		if err := l.recallRestart(tx, sb); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) settleOne(tx *store.Tx, sb engine.Sandbox) error {
	if _, open, err := tx.OpenRun(sb.ID); err != nil || open {
		return err
	}
	if sb.Health == engine.Healing {
		if err := fireHealth(tx, sb.ID, engine.Cut, "its heal run is gone"); err != nil {
			return err
		}
	}
	if sb.Run == "" {
		return nil
	}
	run, err := tx.Run(sb.Run)
	if err != nil {
		return ignoreGone(err)
	}
	if run.Outcome == engine.Interrupted {
		l.cut[sb.ID] = run
	}
	return nil
}
