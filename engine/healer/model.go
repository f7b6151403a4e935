package healer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/store"
)

// errMinutes cuts the model's part of a run when its time is over.
var errMinutes = errors.New("the run's minutes are spent")

// tryModel waits for a place in the model lane and makes attempts until one is
// verified, all are used, or a budget is.
func (h *heal) tryModel(ctx context.Context) (ending, error) {
	err := h.write(ctx, func(_ *store.Tx, run *engine.HealRun) error {
		run.State = engine.RunWaiting
		return nil
	})
	if err != nil {
		return ending{}, err
	}
	if err := h.lanes.waitForModel(ctx, h.id); err != nil {
		return ending{}, err
	}
	if why, err := h.failedIncident(ctx); why != "" || err != nil {
		return h.gaveUp(why), err
	}
	limited, cancel := context.WithTimeoutCause(ctx, h.p.Minutes, errMinutes)
	defer cancel()
	var tried []string // of earlier attempts, for the brief
	for n := 1; n <= h.sb.Spec.Heal.Attempts; n++ {
		end, failed, err := h.try(ctx, limited, n, tried)
		if err != nil || end.outcome != "" {
			return end, err
		}
		tried = append(tried, failed)
	}
	return h.gaveUp(fmt.Sprintf("not healed in %s", count(len(tried), "attempt", "attempts"))), nil
}

// try is one attempt. It returns an ending, or why the attempt failed.
func (h *heal) try(ctx, limited context.Context, n int, tried []string) (ending, string, error) {
	if end, err := h.mayBegin(ctx); end.outcome != "" || err != nil {
		return end, "", err
	}
	if err := h.beginAttempt(ctx, n, engine.RunModel); err != nil {
		return ending{}, "", err
	}
	told, acted, modelErr := h.ask(limited, tried)
	if err := h.fatal(ctx, modelErr); err != nil {
		return ending{}, "", err
	}
	why := "the model did nothing"
	if acted || modelErr == nil {
		var err error
		if why, err = h.verify(ctx, h.startPatience()); err != nil {
			return ending{}, "", err
		}
	}
	cause, fix := parted(told.Text)
	if why == "" {
		err := h.endAttempt(ctx, engine.Healed, cause, fix)
		return ending{outcome: engine.Healed, fixedBy: "model", summary: fix}, "", err
	}
	ended := h.endWords(limited, told.Reason, modelErr)
	if ended != "" {
		why = ended + "; " + why
	}
	h.seen = append(h.seen, fmt.Sprintf("attempt %d (%s): %s", n, orElse(line(fix, maxCause), "no words"), line(why, maxCause)))
	if end, over := h.over(limited, told.Reason, modelErr); over {
		outcome := engine.NotHealed
		if end.outcome == engine.OverBudget {
			outcome = engine.OverBudget
		}
		err := h.endAttempt(ctx, outcome, cause, orElse(fix, end.reason))
		if err == nil && providerFault(modelErr) {
			err = h.write(ctx, func(tx *store.Tx, run *engine.HealRun) error {
				run.Attempt = n - 1 // the provider's trouble uses up no attempt
				return tx.Use(h.sb.ID, engine.Use{Attempts: -1})
			})
		}
		return end, "", err
	}
	failed := fmt.Sprintf("What it said: %s\nHow it ended: %s\nWhy it failed: %s", orElse(line(told.Text, 2000), "nothing"), orElse(ended, string(told.Reason)), why)
	return ending{}, failed, h.endAttempt(ctx, engine.NotHealed, cause, strings.TrimSpace(fix+"\nnot healed: "+why))
}

// ask has one conversation with the model. acted: it did more than look.
func (h *heal) ask(ctx context.Context, tried []string) (told agent.End, acted bool, err error) {
	ev, err := h.gather(ctx)
	if err != nil {
		return told, false, err
	}
	t, err := h.brief(ev, tried)
	if err != nil {
		return told, false, err
	}
	k := newKit(h)
	h.heard = 0 // a new conversation knows nothing
	a := agent.Agent{
		Model: &meter{Model: h.Model, h: h},
		Tools: k.tools(),
		Budget: agent.Budget{
			Steps:   h.p.Steps,
			Tokens:  max(1, h.p.Tokens-h.run.Spent.Tokens()),
			Dollars: max(0.000001, h.p.Dollars-h.run.Spent.Dollars),
			Retry:   h.p.Retry,
		},
		Record:  h.record,
		Around:  k.around,
		Waiting: h.waiting,
		Hear:    h.hear,
	}
	told, err = a.Run(ctx, t)
	h.acted = h.acted || k.acted
	return told, k.acted, err
}

// fatal is what ends the whole run: a cut, or a store that can't be written.
func (h *heal) fatal(ctx context.Context, err error) error {
	var cut *cutError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &cut), errors.Is(err, errStore):
		return err
	}
	return nil
}

