package main

import (
	"context"
	"fmt"
	"regexp"

	"sbx/engine"
)

// healerLog tells the healer's history in time order and, following, goes on
// with the journal from exactly where the history ended.
func (c *cli) healerLog(ctx context.Context, ref string, f logsFlags, oneAttempt bool) error {
	match, err := f.check()
	if err != nil {
		return err
	}
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx) // before the history: its position is where following begins
	if err != nil {
		return err
	}
	t := &teller{c: c, e: e, snap: snap, q: engine.HealQuery{Since: f.from(), Limit: f.tail}}
	t.story = story{
		full: f.full, diffs: f.diffs, told: map[engine.IncidentID]string{},
		name: func(id engine.SandboxID) string { return nameOf(t.snap, id) },
	}
	if f.grep != "" {
		t.match = match
	}
	if oneAttempt {
		t.q.Attempt = &f.attempt
	}
	if ref != "" {
		sb, err := snap.Find(ref)
		if err != nil {
			return err
		}
		t.q.Sandbox, t.story.name = sb.ID, nil
	}
	if f.run != "" {
		if t.q.Run, err = t.findRun(ctx, f.run); err != nil {
			return err
		}
	}
	if err := t.history(ctx); err != nil || !f.follow {
		return err
	}
	return t.follow(ctx)
}

// teller prints records of the healer, each once: history first, then what
// happens.
type teller struct {
	c     *cli
	e     engine.Engine
	snap  *engine.Snapshot
	q     engine.HealQuery
	story story
	match *regexp.Regexp // nil: all
	// last is the record that was looked at last: where history goes on after
	// the journal has moved past what was read.
	last engine.Seq
}

// findRun is the run that a person means by ref: an id or a unique prefix of one.
func (t *teller) findRun(ctx context.Context, ref string) (engine.RunID, error) {
	found := engine.RunID("")
	for ev, err := range t.e.Heals(ctx, engine.HealQuery{Sandbox: t.q.Sandbox}) {
		if err != nil {
			return "", err
		}
		b, ok := ev.Body.(engine.HealStarted)
		if !ok || len(ref) <= len(engine.RunPrefix) || len(ref) > len(b.Run.ID) || string(b.Run.ID[:len(ref)]) != ref {
			continue
		}
		if found != "" && found != b.Run.ID {
			return "", engine.Errorf(engine.Invalid, "%q fits several runs", ref).WithHint("type more of the id")
		}
		found = b.Run.ID
	}
	if found == "" {
		return "", engine.Errorf(engine.NotFound, "no heal run %q", ref).WithHint("see them with: sbx logs --healer")
	}
	return found, nil
}

// history tells the records up to the snapshot's position.
func (t *teller) history(ctx context.Context) error {
	n := 0
	for ev, err := range t.e.Heals(ctx, t.q) {
		if err != nil {
			return err
		}
		if ev.Seq > t.snap.Position.Seq {
			break // the journal tells it, if we follow
		}
		n++
		if err := t.tell(ev); err != nil {
			return err
		}
	}
	if n == 0 && !t.c.json {
		t.c.say("the healer has had nothing to do")
	}
	t.last = max(t.last, t.snap.Position.Seq)
	return nil
}

// follow tells what happens. Where the journal has moved on past what was read
// (a connection that was away for long), the history has what is missing.
func (t *teller) follow(ctx context.Context) error {
	for {
		err := t.journal(ctx)
		if engine.AsCode(err) != engine.Compacted {
			return err
		}
		epoch := t.snap.Position.Epoch
		if t.snap, err = t.e.Snapshot(ctx); err != nil {
			return err
		}
		if t.snap.Position.Epoch != epoch {
			t.last = 0 // a restored engine issues numbers again: nothing of it was told
		}
		t.q.After, t.q.Limit = t.last, 0
		if err := t.history(ctx); err != nil {
			return err
		}
	}
}

func (t *teller) journal(ctx context.Context) error {
	for ev, err := range t.e.Events(ctx, t.snap.Position) {
		if err != nil {
			return err
		}
		t.snap.Apply(ev)
		if t.wanted(ev) {
			if err := t.tell(ev); err != nil {
				return err
			}
		}
		t.last = ev.Seq
	}
	return ctx.Err()
}

// wanted reports whether the history, asked the same, would have the record.
func (t *teller) wanted(ev engine.Event) bool {
	switch {
	case !ofHealer(ev), t.q.Sandbox != "" && ev.Body.Of() != t.q.Sandbox, t.q.Run != "" && runOf(ev) != t.q.Run:
		return false
	}
	return attemptWanted(t.q, ev)
}

// runOf is the run that a record is of.
func runOf(ev engine.Event) engine.RunID {
	switch b := ev.Body.(type) {
	case engine.SignalRaised:
		return b.Signal.Run
	case engine.SignalJudged:
		return b.Signal.Run
	case engine.HealStarted:
		return b.Run.ID
	case engine.HealAttempted:
		return b.Attempt.Run
	case engine.HealStepped:
		return b.Step.Run
	case engine.HealFinished:
		return b.Run.ID
	case engine.HealNoted:
		return b.Note.Run
	}
	return ""
}

// attemptWanted reports whether a record is of the attempt that was asked for.
func attemptWanted(q engine.HealQuery, ev engine.Event) bool {
	if q.Attempt == nil {
		return true
	}
	switch b := ev.Body.(type) {
	case engine.HealAttempted:
		return b.Attempt.Number == *q.Attempt
	case engine.HealStepped:
		return b.Step.Attempt == *q.Attempt
	}
	return false
}

// tell prints a record, if it is one that was asked for.
func (t *teller) tell(ev engine.Event) error {
	t.last = ev.Seq
	lines := t.story.tell(ev)
	if t.match != nil && !anyMatch(t.match, lines) {
		return nil
	}
	return t.c.printRecord(ev, lines)
}

func anyMatch(re *regexp.Regexp, lines []string) bool {
	for _, l := range lines {
		if re.MatchString(l) {
			return true
		}
	}
	return false
}

// tellEvent prints a record of the healer: JSON, or its lines.
func (c *cli) tellEvent(s story, ev engine.Event) error { return c.printRecord(ev, s.tell(ev)) }

func (c *cli) printRecord(ev engine.Event, lines []string) error {
	if c.json {
		if !ofHealer(ev) {
			return nil
		}
		return c.printJSON(ev)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.out, line); err != nil {
			return err
		}
	}
	return nil
}

// ofHealer reports whether an event is of the kinds that the healer's history
// keeps.
func ofHealer(ev engine.Event) bool {
	switch b := ev.Body.(type) {
	case engine.SignalRaised, engine.SignalJudged, engine.HealStarted, engine.HealAttempted, engine.HealFinished,
		engine.HealNoted, engine.IncidentChanged:
		return true
	case engine.HealStepped:
		return b.Step.State != engine.StepRunning
	}
	return false
}
