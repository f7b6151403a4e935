package healer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/healer/playbook"
	"sbx/store"
)

// planned is what a plan would do, as its row keeps it: a playbook by name, or
// edits, an install, and a restart.
type planned struct {
	// Tree is the workspace that it was made for; "" if none could be saved, and
	// then it changes no files.
	Tree     string     `json:"tree,omitempty"`
	Playbook string     `json:"playbook,omitempty"`
	Edits    []planEdit `json:"edits,omitempty"`
	// Sums are of the files as the edits leave them.
	Sums    map[string]string `json:"sums,omitempty"`
	Install bool              `json:"install,omitempty"`
}

// planEdit is one call of write or edit: the model's own words, so that no
// more of a file is kept than the model has written of it.
type planEdit struct {
	Path    string  `json:"path"`
	Content *string `json:"content,omitempty"`
	Old     string  `json:"old,omitempty"`
	New     string  `json:"new,omitempty"`
}

// planWaits is the verdict on a signal that comes while a plan is being made.
const planWaits = "a plan is being made for it; it is judged again after that"

// maxPlanDiff bounds the diff of a plan.
const maxPlanDiff = 512 << 10

// planRules follow the system prompt of a run that only plans.
const planRules = `

This time you only plan, and these rules come before those above. Nothing that you do changes the sandbox: what you write and edit is kept aside, shows when you read it again, and is shown to a person as a diff. They decide whether it is done. No command can be run, nothing is restarted, and the app can't be asked. If the plan needs dependencies to be installed after your changes, call install; it is noted as a part of the plan. The app is always restarted after that; call restart only if a restart alone would help. You are done when what you have kept aside would repair the sandbox.`

// OpenPlan opens a run that only finds out what would help. It is a run like
// any other, but the sandbox's health stays what it is.
func OpenPlan(tx *store.Tx, id engine.SandboxID, by engine.Actor) (engine.HealRun, string, error) {
	sb, run, err := mayOpen(tx, id)
	if err != nil {
		return run, "", err
	}
	if sb.Health == engine.Ready {
		return engine.HealRun{}, sb.Name + " is healthy: there is nothing to plan", nil
	}
	seen, err := lastSeen(tx, id)
	if err != nil {
		return engine.HealRun{}, "", err
	}
	run = queued(tx, sb, engine.HealRun{
		ID: engine.RunID(engine.NewID(engine.RunPrefix)), Plan: true, Signal: seen, By: by, Cause: handWords(sb, by, "a plan"),
	})
	if err := tx.PutRun(run); err != nil {
		return run, "", err
	}
	return run, "", tx.TakeNotes(id, run.ID)
}

// lastSeen is the last signal that was no person's; "" if there is none of late.
func lastSeen(tx *store.Tx, id engine.SandboxID) (engine.SignalID, error) {
	list, err := tx.Signals(id, tx.Now.Add(-signalAge))
	var seen engine.Signal
	for _, s := range list {
		if s.Kind != engine.HandSignal && s.Kind != engine.WakeSignal && !s.At.Before(seen.At) {
			seen = s
		}
	}
	return seen.ID, err
}

// makePlan finds out what would help, and changes nothing. Playbooks say what
// they would do. A restart can't be tried here: where it is all that fits, the
// model is asked too, and the restart is the plan if the model has none.
func (h *heal) makePlan(ctx context.Context) (ending, error) {
	ev, err := h.gather(ctx)
	if err != nil {
		return ending{}, err
	}
	if h.works(ev) { // it may be about to fail again
		const fine = "it is healthy now: there is nothing to plan"
		if why, err := h.verify(ctx, 0); err != nil || why == "" {
			return ending{outcome: engine.Healed, fixedBy: byItself, summary: fine}, firstError(err, h.endAttemptIf(ctx, err, "", fine))
		}
		if ev, err = h.gather(ctx); err != nil {
			return ending{}, err
		}
	}
	tried, err := h.triedBefore(ctx)
	if err != nil {
		return ending{}, err
	}
	p, reason, fits := playbook.Next(ev, tried)
	why, next := h.noModel()
	passing := fits && p.Name() == "restart" && h.sig.Kind != engine.PressureSignal
	if fits && (!passing || why != "") {
		return h.planPlaybook(ctx, p, ev, reason)
	}
	if err := h.endAttempt(ctx, engine.NotHealed, "", "no playbook fits what was seen"+inVainWords(tried)); err != nil {
		return ending{}, err
	}
	if why != "" {
		return h.noPlan(why, next), nil
	}
	end, err := h.askForPlan(ctx)
	switch {
	case err != nil || end.outcome != "":
		return end, err
	case !fits:
		return h.noPlan(end.summary, ""), nil
	}
	restart, err := h.planPlaybook(ctx, p, ev, reason)
	restart.summary += "\nThe model has no other plan: " + end.summary
	return restart, err
}