// over reports whether an attempt's end leaves nothing for another one.
func (h *heal) over(limited context.Context, reason agent.EndReason, err error) (ending, bool) {
	spent := ""
	var budget *budgetError
	switch {
	case errors.As(err, &budget):
		return h.overBudget(budget), true
	case limited.Err() != nil:
		spent = fmt.Sprintf("over the budget: %s of a run's time are spent", h.p.Minutes)
	case reason == agent.OverBudget:
		spent = fmt.Sprintf("over the budget: %d tokens, $%.2f spent", h.run.Spent.Tokens(), h.run.Spent.Dollars)
	}
	if spent != "" {
		end := h.gaveUp(spent)
		end.outcome = engine.OverBudget
		return end, true
	}
	if !providerFault(err) {
		return ending{}, false
	}
	end := h.gaveUp("model unavailable: " + line(err.Error(), maxCause))
	switch engine.AsCode(err) {
	case engine.Unauthorized:
		end.next = keyNext + h.sb.Name
	case engine.Forbidden, engine.NotFound:
		end.next = keyNext + h.sb.Name
		if hint := engine.Hint(err); hint != "" {
			end.next = line(hint, maxCause) + ", then: sbx heal " + h.sb.Name
		}
	case engine.Exhausted:
		end.next = "raise the provider's spend limit or wait until it renews, then: sbx heal " + h.sb.Name
	default:
		end.next = "when the provider answers again: sbx heal " + h.sb.Name
	}
	return end, true
}

const keyNext = "check the key: ANTHROPIC_API_KEY (or model.key in config.toml), then: sbx heal "

// modelError is an error of the model itself, and not of what surrounds it.
type modelError struct{ error }

func (e *modelError) Unwrap() error { return e.error }

// providerFault reports whether an error is the provider's or the account's,
// and would meet the next attempt as well.
func providerFault(err error) bool {
	if of := (*modelError)(nil); !errors.As(err, &of) {
		return false
	}
	switch engine.AsCode(err) {
	case engine.Unauthorized, engine.Forbidden, engine.NotFound, engine.Exhausted, engine.Unavailable:
		return true
	}
	return false
}

// endWords says how a conversation ended that the model did not end itself;
// "" if it did, or if over tells it as the end of the whole run.
func (h *heal) endWords(limited context.Context, reason agent.EndReason, err error) string {
	switch {
	case limited.Err() != nil, providerFault(err), errors.As(err, new(*budgetError)):
		return ""
	case err != nil:
		return line(err.Error(), maxCause)
	}
	switch reason {
	case agent.OutOfSteps:
		return fmt.Sprintf("out of steps: it may make %d calls", h.p.Steps)
	case agent.Looping:
		return "looping: it made the same call again and again"
	case agent.CutShort:
		return "cut short: its answers were longer than they may be"
	case agent.Refused:
		return "the model refused to go on"
	}
	return ""
}

// waiting shows that the provider is away, and that it is back.
func (h *heal) waiting(ctx context.Context, why string) {
	err := h.write(ctx, func(_ *store.Tx, run *engine.HealRun) error {
		run.State, run.Doing = engine.RunModel, ""
		if why != "" {
			run.State, run.Doing = engine.RunWaiting, line(h.redact("waiting for the model: "+why), maxDoing)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		h.Log.Debug("showing that a run waits", "run", h.id, "err", err) // the next step says what is wrong
	}
}

// meter is the model with what each answer costs written down.
type meter struct {
	agent.Model
	h *heal
}

// mayBegin is the ending of a run whose next attempt would cross a budget; the
// zero ending if it wouldn't.
func (h *heal) mayBegin(ctx context.Context) (ending, error) {
	err := h.mayAsk(ctx, true)
	if budget := (*budgetError)(nil); errors.As(err, &budget) {
		return h.overBudget(budget), nil
	}
	return ending{}, err
}

func (h *heal) overBudget(b *budgetError) ending {
	end := h.gaveUp(b.Error())
	end.outcome, end.next = engine.OverBudget, b.next+", then: sbx heal "+h.sb.Name
	return end
}

func (m *meter) Reply(ctx context.Context, t agent.Transcript, tools []agent.Tool, partial func(string)) (agent.Turn, error) {
	if err := m.h.mayAsk(ctx, false); err != nil {
		return agent.Turn{}, err
	}
	turn, err := m.Model.Reply(ctx, t, tools, partial)
	if err != nil {
		err = &modelError{err}
	}
	if turn.Spent == (engine.Spent{}) {
		return turn, err
	}
	// What was spent is spent, also if the run was cut meanwhile.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if spendErr := m.h.spend(saving, turn.Spent); spendErr != nil && err == nil {
		return turn, spendErr
	}
	return turn, err
}

// parted reads the two lines that the model is asked to end with.
func parted(text string) (cause, fix string) {
	for l := range strings.Lines(text) {
		l = strings.Trim(strings.TrimSpace(l), "*")
		if rest, ok := strings.CutPrefix(l, "Cause:"); ok {
			cause = strings.TrimSpace(strings.Trim(rest, "* "))
		}
		if rest, ok := strings.CutPrefix(l, "Fix:"); ok {
			fix = strings.TrimSpace(strings.Trim(rest, "* "))
		}
	}
	return cause, orElse(fix, strings.TrimSpace(text))
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
