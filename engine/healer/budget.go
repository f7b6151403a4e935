package healer

import (
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
