package healer

import (
	"runtime"
	"time"

	"sbx/engine"
)

// Policy bounds what the healer does. The zero value of a field is its default;
// Scale multiplies all intervals.
type Policy struct {
	// PlaybookRuns and MaxModelRuns are the places in the two lanes.
	PlaybookRuns int // 2 per core
	MaxModelRuns int // 4

	// FlapHeals heals within FlapWindow are the most that a sandbox gets; one
	// that needs another is quarantined.
	FlapHeals  int           // 3
	FlapWindow time.Duration // 1 h

	// A sandbox is healthy when Probes probes in a row, spread over VerifyFor,
	// found it so.
	Probes       int           // 3
	VerifyFor    time.Duration // 10 s
	PollEvery    time.Duration // 500 ms; while waiting for the first healthy probe
	RestartWait  time.Duration // 30 s; how long the restart tool waits for health
	GoodAfter    time.Duration // 60 s of ready until a good checkpoint is made
	CheckTimeout time.Duration // 5 min; of the spec's check

	// An app that a verdict restarted has RestartHealthy to be healthy, or its
	// start timeout if that is longer. The same trouble again within
	// RestartAgain calls for a repair.
	RestartHealthy time.Duration // 60 s
	RestartAgain   time.Duration // 10 min

	// The tools' limits. They are not scaled: commands take what they take.
	RunTimeout     time.Duration // 120 s, where a call names none
	RunTimeoutMax  time.Duration // 10 min
	InstallTimeout time.Duration // 15 min
	UndoTimeout    time.Duration // 2 min; of a checkpoint or a rollback

	// Budgets. Steps are per attempt, the others per run.
	Steps    int           // 100
	Attempts int           // 10; a spec may allow fewer
	RunSteps int           // 300
	Minutes  time.Duration // 30 min of model attempts
	Tokens   int64         // 5,000,000
	Dollars  float64       // 5
	// SandboxDay and FleetDay bound what models use in a day (UTC) for one
	// sandbox and for all. A field below zero is no bound.
	SandboxDay engine.Use // 20 attempts, 1,000 steps, 3 h, 20,000,000 tokens, $20
	FleetDay   engine.Use // 500 attempts, 20,000 steps, 48 h, 200,000,000 tokens, $100

	// As many sandboxes that crash alike within IncidentWindow are one incident.
	IncidentSize   int           // 3
	IncidentWindow time.Duration // 5 min
	// Retry is how long to wait in all for a provider that is away.
	Retry time.Duration // 10 min

	KeepGood int     // 3 good checkpoints, and as many of runs, per sandbox
	Scale    float64 // 1

	full bool // filled already
}

// DefaultPolicy is what SPEC §7 says, with a Scale that can still be set.
func DefaultPolicy() Policy {
	p := Policy{}.filled()
	p.full = false
	return p
}

// filled has the defaults in the place of zeros, and the intervals scaled.
// Filling twice changes nothing more.
func (p Policy) filled() Policy {
	if p.full {
		return p
	}
	p.full = true
	number(&p.PlaybookRuns, 2*runtime.NumCPU())
	number(&p.MaxModelRuns, 4)
	number(&p.FlapHeals, 3)
	number(&p.Probes, 3)
	number(&p.Steps, 100)
	number(&p.Attempts, 10)
	number(&p.RunSteps, 300)
	number(&p.IncidentSize, 3)
	p.fillDays()
	number(&p.Tokens, 5_000_000)
	number(&p.Dollars, 5)
	number(&p.KeepGood, 3)
	number(&p.Scale, 1)

	number(&p.RunTimeout, 120*time.Second)
	number(&p.RunTimeoutMax, 10*time.Minute)
	number(&p.InstallTimeout, 15*time.Minute)
	number(&p.CheckTimeout, 5*time.Minute)
	number(&p.UndoTimeout, 2*time.Minute)
	number(&p.Minutes, 30*time.Minute)
	number(&p.Retry, 10*time.Minute)

	p.scaled(&p.FlapWindow, time.Hour)
	p.scaled(&p.IncidentWindow, 5*time.Minute)
	p.scaled(&p.VerifyFor, 10*time.Second)
	p.scaled(&p.PollEvery, 500*time.Millisecond)
	p.scaled(&p.RestartWait, 30*time.Second)
	p.scaled(&p.GoodAfter, 60*time.Second)
	p.scaled(&p.RestartHealthy, 60*time.Second)
	p.scaled(&p.RestartAgain, 10*time.Minute)
	return p
}

func (p *Policy) fillDays() {
	fill := func(u *engine.Use, otherwise engine.Use) {
		orDefault(&u.Attempts, otherwise.Attempts)
		orDefault(&u.Steps, otherwise.Steps)
		orDefault(&u.Time, otherwise.Time)
		orDefault(&u.Tokens, otherwise.Tokens)
		orDefault(&u.Dollars, otherwise.Dollars)
	}
	hours := func(n int) engine.Duration { return engine.Duration(time.Duration(n) * time.Hour) }
	fill(&p.SandboxDay, engine.Use{Attempts: 20, Steps: 1000, Time: hours(3), Tokens: 20_000_000, Dollars: 20})
	fill(&p.FleetDay, engine.Use{Attempts: 500, Steps: 20_000, Time: hours(48), Tokens: 200_000_000, Dollars: 100})
}

// orDefault is number, but less than zero stays: it is no bound.
func orDefault[T int | int64 | float64 | engine.Duration](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

func number[T int | int64 | float64 | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

func (p Policy) scaled(v *time.Duration, otherwise time.Duration) {
	number(v, otherwise)
	*v = max(time.Millisecond, time.Duration(float64(*v)*p.Scale))
}

// patience is how long a start may take until the app is healthy.
func (p Policy) patience(startTimeout, otherwise time.Duration) time.Duration {
	p = p.filled()
	p.scaled(&startTimeout, otherwise)
	return startTimeout
}
