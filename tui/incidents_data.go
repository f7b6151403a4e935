package tui

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"sbx/engine"
)

// episode is one heal run with its attempts: a lane of the timeline.
type episode struct {
	run      engine.HealRun
	attempts []engine.Attempt
	signal   engine.Signal
	name     string // of the sandbox, as it was known last
}

// end is when it ended; now while it goes on.
func (e *episode) end(now time.Time) time.Time {
	if e.run.Open() {
		return now
	}
	return e.run.Ended
}

// keptEpisodes is how many runs the timeline remembers.
const keptEpisodes = 2000

// chronicle folds the healer's records into episodes. A record may come twice:
// from the history, and as an event.
type chronicle struct {
	runs    map[engine.RunID]*episode
	signals map[engine.SignalID]engine.Signal
}

// take folds in one record. name is what the sandbox is called.
func (c *chronicle) take(ev engine.Event, name string) {
	switch b := ev.Body.(type) {
	case engine.SignalRaised:
		c.signal(b.Signal)
	case engine.SignalJudged:
		c.signal(b.Signal)
	case engine.HealStarted:
		c.run(b.Run, name)
	case engine.HealChanged:
		c.run(b.Run, name)
	case engine.HealFinished:
		c.run(b.Run, name)
	case engine.HealAttempted:
		c.attempt(b.Attempt)
	}
}

func (c *chronicle) signal(s engine.Signal) {
	if c.signals == nil {
		c.signals = map[engine.SignalID]engine.Signal{}
	}
	if len(c.signals) > 2*keptEpisodes {
		clear(c.signals) // those that matter are with their runs
	}
	c.signals[s.ID] = s
}

func (c *chronicle) run(r engine.HealRun, name string) {
	if c.runs == nil {
		c.runs = map[engine.RunID]*episode{}
	}
	e := c.runs[r.ID]
	if e == nil {
		c.trim()
		e = &episode{}
		c.runs[r.ID] = e
	}
	if e.run.State == engine.RunEnded && r.Open() {
		return // the history is older than what was seen
	}
	e.run = r
	e.name = cmp.Or(name, e.name, string(r.Sandbox))
	if sig, ok := c.signals[r.Signal]; ok {
		e.signal = sig
	}
}

func (c *chronicle) attempt(a engine.Attempt) {
	e := c.runs[a.Run]
	if e == nil {
		return
	}
	i := slices.IndexFunc(e.attempts, func(o engine.Attempt) bool { return o.Number == a.Number })
	switch {
	case i < 0:
		e.attempts = append(e.attempts, a)
	case e.attempts[i].Outcome == "" || a.Outcome != "":
		e.attempts[i] = a
	}
}

// trim forgets the oldest run when there are too many.
func (c *chronicle) trim() {
	if len(c.runs) < keptEpisodes {
		return
	}
	var oldest engine.RunID
	for id, e := range c.runs {
		if oldest == "" || e.run.Started.Before(c.runs[oldest].run.Started) {
			oldest = id
		}
	}
	delete(c.runs, oldest)
}

// list are the episodes since a moment, those that need somebody first: broken
// and still so, then open, then the rest, newest first.
func (c *chronicle) list(since time.Time, broken func(engine.SandboxID) bool) []*episode {
	var list []*episode
	latest := map[engine.SandboxID]time.Time{}
	for _, e := range c.runs {
		if e.run.Open() || e.run.Ended.After(since) {
			list = append(list, e)
		}
		if e.run.Started.After(latest[e.run.Sandbox]) {
			latest[e.run.Sandbox] = e.run.Started
		}
	}
	rank := func(e *episode) int {
		switch {
		case e.run.Open():
			return 1
		case gaveUp(e.run) && broken(e.run.Sandbox) && e.run.Started.Equal(latest[e.run.Sandbox]):
			return 0
		}
		return 2
	}
	slices.SortFunc(list, func(a, b *episode) int {
		return cmp.Or(rank(a)-rank(b), b.run.Started.Compare(a.run.Started), strings.Compare(string(a.run.ID), string(b.run.ID)))
	})
	return list
}

func gaveUp(r engine.HealRun) bool {
	return r.Outcome == engine.NotHealed || r.Outcome == engine.OverBudget
}

// tally is how a range went, for its head.
type tally struct {
	open, closed, healed int
	median               time.Duration // of those that healed
}

func tallyOf(list []*episode) tally {
	var t tally
	var took []time.Duration
	for _, e := range list {
		if e.run.Open() {
			t.open++
			continue
		}
		t.closed++
		if e.run.Outcome == engine.Healed {
			t.healed++
			took = append(took, e.run.Ended.Sub(e.run.Started))
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		t.median = took[len(took)/2]
	}
	return t
}

// pattern is one cause in several sandboxes within an hour: then the cause is
// most likely a change, not a sandbox.
type pattern struct {
	cause     string
	sandboxes int
	since     time.Time
}

// varying is what differs between two tellings of one fault.
var varying = regexp.MustCompile(`0x[0-9a-fA-F]+|\b[0-9a-f]{7,}\b|\d+`)

// causeOf is what an episode failed on, with what varies taken out.
func causeOf(e *episode) string {
	text := oneLine(e.run.Summary)
	if text == "" {
		text = oneLine(cmp.Or(e.signal.Observed, e.run.Cause))
	}
	return varying.ReplaceAllString(text, "#")
}

// patternsOf are the causes that at least two sandboxes share within an hour,
// the commonest first.
func patternsOf(list []*episode) []pattern {
	groups := map[string][]*episode{}
	for _, e := range list {
		if cause := causeOf(e); cause != "" {
			groups[cause] = append(groups[cause], e)
		}
	}
	var found []pattern
	for cause, group := range groups {
		slices.SortFunc(group, func(a, b *episode) int { return a.run.Started.Compare(b.run.Started) })
		p := pattern{cause: cause}
		for i, e := range group {
			seen := map[engine.SandboxID]bool{}
			for _, o := range group[i:] {
				if o.run.Started.Sub(e.run.Started) <= time.Hour {
					seen[o.run.Sandbox] = true
				}
			}
			if len(seen) > p.sandboxes {
				p.sandboxes, p.since = len(seen), e.run.Started
			}
		}
		if p.sandboxes >= 2 {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b pattern) int {
		return cmp.Or(b.sandboxes-a.sandboxes, strings.Compare(a.cause, b.cause))
	})
	return found
}
