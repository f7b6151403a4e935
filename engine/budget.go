package engine

import "time"

// Use is what heals have used of the things that budgets bound.
type Use struct {
	Attempts int      `json:"attempts"`
	Steps    int      `json:"steps"`
	Time     Duration `json:"time"` // of attempts of a model
	Tokens   int64    `json:"tokens"`
	Dollars  float64  `json:"dollars"`
}

// Add is the sum of both.
func (u Use) Add(o Use) Use {
	return Use{
		Attempts: u.Attempts + o.Attempts, Steps: u.Steps + o.Steps, Time: u.Time + o.Time,
		Tokens: u.Tokens + o.Tokens, Dollars: u.Dollars + o.Dollars,
	}
}

// UseOf is what was spent, as budgets count it.
func UseOf(s Spent) Use {
	return Use{Steps: s.Steps, Tokens: s.Tokens(), Dollars: s.Dollars}
}

// Budget is a bound on a model's work, and what of it is used.
type Budget struct {
	Used  Use `json:"used"`
	Limit Use `json:"limit"` // a zero is no bound
}

// Left is what may still be used: never less than nothing, and nothing of what
// has no bound.
func (b Budget) Left() Use {
	return Use{
		Attempts: max(0, b.Limit.Attempts-b.Used.Attempts), Steps: max(0, b.Limit.Steps-b.Used.Steps),
		Time:   max(0, b.Limit.Time-b.Used.Time),
		Tokens: max(0, b.Limit.Tokens-b.Used.Tokens), Dollars: max(0, b.Limit.Dollars-b.Used.Dollars),
	}
}

// Budgets are the fleet's and the sandboxes' of a day. Days are of UTC.
type Budgets struct {
	Day string `json:"day"` // "2026-01-31"
	// Resets is when the next day begins.
	Resets time.Time `json:"resets"`
	Fleet  Budget    `json:"fleet"`
	// Sandbox is the bound of each sandbox, and Sandboxes what each has used:
	// those that have used something.
	Sandbox   Use               `json:"sandbox"`
	Sandboxes map[SandboxID]Use `json:"sandboxes"`
	// Run is the bound of each run.
	Run Use `json:"run"`
}

// DayOf is the day that something at t counts to, and when the next begins.
func DayOf(t time.Time) (day string, next time.Time) {
	t = t.UTC()
	next = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
	return t.Format(time.DateOnly), next
}
