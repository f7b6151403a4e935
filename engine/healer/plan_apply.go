package healer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/healer/playbook"
	"sbx/store"
)

// signalAge is how old what a plan looks at may be.
const signalAge = time.Hour

// maxNamed is how many paths a refusal names.
const maxNamed = 30

// Plan is a plan that can be applied.
type Plan struct {
	Run  engine.HealRun
	Name string // of the sandbox
	does planned
}

// FindPlan is the plan that a run of a sandbox made, or with "" its latest. It
// is refused while a run may not be opened; note says that none is needed.
func FindPlan(tx *store.Tx, id engine.SandboxID, run engine.RunID) (p Plan, note string, err error) {
	sb, _, err := mayOpen(tx, id)
	if err != nil {
		return p, "", err
	}
	runs, err := tx.RunsOf(id, time.Time{})
	if err != nil {
		return p, "", err
	}
	for _, r := range slices.Backward(runs) {
		if r.Plan && (r.ID == run || run == "" && r.Outcome == engine.Planned) {
			p.Run = r
			break
		}
	}
	p.Name = sb.Name
	switch {
	case p.Run.ID == "" || p.Run.Outcome != engine.Planned:
		return p, "", engine.Errorf(engine.NotFound, "no plan was made for %s", sb.Name).
			WithHint("make one with: sbx heal --plan %s", sb.Name)
	case sb.Health == engine.Ready:
		return p, sb.Name + " is healthy: there is nothing to apply a plan to", nil
	}
	p.does, err = readPlan(tx, p.Run.ID)
	return p, "", err
}

func readPlan(tx *store.Tx, id engine.RunID) (p planned, err error) {
	text, err := tx.Plan(id)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read the plan of run %s: %w", id, err)
	}
	return p, nil
}

// MovedOn is a Conflict that names the paths which are no longer as they were
// when the plan was made; nil if none has moved on.
func (p Plan) MovedOn(ctx context.Context, saved driver.Checkpoints) error {
	if p.does.Tree == "" {
		return nil // it changes no files
	}
	now, err := saved.Save(ctx, "before a plan is applied")
	if err != nil {
		return err
	}
	return p.does.movedOn(ctx, saved, p.Name, now)
}

func (p planned) movedOn(ctx context.Context, saved driver.Checkpoints, name, now string) error {
	if p.Tree == "" || p.Tree == now {
		return nil
	}
	what := "what it was is kept no more"
	d, err := saved.Diff(ctx, p.Tree, now)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && len(d.Changes) == 0:
		return nil
	case err == nil:
		paths := make([]string, len(d.Changes))
		for i, c := range d.Changes {
			paths[i] = line(c.Path, maxArgument)
		}
		what = strings.Join(firstOf(paths, maxNamed), ", ")
		if len(paths) > maxNamed {
			what += fmt.Sprintf(" and %d more", len(paths)-maxNamed)
		}
	}
	return engine.Errorf(engine.Conflict, "the workspace of %s has moved on since the plan was made: %s", name, what).
		WithHint("make a new one with: sbx heal --plan %s", name)
}

// Open opens the run that does the plan.
func (p Plan) Open(tx *store.Tx, by engine.Actor) (engine.HealRun, error) {
	sb, run, err := mayOpen(tx, p.Run.Sandbox)
	if err != nil {
		return run, err
	}
	sig, err := raiseHand(tx, sb, fmt.Sprintf("%s applies the plan of run %s", by, engine.Short(p.Run.ID)))
	if err != nil {
		return engine.HealRun{}, err
	}
	v := engine.Verdict{Action: engine.Repair, Reason: "asked for by hand", At: tx.Now}
	return openRun(tx, sb, sig, v, engine.HealRun{Cause: line(sig.Observed, maxCause), By: by, Applies: p.Run.ID})
}

