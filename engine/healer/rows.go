package healer

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"sbx/engine"
	"sbx/store"
)

// cutError ends a run from outside: an operator, a stop, a removal.
type cutError struct {
	why string
	// gone: there is no row left to write to, nor a workspace to undo in.
	gone bool
	// down: the sandbox is not to run, so the app isn't started again.
	down bool
}

func (e *cutError) Error() string { return e.why }

// errStore marks failures of the store: where nothing can be written down,
// nothing must be done either, and the whole Run ends.
var errStore = errors.New("the store failed")

// standing is a run's row if the run may go on, else a cutError.
func standing(tx *store.Tx, id engine.RunID) (engine.HealRun, error) {
	run, err := tx.Run(id)
	if engine.AsCode(err) == engine.NotFound || err == nil && !run.Open() {
		return run, &cutError{why: "the run is gone", gone: true}
	}
	if err != nil {
		return run, err
	}
	sb, err := tx.Sandbox(run.Sandbox)
	switch {
	case engine.AsCode(err) == engine.NotFound:
		return run, &cutError{why: "the sandbox was removed", gone: true}
	case err != nil:
		return run, err
	case !wantedUp(sb):
		return run, &cutError{why: "cut: the sandbox is " + downWords(sb), down: true}
	case run.Outcome != "":
		return run, &cutError{why: run.Summary}
	}
	return run, nil
}

// write changes the run's row and what belongs to it, if the run still stands.
func (h *heal) write(ctx context.Context, fn func(tx *store.Tx, run *engine.HealRun) error) error {
	return h.update(ctx, standing, fn)
}

// writeEnd is write for a run that is being ended: being cut is no obstacle.
func (h *heal) writeEnd(ctx context.Context, fn func(tx *store.Tx, run *engine.HealRun) error) error {
	return h.update(ctx, (*store.Tx).Run, fn)
}

func (h *heal) update(ctx context.Context, row func(*store.Tx, engine.RunID) (engine.HealRun, error), fn func(*store.Tx, *engine.HealRun) error) error {
	var run engine.HealRun
	err := h.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By = actor
		before, err := row(tx, h.id)
		if err != nil {
			return err
		}
		run = before
		if err := fn(tx, &run); err != nil {
			return err
		}
		if reflect.DeepEqual(before, run) {
			return nil
		}
		return tx.PutRun(run)
	})
	switch cut := (*cutError)(nil); {
	case err == nil:
		h.run = run
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &cut), engine.AsCode(err) == engine.NotFound:
		return err
	}
	return fmt.Errorf("%w: run %s: %w", errStore, h.id, err)
}

// record writes a step: a new one (Number 0) gets the next number of the
// attempt. The run's row says what is at work.
func (h *heal) record(ctx context.Context, st engine.Step) (engine.Step, error) {
	write := h.write
	if h.ending {
		write = h.writeEnd
	}
	st.Run, st.Sandbox, st.Attempt = h.id, h.sb.ID, h.attempt.Number
	if st.Number == 0 {
		h.steps++
		st.Number = h.steps
	}
	st.Argument = line(h.redact(st.Argument), maxArgument)
	st.Text = bound(clean(h.redact(st.Text)), maxStepText)
	st.Diff = bound(h.redact(st.Diff), maxStepDiff)
	err := write(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		if st.Started.IsZero() {
			st.Started = tx.Now
		}
		switch st.State {
		case engine.StepRunning:
			run.Doing = doing(st)
		default:
			run.Doing = ""
			if st.Ended.IsZero() {
				st.Ended = tx.Now
			}
			if st.Kind == engine.StepTool {
				h.attempt.Spent.Steps++
				run.Spent.Steps++
				if err := tx.Use(h.sb.ID, engine.Use{Steps: 1}); err != nil {
					return err
				}
			}
		}
		return tx.PutStep(st)
	})
	return st, err
}

func doing(st engine.Step) string {
	if st.Kind == engine.StepThought {
		return "thinking"
	}
	if st.Argument == "" {
		return st.Name
	}
	return line(st.Name+" "+st.Argument, maxDoing)
}

// note records words of the healer.
func (h *heal) note(ctx context.Context, name string, state engine.StepState, text string) error {
	_, err := h.record(ctx, engine.Step{Kind: engine.StepNote, Name: name, State: state, Text: text})
	return err
}

// beginAttempt opens attempt n: 0 are the playbooks.
func (h *heal) beginAttempt(ctx context.Context, n int, state engine.RunState) error {
	a := engine.Attempt{Run: h.id, Sandbox: h.sb.ID, Number: n}
	if n > 0 {
		a.Model = h.Model.Name()
	}
	err := h.write(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		a.Started = tx.Now
		run.State, run.Attempt = state, n
		if n > 0 {
			h.counted = tx.Now
			if err := tx.Use(h.sb.ID, engine.Use{Attempts: 1}); err != nil {
				return err
			}
		}
		return tx.PutAttempt(a)
	})
	h.attempt, h.steps = a, 0
	if n > 0 && err == nil {
		h.attempts++
	}
	return err
}

// endAttempt closes the attempt under way.
func (h *heal) endAttempt(ctx context.Context, outcome engine.Outcome, why, summary string) error {
	if h.attempt.Outcome != "" || h.attempt.Run == "" {
		return nil
	}
	a := h.attempt
	a.Outcome = outcome
	a.Why, a.Summary = h.words(why), h.words(summary)
	write := h.write
	if h.ending {
		write = h.writeEnd
	}
	err := write(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		a.Ended = tx.Now
		run.Doing = ""
		if a.Number > 0 {
			if err := h.countTime(tx); err != nil {
				return err
			}
		}
		return tx.PutAttempt(a)
	})
	if err == nil {
		h.attempt = a
	}
	return err
}

// spend adds what one answer of the model cost to the run and the attempt.
func (h *heal) spend(ctx context.Context, s engine.Spent) error {
	s.Steps = 0 // counted by record
	a := h.attempt
	a.Spent = a.Spent.Add(s)
	err := h.write(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		run.Spent = run.Spent.Add(s)
		if err := tx.Use(h.sb.ID, engine.UseOf(s)); err != nil {
			return err
		}
		return tx.PutAttempt(a)
	})
	if err == nil {
		h.attempt = a
	}
	return err
}

// words are a model's or a program's, fit for a row.
func (h *heal) words(s string) string { return bound(clean(h.redact(s)), maxWords) }
