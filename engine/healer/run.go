package healer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/redact"
	"sbx/store"
)

// saveTimeout bounds what must be done although a run was cut.
const saveTimeout = 30 * time.Second

// heal is one run at work. One goroutine owns it.
type heal struct {
	*loop
	id  engine.RunID
	run engine.HealRun // as written last
	box driver.Box
	// sb is the sandbox as it was when the run began (its spec counts for the
	// whole run); now is its row as read last.
	sb, now engine.Sandbox
	port    int // of the app
	sig     engine.Signal

	track *track // nil: nothing may be edited
	noTry string // why no checkpoint could be made
	good  engine.Checkpoint

	attempt engine.Attempt
	heard   int64 // the last note that this conversation has
	// attempts of a model that were begun, the time that they took, and until
	// when that was counted.
	attempts int
	time     engine.Duration
	counted  time.Time
	steps    int
	seen     []string          // what was found wrong, attempt by attempt, for the summary
	hide     *redact.Redactor  // of the sandbox's own secrets
	diff     string            // of the tool call under way, if the tool knows it
	moments  int               // how many were written down
	told     int               // whose evidence is recorded: the attempt\'s number + 1
	tools    map[string]string // versions, asked for once
	// installed: dependencies may not be what they were before the run.
	installed, acted bool
	restarts         int // that playbooks made
	ending           bool
	staged           *staged // what a plan would change; nil in a run that heals
}

// ending is how a run comes to its end.
type ending struct {
	outcome engine.Outcome
	fixedBy string
	summary string
	next    string
	reason  string // beside broken
}

// heal works on a run from its first step to its end. When ctx ends, the
// engine is leaving: the row stays open, for recover.
func (l *loop) heal(ctx context.Context, run engine.HealRun) error {
	running, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	l.lanes.begin(run.ID, cut)
	defer l.lanes.leave(run.ID)
	h := &heal{loop: l, id: run.ID, run: run}
	end, err := h.work(running)
	if ctx.Err() != nil {
		return nil
	}
	var why *cutError
	switch {
	case err == nil:
	case errors.As(err, &why), errors.As(context.Cause(running), &why):
		if why.gone {
			return nil
		}
		end = ending{outcome: engine.Cancelled, summary: why.why}
	case errors.Is(err, errStore):
		return err
	default:
		l.Log.Error("a heal run failed", "run", run.ID, "sandbox", run.Sandbox, "err", err)
		end = h.gaveUp("the healer could not go on: " + err.Error())
	}
	if err := h.end(ctx, end, why); err != nil && ctx.Err() == nil && !errors.As(err, &why) {
		return err
	}
	return nil
}

// work is SPEC §7.2 from the checkpoint to the verdict on the last attempt.
func (h *heal) work(ctx context.Context) (ending, error) {
	if err := h.begin(ctx); err != nil {
		return ending{}, err
	}
	if err := h.save(ctx); err != nil {
		return ending{}, err
	}
	switch {
	case h.run.Plan:
		return h.makePlan(ctx)
	case h.run.Applies != "":
		return h.doPlan(ctx)
	}
	fixedBy, err := h.tryPlaybooks(ctx)
	if err != nil {
		return ending{}, err
	}
	if fixedBy != "" {
		return ending{outcome: engine.Healed, fixedBy: fixedBy, summary: h.attempt.Summary}, nil
	}
	if why, next := h.noModel(); why != "" {
		end := h.gaveUp(why)
		end.next = next
		return end, nil
	}
	return h.tryModel(ctx)
}

// begin takes the run out of the queue.
func (h *heal) begin(ctx context.Context) error {
	h.attempt = engine.Attempt{Run: h.id, Sandbox: h.run.Sandbox}
	err := h.write(ctx, func(tx *store.Tx, run *engine.HealRun) (err error) {
		if h.sb, err = tx.Sandbox(run.Sandbox); err != nil {
			return err
		}
		h.now = h.sb
		if h.sig, err = signalOf(tx, *run); err != nil {
			return err
		}
		run.State = engine.RunPlaybooks
		h.attempt.Started = tx.Now
		return tx.PutAttempt(h.attempt)
	})
	if err != nil {
		h.attempt = engine.Attempt{} // nothing to end
		return err
	}
	if h.box, err = h.Box(ctx, h.sb.ID); err == nil {
		h.learnSecrets(ctx)
	}
	return err
}

