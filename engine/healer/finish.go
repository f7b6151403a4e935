package healer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sbx/engine"
	"sbx/store"
)

// end closes a run: what it fixed is committed, or what it changed is undone.
// why is set if it was cut.
func (h *heal) end(ctx context.Context, end ending, why *cutError) error {
	h.ending = true
	done, err := h.files(ctx, end, why)
	switch {
	case ctx.Err() != nil || errors.Is(err, errStore):
		return err
	case err != nil: // a workspace that can't be worked on must not keep the run open
		done.trouble = err.Error()
	}
	if err := h.endAttempt(ctx, end.outcome, "", end.summary); err != nil {
		return err
	}
	if err := h.close(ctx, end, done); err != nil {
		return err
	}
	h.startAfter(ctx, done)
	return nil
}

// startAfter starts the app of a run that was cut, once its row is closed: how
// that start goes must not be taken for a part of the run. If it can't be
// started, the supervisor says so by a signal.
func (h *heal) startAfter(ctx context.Context, done result) {
	if !done.startAfter {
		return
	}
	if err := h.start(ctx); err != nil && ctx.Err() == nil {
		h.Log.Warn("the app was not started after its heal was cut", "sandbox", h.sb.ID, "run", h.id, "err", err)
	}
}

// files does what is to be done in the workspace, in bounded time.
func (h *heal) files(ctx context.Context, end ending, why *cutError) (result, error) {
	if h.run.Plan {
		return result{}, nil // it has changed nothing
	}
	ctx, cancel := context.WithTimeout(ctx, h.p.UndoTimeout+h.p.InstallTimeout)
	defer cancel()
	if end.outcome == engine.Healed {
		return h.accept(ctx, end)
	}
	return h.undo(ctx, why)
}

// result is what became of the files that a run changed.
type result struct {
	changed, kept        []string
	commit, notCommitted string
	trouble              string // what could not be undone
	startAfter           bool   // the app is to be started when the run is closed
}

func (h *heal) close(ctx context.Context, end ending, done result) error {
	if done.trouble != "" {
		end.summary = strings.TrimSuffix(end.summary, ".") + ". " + done.trouble
	}
	if len(done.kept) > 0 {
		end.summary += ". Left as somebody changed it meanwhile: " + list(done.kept)
	}
	return h.writeEnd(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		if err := failRunning(tx, *run); err != nil {
			return err
		}
		if err := dropMoments(tx, *run); err != nil {
			return err
		}
		run.State, run.Outcome, run.Doing, run.Ended = engine.RunEnded, end.outcome, "", tx.Now
		run.Summary, run.Next, run.FixedBy = h.words(end.summary), h.words(end.next), end.fixedBy
		run.Changed, run.KeptByUser = done.changed, done.kept
		run.Commit, run.NotCommitted = done.commit, h.words(done.notCommitted)
		if run.Plan {
			return h.raiseWaiting(tx)
		}
		switch end.outcome {
		case engine.Healed:
			return errors.Join(fireHealth(tx, run.Sandbox, engine.Repaired, ""), h.raiseIfDown(tx))
		case engine.Cancelled:
			err := h.lookAgain(tx, run, done.startAfter)
			if done.startAfter {
				return err
			}
			return errors.Join(err, h.raiseIfDown(tx))
		case engine.Interrupted:
			return h.lookAgain(tx, run, done.startAfter)
		}
		return fireHealth(tx, run.Sandbox, engine.GaveUp, line(h.redact(end.reason), maxReason))
	})
}

// raiseIfDown raises an exit that came after the last look and before the end:
// the supervisor's own signal was judged while the run was open, so it led to
// nothing, and there will be no other.
func (h *heal) raiseIfDown(tx *store.Tx) error {
	sb, err := tx.Sandbox(h.sb.ID)
	if err != nil || !wantedUp(sb) {
		return ignoreGone(err)
	}
	all, err := tx.ProcessesOf(sb.ID)
	if err != nil {
		return err
	}
	for _, p := range all {
		if givenUp(p) {
			return raiseDown(tx, p, "as its heal ended")
		}
	}
	return nil
}

// givenUp reports whether a process should run, and its supervisor starts it
// no more.
func givenUp(p engine.Process) bool {
	return p.Kind == engine.Supervised && p.Wanted == engine.WantRunning && p.State == engine.ProcessFailed
}