// doPlan does what a plan found, and nothing else.
func (h *heal) doPlan(ctx context.Context) (ending, error) {
	var p planned
	var made engine.HealRun
	err := h.Store.View(ctx, func(tx *store.Tx) (err error) {
		if made, err = tx.Run(h.run.Applies); err == nil {
			p, err = readPlan(tx, made.ID)
		}
		return err
	})
	if err != nil {
		return ending{}, err
	}
	if h.track == nil && (p.Tree != "" || len(p.Edits) > 0) {
		return h.gaveUp("no checkpoint could be made (" + h.noTry + "), so the plan was not applied"), nil
	}
	if h.track != nil {
		if err := p.movedOn(ctx, h.track.saved, h.sb.Name, h.track.base); err != nil {
			return h.gaveUp(err.Error()), h.fatal(ctx, err)
		}
	}
	ev, err := h.gather(ctx)
	if err != nil {
		return ending{}, err
	}
	if h.works(ev) {
		if why, err := h.verify(ctx, 0); err != nil || why == "" {
			const words = "it was healthy again before anything was done"
			return ending{outcome: engine.Healed, fixedBy: byItself, summary: words}, firstError(err, h.endAttemptIf(ctx, err, "", words))
		}
	}
	fixedBy, why := "plan", ""
	if p.Playbook != "" {
		fixedBy = p.Playbook
		why, err = h.doPlaybook(ctx, p, ev, made.Would)
	} else {
		why, err = h.doEdits(ctx, p, made)
	}
	if err != nil {
		return ending{}, err
	}
	if why == "" {
		return ending{outcome: engine.Healed, fixedBy: fixedBy, summary: made.Summary}, h.endAttempt(ctx, engine.Healed, "", made.Summary)
	}
	h.seen = append(h.seen, fmt.Sprintf("the plan of run %s: %s", engine.Short(made.ID), line(why, maxCause)))
	return h.gaveUp("the plan did not heal it"), h.endAttempt(ctx, engine.NotHealed, "", "the plan did not heal it: "+why)
}

// doPlaybook applies a plan's playbook if it would still do the same.
func (h *heal) doPlaybook(ctx context.Context, p planned, ev playbook.Evidence, would []string) (why string, err error) {
	for _, book := range playbook.All() {
		if book.Name() != p.Playbook {
			continue
		}
		reason, ok := book.Applies(ev)
		if !ok {
			return "what it found is not so any more: nothing was done", nil
		}
		now, err := h.describe(ctx, book, ev)
		if err != nil {
			return "", err
		}
		for i := range now {
			now[i] = line(h.redact(now[i]), maxCause)
		}
		if !slices.Equal(now, would) {
			return "it would do something else now, so nothing was done: " + strings.Join(now, "; "), nil
		}
		return h.apply(ctx, book, ev, reason)
	}
	return fmt.Sprintf("this engine has no playbook %q", p.Playbook), nil
}

// doEdits makes a model's changes, installs if the plan says so, restarts and
// verifies.
func (h *heal) doEdits(ctx context.Context, p planned, made engine.HealRun) (why string, err error) {
	st, err := h.record(ctx, engine.Step{
		Kind: engine.StepPlaybook, Name: "plan", Argument: strings.Join(made.Would, "; "), State: engine.StepRunning,
	})
	if err != nil {
		return "", err
	}
	h.acted = true
	var doErr error
	st.Diff, doErr = h.track.around(ctx, "", func() error {
		if err := h.replay(ctx, p); err != nil || !p.Install {
			return err
		}
		_, err := h.install(ctx, h.sb.Spec.App.Install)
		return err
	})
	if doErr == nil {
		doErr = h.start(ctx)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	st.State, st.Text = engine.StepOK, "done"
	if doErr != nil {
		st.State, st.Text = engine.StepFailed, doErr.Error()
	}
	if _, err := h.record(ctx, st); err != nil || doErr != nil {
		return st.Text, err
	}
	return h.verify(ctx, h.startPatience())
}

// replay makes the edits aside, and writes the files if they came out as they
// did when the plan was made.
func (h *heal) replay(ctx context.Context, p planned) error {
	k := &kit{h: h, files: h.box.Files()}
	aside := newStaged(k.files)
	found := map[string]engine.Version{}
	for _, e := range p.Edits {
		name, err := k.writable(ctx, e.Path)
		if err != nil {
			return err
		}
		f, err := aside.ReadFile(ctx, name, 0, 0)
		if err != nil && engine.AsCode(err) != engine.NotFound {
			return err
		}
		if _, again := aside.now[name]; !again {
			found[name] = f.Version
		}
		text := strings.ReplaceAll(string(f.Data), e.Old, e.New)
		if e.Content != nil {
			text = *e.Content
		}
		if _, err := aside.WriteFile(ctx, name, f.Version, []byte(text)); err != nil {
			return err
		}
	}
	for name, data := range aside.now {
		if p.Sums[name] != sum(data) {
			return engine.Errorf(engine.Conflict, "%s is not what it was when the plan was made", name)
		}
	}
	for name, data := range aside.now {
		if _, err := h.box.Files().WriteFile(ctx, name, found[name], data); err != nil {
			return err
		}
	}
	return nil
}