// signalOf is the signal that a run answers, or one made of its cause.
func signalOf(tx *store.Tx, run engine.HealRun) (engine.Signal, error) {
	list, err := tx.Signals(run.Sandbox, run.Started.Add(-time.Hour))
	if err != nil {
		return engine.Signal{}, err
	}
	for _, s := range list {
		if s.ID == run.Signal {
			return s, nil
		}
	}
	return engine.Signal{ID: run.Signal, Sandbox: run.Sandbox, Observed: run.Cause, At: run.Started}, nil
}

// save makes the checkpoint that the run can be undone to. Where none can be
// made nothing will be edited, and the run says so.
func (h *heal) save(ctx context.Context) error {
	saving, cancel := context.WithTimeout(ctx, h.p.UndoTimeout)
	defer cancel()
	tree, err := h.box.Checkpoints().Save(saving, "before run "+string(h.id))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		h.noTry = err.Error()
		return h.note(ctx, "checkpoint", engine.StepFailed, "no checkpoint could be made, so nothing will be edited: "+h.noTry)
	}
	dirty, _, why, err := h.box.Checkpoints().Dirty(saving)
	if err != nil {
		why = err.Error()
	}
	cp := engine.Checkpoint{
		ID: engine.CheckpointID(engine.NewID(engine.CheckpointPrefix)), Sandbox: h.sb.ID, Run: h.id,
		Note: "before a heal", Tree: tree,
	}
	err = h.write(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		cp.Created = tx.Now
		run.Checkpoint, run.Baseline = cp.ID, dirty
		h.good, err = lastGood(tx, h.sb.ID)
		if err != nil {
			return err
		}
		return tx.PutCheckpoint(cp)
	})
	if err != nil {
		return err
	}
	h.track = newTrack(h.box.Checkpoints(), tree)
	h.track.keep = h.keepMoment
	text := fmt.Sprintf("saved the workspace as it is (%s)", engine.Short(cp.ID))
	switch {
	case len(dirty) > 0:
		text += fmt.Sprintf("; %s uncommitted changes, which stay as they are", count(len(dirty), "path has", "paths have"))
	case why != "":
		text += "; " + why
	}
	return h.note(ctx, "checkpoint", engine.StepOK, text)
}

func lastGood(tx *store.Tx, id engine.SandboxID) (engine.Checkpoint, error) {
	list, err := tx.Checkpoints(id)
	for _, c := range list {
		if c.Good {
			return c, err
		}
	}
	return engine.Checkpoint{}, err
}

// noModel is why no model may be asked, and what an operator can do about it.
func (h *heal) noModel() (why, next string) {
	again := fmt.Sprintf("then: sbx heal %s", h.sb.Name)
	switch {
	case h.Model == nil:
		reason := h.NoModel
		if reason == "" {
			reason = "no model is configured"
		}
		return reason, "set ANTHROPIC_API_KEY (or model.key in config.toml), " + again
	case h.sb.Spec.Heal.Attempts <= 0:
		return "the spec allows no attempts of a model", "fix it by hand, or allow heal.attempts in the spec, " + again
	case !h.Confined:
		return "nothing confines a model's commands on this host, so none was asked",
			"see what is missing with: sbx doctor; " + again
	case h.track == nil:
		return "no checkpoint could be made (" + h.noTry + "), so no model was asked", "make git available on the host, " + again
	}
	return "", ""
}

// gaveUp is the ending of a run that did not heal.
func (h *heal) gaveUp(why string) ending {
	return ending{
		outcome: engine.NotHealed, summary: h.summary(why), reason: why,
		next: fmt.Sprintf("see what was tried with: sbx logs --healer %s; fix it by hand, or try again with: sbx heal %s", h.sb.Name, h.sb.Name),
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