// raiseDown raises the exit of a process that was given up once more.
func raiseDown(tx *store.Tx, p engine.Process, when string) error {
	_, err := tx.RaiseSignal(engine.Signal{
		Sandbox: p.Sandbox, Process: p.ID, Kind: engine.ExitSignal, Exit: p.Exit, At: tx.Now,
		Observed: fmt.Sprintf("%s is down %s: %s", p.Name, when, downReason(p)),
	})
	return err
}

// lookAgain leaves a cut run's sandbox to the detectors: it is starting if the
// app is started again, else unknown.
func (h *heal) lookAgain(tx *store.Tx, run *engine.HealRun, starts bool) error {
	if err := fireHealth(tx, run.Sandbox, engine.Cut, run.Summary); err != nil || !starts {
		return err
	}
	return fireHealth(tx, run.Sandbox, engine.Restarted, "started again after its heal was cut")
}

// failRunning ends the steps that a cut left running.
func failRunning(tx *store.Tx, run engine.HealRun) error {
	attempts, err := tx.Attempts(run.ID)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		steps, err := tx.Steps(run.ID, a.Number)
		if err != nil {
			return err
		}
		for _, st := range steps {
			if st.State != engine.StepRunning {
				continue
			}
			st.State, st.Ended = engine.StepFailed, tx.Now
			if st.Text == "" {
				st.Text = "cut"
			}
			if err := tx.PutStep(st); err != nil {
				return err
			}
		}
	}
	return nil
}

// undo puts back what the run changed and starts the app again, so that what
// runs is what is on disk. Trouble is told, and ends nothing.
func (h *heal) undo(ctx context.Context, why *cutError) (result, error) {
	if h.attempt.Run == "" {
		return result{}, nil // it never began
	}
	var done result
	var back []string
	if h.track != nil {
		var err error
		back, done.kept, err = h.track.undo(ctx)
		switch {
		case ctx.Err() != nil:
			return done, context.Cause(ctx)
		case err != nil:
			done.trouble = "Not everything could be rolled back: " + err.Error() +
				" (the workspace before the run is checkpoint " + string(h.run.Checkpoint) + ")"
		}
		if err := h.noteUndone(ctx, back, done); err != nil {
			return done, err
		}
	}
	if why != nil && why.down {
		return done, nil
	}
	if h.installed && len(back) > 0 && h.sb.Spec.App.Install != "" {
		if err := h.reinstall(ctx); err != nil {
			return done, err
		}
	}
	now, err := h.processes(ctx)
	if err != nil {
		return done, err
	}
	if !h.acted && len(back) == 0 && allRunning(now) {
		return done, nil
	}
	if why != nil {
		done.startAfter = true
		return done, nil
	}
	if err := h.start(ctx); err != nil {
		return done, h.note(ctx, "restart", engine.StepFailed, "the app could not be started again: "+err.Error())
	}
	return done, nil
}

func (h *heal) noteUndone(ctx context.Context, back []string, done result) error {
	if len(back) == 0 && len(done.kept) == 0 && done.trouble == "" {
		return nil
	}
	text, state := "put back "+list(back), engine.StepOK
	if len(back) == 0 {
		text = "nothing to put back"
	}
	if len(done.kept) > 0 {
		text += "; left as somebody changed it meanwhile: " + list(done.kept)
	}
	if done.trouble != "" {
		text, state = text+"; "+done.trouble, engine.StepFailed
	}
	return h.note(ctx, "rollback", state, text)
}

// reinstall brings dependencies back to what the rolled back files name.
func (h *heal) reinstall(ctx context.Context) error {
	err := (&bench{h: h}).Install(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return h.note(ctx, "install", engine.StepFailed, "dependencies could not be installed again: "+err.Error())
	}
	return h.note(ctx, "install", engine.StepOK, "dependencies were installed again, after the rollback")
}

// summary says what was seen and tried, and why that was not enough.
func (h *heal) summary(why string) string {
	parts := []string{"Seen: " + h.run.Cause}
	if len(h.seen) > 0 {
		parts = append(parts, "Tried: "+strings.Join(h.seen, "; "))
	} else {
		parts = append(parts, "No playbook fits")
	}
	text := strings.Join(parts, ". ") + ". " + upperFirst(why)
	if h.good.ID != "" {
		text += fmt.Sprintf(". The last good state is checkpoint %s of %s", engine.Short(h.good.ID), h.good.Created.Format("2006-01-02 15:04"))
	}
	return text
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// list names paths, the first few of many.
func list(paths []string) string {
	const most = 5
	if len(paths) > most {
		return strings.Join(paths[:most], ", ") + fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return strings.Join(paths, ", ")
}

func sortedAll(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