func inVainWords(tried map[string]bool) string {
	if len(tried) == 0 {
		return ""
	}
	return " that the last heal did not try in vain"
}

// triedBefore are the playbooks that the last heal of a broken sandbox tried:
// they did not help.
func (h *heal) triedBefore(ctx context.Context) (map[string]bool, error) {
	tried := map[string]bool{}
	err := h.Store.View(ctx, func(tx *store.Tx) error {
		clear(tried)
		if h.sb.Run == "" || h.sb.Health != engine.Broken {
			return nil
		}
		last, err := tx.Run(h.sb.Run)
		if err != nil || last.Outcome != engine.NotHealed && last.Outcome != engine.OverBudget {
			return ignoreGone(err)
		}
		steps, err := tx.Steps(last.ID, 0)
		for _, st := range steps {
			if st.Kind == engine.StepPlaybook {
				tried[st.Name], tried["restart"] = true, true // each ends with one
			}
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return tried, err
}

// planPlaybook is the plan that a playbook is.
func (h *heal) planPlaybook(ctx context.Context, p playbook.Playbook, ev playbook.Evidence, reason string) (ending, error) {
	would, err := h.describe(ctx, p, ev)
	if err != nil {
		return ending{}, err
	}
	_, err = h.record(ctx, engine.Step{
		Kind: engine.StepPlaybook, Name: p.Name(), Argument: reason, State: engine.StepOK, Text: "would: " + strings.Join(would, "; "),
	})
	if err != nil {
		return ending{}, err
	}
	summary := fmt.Sprintf("%s: %s", p.Name(), reason)
	if err := h.endAttempt(ctx, engine.Planned, reason, summary); err != nil {
		return ending{}, err
	}
	return h.keepPlan(ctx, planned{Playbook: p.Name()}, summary, would, "")
}

// askForPlan has one conversation in which the model's writes are kept aside.
// Without an outcome the ending's summary says why there is no plan.
func (h *heal) askForPlan(ctx context.Context) (ending, error) {
	err := h.write(ctx, func(_ *store.Tx, run *engine.HealRun) error {
		run.State = engine.RunWaiting
		return nil
	})
	if err == nil {
		err = h.lanes.waitForModel(ctx, h.id)
	}
	if err != nil {
		return ending{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, h.p.Minutes, errMinutes)
	defer cancel()
	if end, err := h.mayBegin(ctx); end.outcome != "" || err != nil {
		return h.planEnds(end), err
	}
	if err := h.beginAttempt(ctx, 1, engine.RunModel); err != nil {
		return ending{}, err
	}
	h.staged = newStaged(h.box.Files())
	told, _, modelErr := h.ask(limited, nil)
	if err := h.fatal(ctx, modelErr); err != nil {
		return ending{}, err
	}
	return h.planned(ctx, limited, told, modelErr)
}

// planned is what came of a conversation.
func (h *heal) planned(ctx, limited context.Context, told agent.End, modelErr error) (ending, error) {
	cause, fix := parted(told.Text)
	if end, over := h.over(limited, told.Reason, modelErr); over {
		outcome := engine.NotHealed
		if end.outcome == engine.OverBudget {
			outcome = engine.OverBudget
		}
		return h.planEnds(end), h.endAttempt(ctx, outcome, cause, orElse(fix, end.reason))
	}
	p, diff := h.staged.plan()
	why := h.endWords(limited, told.Reason, modelErr)
	if why == "" && !h.staged.any() {
		why = "the model would change nothing"
	}
	if why != "" {
		words := strings.TrimSpace(strings.Join([]string{cause, fix}, " "))
		err := h.endAttempt(ctx, engine.NotHealed, cause, strings.TrimSpace(fix+"\nno plan: "+why))
		return ending{summary: strings.TrimSuffix(strings.TrimSpace(why+": "+words), ":")}, err
	}
	if err := h.endAttempt(ctx, engine.Planned, cause, fix); err != nil {
		return ending{}, err
	}
	summary := fix
	if cause != "" {
		summary = "Cause: " + cause + "\nFix: " + fix
	}
	return h.keepPlan(ctx, p, summary, p.words(h.sb.Spec.App.Install), diff)
}

// words say what a model's plan would do.
func (p planned) words(install string) []string {
	var list, paths []string
	seen := map[string]bool{}
	for _, e := range p.Edits {
		if !seen[e.Path] {
			seen[e.Path] = true
			paths = append(paths, e.Path)
		}
	}
	for _, name := range paths {
		list = append(list, "change "+line(name, maxArgument))
	}
	if p.Install {
		list = append(list, "install with: "+line(install, maxArgument))
	}
	return append(list, "restart the app")
}

// keepPlan writes the plan down.
func (h *heal) keepPlan(ctx context.Context, p planned, summary string, would []string, diff string) (ending, error) {
	if h.track != nil {
		p.Tree = h.track.base
	}
	body, err := json.Marshal(p)
	if err != nil {
		return ending{}, fmt.Errorf("write the plan down: %w", err)
	}
	err = h.write(ctx, func(tx *store.Tx, run *engine.HealRun) error {
		run.Diff = bound(clean(h.redact(diff)), maxPlanDiff)
		run.Would = nil
		for _, w := range would {
			run.Would = append(run.Would, line(h.redact(w), maxCause))
		}
		return tx.PutPlan(run.ID, string(body))
	})
	return ending{outcome: engine.Planned, summary: summary, next: "do it with: sbx heal --apply " + h.sb.Name}, err
}

// noPlan is the ending of a run that found no plan.
func (h *heal) noPlan(why, next string) ending {
	return ending{
		outcome: engine.NotHealed, summary: "No plan: " + orElse(why, "nothing was found that would help"),
		next: orElse(next, "see what was looked at with: sbx logs --healer "+h.sb.Name+"; fix it by hand, or let it be tried with: sbx heal "+h.sb.Name),
	}
}

// planEnds is an ending of a heal as one of a plan.
func (h *heal) planEnds(end ending) ending {
	if end.outcome != "" {
		end.summary = "No plan: " + end.reason
	}
	return end
}

// raiseWaiting raises once more what came while a plan was being made, where
// it is still so: it was left waiting for the plan's end.
func (h *heal) raiseWaiting(tx *store.Tx) error {
	sb, err := tx.Sandbox(h.sb.ID)
	if err != nil || !wantedUp(sb) || sb.Health == engine.Broken {
		return ignoreGone(err)
	}
	list, err := tx.Signals(sb.ID, h.run.Started)
	if err != nil {
		return err
	}
	var last engine.Signal
	for _, s := range list {
		if s.Verdict != nil && s.Verdict.Reason == planWaits && !s.At.Before(last.At) {
			last = s
		}
	}
	switch {
	case last.Kind == "", last.Kind == engine.HandSignal, last.Kind == engine.HealthSignal && sb.Health == engine.Ready:
		return nil
	case last.Kind == engine.ExitSignal:
		return h.raiseIfDown(tx)
	}
	_, err = tx.RaiseSignal(engine.Signal{
		Sandbox: last.Sandbox, Process: last.Process, Kind: last.Kind, Exit: last.Exit, Probes: last.Probes, At: tx.Now,
		Observed: line(last.Observed, maxCause) + " (again, after a plan was made)",
	})
	return err
}
