package healer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/engine"
	"sbx/store"
)

// Budgets are the bounds of p, and what of the day's was used.
func Budgets(tx *store.Tx, p Policy) (engine.Budgets, error) {
	p = p.filled()
	day, next := engine.DayOf(tx.Now)
	b := engine.Budgets{
		Day: day, Resets: next, Run: p.runLimit(), Sandbox: bounds(p.SandboxDay),
		Fleet: engine.Budget{Limit: bounds(p.FleetDay)},
	}
	var err error
	if b.Sandboxes, err = tx.UsedByAll(); err != nil {
		return b, err
	}
	for _, u := range b.Sandboxes {
		b.Fleet.Used = b.Fleet.Used.Add(u)
	}
	return b, nil
}

// bounds has zero where there is no bound.
func bounds(u engine.Use) engine.Use {
	return engine.Use{
		Attempts: max(0, u.Attempts), Steps: max(0, u.Steps), Time: max(0, u.Time),
		Tokens: max(0, u.Tokens), Dollars: max(0, u.Dollars),
	}
}

// runLimit is what one run may use; its attempts are the spec's to say, up to
// this.
func (p Policy) runLimit() engine.Use {
	return engine.Use{
		Attempts: p.Attempts, Steps: p.RunSteps, Time: engine.Duration(p.Minutes), Tokens: p.Tokens, Dollars: p.Dollars,
	}
}

// crossed says which bound of a budget is reached; "" if none is. attempt: it
// is asked before another attempt, so attempts count too; within one they don't.
func crossed(b engine.Budget, attempt bool) string {
	u, l := b.Used, b.Limit
	switch {
	case attempt && l.Attempts > 0 && u.Attempts >= l.Attempts:
		return fmt.Sprintf("%d of %d attempts", u.Attempts, l.Attempts)
	case l.Steps > 0 && u.Steps >= l.Steps:
		return fmt.Sprintf("%d of %d steps", u.Steps, l.Steps)
	case l.Time > 0 && u.Time >= l.Time:
		return fmt.Sprintf("%s of %s", u.Time.D().Round(time.Second), l.Time)
	case l.Tokens > 0 && u.Tokens >= l.Tokens:
		return fmt.Sprintf("%d of %d tokens", u.Tokens, l.Tokens)
	case l.Dollars > 0 && u.Dollars >= l.Dollars:
		return fmt.Sprintf("$%.2f of $%.2f", u.Dollars, l.Dollars)
	}
	return ""
}

// budgetError is a bound that is reached: nothing more is sent to the model.
type budgetError struct {
	scope, what string
	next        string // what somebody can do about it
}

func (e *budgetError) Error() string { return "over the budget of " + e.scope + ": " + e.what }

// mayUse holds what was used, today and by a run, against the bounds of p.
func mayUse(tx *store.Tx, p Policy, id engine.SandboxID, run engine.Use, attempt bool) error {
	p = p.filled()
	if what := crossed(engine.Budget{Used: run, Limit: p.runLimit()}, attempt); what != "" {
		return &budgetError{"the run", what, "raise budget.run.* (see sbx config)"}
	}
	_, resets := engine.DayOf(tx.Now)
	next := "raise budget.%s.* (see sbx config), or wait until " + resets.Format("15:04") + " UTC"
	one, err := tx.Used(id)
	if err != nil {
		return err
	}
	if what := crossed(engine.Budget{Used: one, Limit: p.SandboxDay}, attempt); what != "" {
		return &budgetError{"the sandbox's day", what, fmt.Sprintf(next, "sandbox")}
	}
	all, err := tx.Used("")
	if err != nil {
		return err
	}
	if what := crossed(engine.Budget{Used: all, Limit: p.FleetDay}, attempt); what != "" {
		return &budgetError{"the fleet's day", what, fmt.Sprintf(next, "fleet")}
	}
	return nil
}

// mayAsk counts the time since it was last asked, and then says whether the
// model may be asked once more: a *budgetError if not.
func (h *heal) mayAsk(ctx context.Context, attempt bool) error {
	var over error
	err := h.update(ctx, standing, func(tx *store.Tx, run *engine.HealRun) error {
		over = nil // the transaction may be tried again
		if err := h.countTime(tx); err != nil {
			return err
		}
		used := engine.UseOf(run.Spent)
		used.Attempts, used.Time = h.attempts, h.time
		err := mayUse(tx, h.p, h.sb.ID, used, attempt)
		if b := (*budgetError)(nil); errors.As(err, &b) {
			over, err = b, nil
		}
		return err
	})
	return firstError(err, over)
}

// countTime adds the time since it was last counted to what was used.
func (h *heal) countTime(tx *store.Tx) error {
	if h.counted.IsZero() || tx.Now.Before(h.counted) {
		h.counted = tx.Now
		return nil
	}
	d := engine.Duration(tx.Now.Sub(h.counted))
	h.counted = tx.Now
	h.time += d
	return tx.Use(h.sb.ID, engine.Use{Time: d})
}

// mayAsk holds a chat against the day's budgets: they count all that models
// cost.
func (m *chatMeter) mayAsk(ctx context.Context) error {
	return m.t.Store.View(ctx, func(tx *store.Tx) error {
		return mayUse(tx, m.t.p, m.t.said.Sandbox, engine.Use{}, false)
	})
}
