package main

import (
	"fmt"
	"strconv"
	"time"

	"sbx/engine"
)

// budgets are the bounds on what models may use. A zero is no bound.
type budgets struct{ run, sandbox, fleet engine.Use }

// budgetSettings are the bounds of each scope, with what SPEC §7.2 leaves to a
// setting as defaults.
func budgetSettings() []setting {
	hours := func(n int) engine.Duration { return engine.Duration(time.Duration(n) * time.Hour) }
	var list []setting
	for _, scope := range []struct {
		key, words string
		at         func(*config) *engine.Use
		initial    engine.Use
	}{
		{"run", "a heal run", func(c *config) *engine.Use { return &c.budgets.run }, engine.Use{
			Attempts: 10, Steps: 300, Time: hours(1) / 2, Tokens: 5_000_000, Dollars: 5,
		}},
		{"sandbox", "a sandbox's day", func(c *config) *engine.Use { return &c.budgets.sandbox }, engine.Use{
			Attempts: 20, Steps: 1000, Time: hours(3), Tokens: 20_000_000, Dollars: 20,
		}},
		{"fleet", "the fleet's day", func(c *config) *engine.Use { return &c.budgets.fleet }, engine.Use{
			Attempts: 500, Steps: 20_000, Time: hours(48), Tokens: 200_000_000, Dollars: 100,
		}},
	} {
		add := func(what, initial, words string, set func(*engine.Use, string) error) {
			list = append(list, setting{
				key: "budget." + scope.key + "." + what, initial: initial,
				help: words + " of models in " + scope.words + "; 0: no bound",
				set:  func(c *config, v string) error { return set(scope.at(c), v) },
			})
		}
		u := scope.initial
		add("attempts", strconv.Itoa(u.Attempts), "attempts", func(u *engine.Use, v string) error { return parseCount(&u.Attempts, v) })
		add("steps", strconv.Itoa(u.Steps), "tool calls", func(u *engine.Use, v string) error { return parseCount(&u.Steps, v) })
		add("time", u.Time.String(), "time", parseTime)
		add("tokens", strconv.FormatInt(u.Tokens, 10), "tokens", func(u *engine.Use, v string) error { return parseCount(&u.Tokens, v) })
		add("dollars", strconv.FormatFloat(u.Dollars, 'f', -1, 64), "dollars", parseDollars)
	}
	return list
}

func parseCount[T int | int64](at *T, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > 1e12 {
		return fmt.Errorf("%q is not a number from 0", v)
	}
	*at = bound(T(n))
	return nil
}

func parseTime(u *engine.Use, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a time such as 30m; 0 is no bound", v)
	}
	u.Time = bound(engine.Duration(d))
	return nil
}

func parseDollars(u *engine.Use, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f < 0 || f > 1e9 {
		return fmt.Errorf("%q is not a number of dollars from 0", v)
	}
	u.Dollars = bound(f)
	return nil
}

// bound is what a policy takes for no bound where a setting says 0.
func bound[T int | int64 | float64 | engine.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// endless has more than anything can use where there is no bound.
func endless(u engine.Use) engine.Use {
	const years = engine.Duration(100 * 365 * 24 * time.Hour)
	return engine.Use{
		Attempts: orMore(u.Attempts, 1<<30), Steps: orMore(u.Steps, 1<<30), Time: orMore(u.Time, years),
		Tokens: orMore(u.Tokens, 1<<60), Dollars: orMore(u.Dollars, 1e15),
	}
}

func orMore[T int | int64 | float64 | engine.Duration](v, more T) T {
	if v < 0 {
		return more
	}
	return v
}

// budgetWords is what is used of a budget and what it allows.
func budgetWords(b engine.Budget) string {
	left := b.Left()
	part := func(used, limit, left string, bounded bool, what string) string {
		if !bounded {
			return used + " " + what
		}
		return fmt.Sprintf("%s of %s %s (%s left)", used, limit, what, left)
	}
	u, l := b.Used, b.Limit
	return join(
		part(strconv.Itoa(u.Attempts), strconv.Itoa(l.Attempts), strconv.Itoa(left.Attempts), l.Attempts > 0, "attempts"),
		part(strconv.Itoa(u.Steps), strconv.Itoa(l.Steps), strconv.Itoa(left.Steps), l.Steps > 0, "steps"),
		part(took(u.Time.D()), took(l.Time.D()), took(left.Time.D()), l.Time > 0, "of time"),
		part(count(u.Tokens), count(l.Tokens), count(left.Tokens), l.Tokens > 0, "tokens"),
		part(fmt.Sprintf("$%.2f", u.Dollars), fmt.Sprintf("$%.2f", l.Dollars), fmt.Sprintf("$%.2f", left.Dollars), l.Dollars > 0, ""),
	)
}

// count is a large number in a few characters.
func count(n int64) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "M"
	case n >= 10_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}
