package healer

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/driver"
	"sbx/store"
)

// Healer judges signals and heals. Its fields are set before Run.
type Healer struct {
	Store *store.Store
	// Box finds the box of a sandbox.
	Box func(ctx context.Context, id engine.SandboxID) (driver.Box, error)
	// Turn keeps operators from a sandbox's files and checkpoints until it is
	// given back; nil: there is nobody else.
	Turn func(id engine.SandboxID) (back func())
	// Model heals what playbooks can't; nil for none, and NoModel says why.
	Model   agent.Model
	NoModel string
	// Confined: what the model runs is kept from protected paths and from
	// everything outside the workspace. Without that no model is asked.
	Confined bool
	Policy   Policy
	// Restart restarts the app; it returns when it was started or couldn't be.
	// Unless a run is open, its sandbox is starting from then on.
	Restart func(ctx context.Context, id engine.SandboxID) error
	// LogTail is the end, at most maxBytes, of what a process wrote since from.
	LogTail func(ctx context.Context, id engine.ProcessID, from engine.LogPosition, maxBytes int) (string, error)
	// Stuck is the last line of an app that says it is busy, "" if it doesn't:
	// what a stalled app's repair must have changed. nil: nobody can tell.
	Stuck func(app engine.Process) string
	// Probe is one GET on a sandbox's health path.
	Probe func(ctx context.Context, sb engine.Sandbox) engine.Probe
	// Redact hides every secret that the engine knows; nil hides nothing.
	Redact func(string) string
	Log    *slog.Logger
}

// Run judges and heals until ctx ends. Runs that are under way then stay open
// in their rows: the next Run undoes what they did, and has their sandboxes
// judged again.
func (h *Healer) Run(ctx context.Context) error {
	l := &loop{Healer: h, p: h.Policy.filled(), lanes: newLanes(), good: newSchedule(), pauses: newSchedule(), restarts: newRestarts(), chats: newChats()}
	if err := l.recover(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.consume(ctx) })
	g.Go(func() error { return l.keepGood(ctx) })
	g.Go(func() error { return l.endPauses(ctx) })
	g.Go(func() error {
		return l.followRestarts(ctx, func(do func() error) { g.Go(do) })
	})
	g.Go(func() error { return l.answerTurns(ctx, func(do func() error) { g.Go(do) }) })
	g.Go(func() error {
		return l.startRuns(ctx, func(run engine.HealRun) {
			g.Go(func() error { return l.heal(ctx, run) })
		})
	})
	return g.Wait()
}

// loop is one Run of a Healer.
type loop struct {
	*Healer
	p     Policy
	lanes *lanes
	good  *schedule
	// pauses are the sandboxes in maintenance that ends by itself.
	pauses *schedule
	cut    interrupted // touched by recover and then by consume alone

	restarts *restarts
	chats    *chats
	// incidents: there are open ones, so that what happens to sandboxes matters
	// to them.
	incidents atomic.Bool
}

// consume judges each event in the transaction that moves the cursor, and looks
// after each commit at what the event may have changed for a run.
func (l *loop) consume(ctx context.Context) error {
	for id := range l.cut { // their events may be behind the cursor
		if err := l.raiseAgain(ctx, id); err != nil {
			return err
		}
	}
	for ev, err := range l.Store.Consume(ctx, "healer", l.judgeEvent) {
		if err != nil {
			return err
		}
		if err := l.notice(ctx, ev); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (l *loop) judgeEvent(tx *store.Tx, ev engine.Event) error {
	tx.By = actor
	switch b := ev.Body.(type) {
	case engine.SignalRaised:
		return ignoreGone(l.judgeSignal(tx, b.Signal))
	case engine.SandboxChanged:
		if !wantedUp(b.Sandbox) {
			return ignoreGone(l.dropQueued(tx, b.Sandbox.ID))
		}
	}
	return nil
}

// judgeSignal judges a signal as the rows are now, not as they were when it
// was raised.
func (l *loop) judgeSignal(tx *store.Tx, sig engine.Signal) error {
	past, err := tx.Signals(sig.Sandbox, tx.Now.Add(-max(l.p.FlapWindow, l.p.RestartAgain, tx.Now.Sub(sig.At)+time.Second)))
	if err != nil {
		return err
	}
	for _, s := range past {
		if s.ID == sig.ID && s.Verdict != nil {
			return nil // judged where it was raised
		}
	}
	sb, err := tx.Sandbox(sig.Sandbox)
	if err != nil {
		return err
	}
	runs, err := tx.RunsOf(sb.ID, tx.Now.Add(-l.p.FlapWindow))
	if err != nil {
		return err
	}
	var proc engine.Process
	if sig.Process != "" {
		if proc, err = tx.Process(sig.Process); err != nil && engine.AsCode(err) != engine.NotFound {
			return err
		}
	}
	v, quarantine := judge(tx.Now, l.p, sb, proc, past, runs, sig)
	return l.answer(tx, sb, sig, v, quarantine)
}

// answer writes a verdict and does of it what can be done in a transaction.
func (l *loop) answer(tx *store.Tx, sb engine.Sandbox, sig engine.Signal, v engine.Verdict, quarantine bool) error {
	if quarantine {
		if err := l.quarantine(tx, sb, v.Reason); err != nil {
			return err
		}
	}
	if v.Action != engine.Repair {
		return judged(tx, sig, v, "")
	}
	_, err := openRun(tx, sb, sig, v, engine.HealRun{Cause: l.redact(causeOf(sig)), By: actor})
	return err
}

// quarantine gives a sandbox up without another run.
func (l *loop) quarantine(tx *store.Tx, sb engine.Sandbox, reason string) error {
	if err := fireHealth(tx, sb.ID, engine.Fault, reason); err != nil {
		return err
	}
	return fireHealth(tx, sb.ID, engine.GaveUp, reason)
}

// dropQueued ends a queued run whose sandbox is not wanted up any more.
func (l *loop) dropQueued(tx *store.Tx, id engine.SandboxID) error {
	sb, err := tx.Sandbox(id)
	if err != nil || wantedUp(sb) {
		return err
	}
	run, open, err := tx.OpenRun(id)
	if err != nil || !open || run.State != engine.RunQueued {
		return err
	}
	run.Outcome, run.Summary = engine.Cancelled, "cut: the sandbox is "+downWords(sb)
	return closeQueued(tx, run)
}

func wantedUp(sb engine.Sandbox) bool { return sb.Wanted == engine.Up && sb.State.Live() }

// ignoreGone: a sandbox that was removed meanwhile needs no verdict.
func ignoreGone(err error) error {
	if engine.AsCode(err) == engine.NotFound {
		return nil
	}
	return err
}

// notice looks at what a committed event means for runs. It reads rows where
// it matters: the event may be old.
func (l *loop) notice(ctx context.Context, ev engine.Event) error {
	id := ev.Body.Of()
	l.restarts.look(id)
	if l.incidents.Load() {
		l.lanes.nudge()
	}
	switch b := ev.Body.(type) {
	case engine.SignalJudged:
		l.restarts.note(b.Signal)
		l.lanes.nudge()
	case engine.SignalRaised, engine.HealStarted, engine.HealFinished:
		l.lanes.nudge()
	case engine.HealChanged:
		if b.Run.Outcome != "" {
			return l.lookAtRun(ctx, id)
		}
	case engine.ChatMessaged:
		l.chats.noteMessage(b.Message)
	case engine.SandboxRemoved:
		l.good.drop(id)
		l.pauses.drop(id)
		return l.lookAtRun(ctx, id)
	case engine.SandboxChanged:
		l.good.noteHealth(b.Sandbox, l.p.GoodAfter)
		l.pauses.notePause(b.Sandbox, time.Now())
		if !wantedUp(b.Sandbox) {
			l.chats.drop(b.Sandbox.Chat, "cut: the sandbox is "+downWords(b.Sandbox))
			if err := l.lookAtRun(ctx, id); err != nil {
				return err
			}
		}
		return l.raiseAgain(ctx, id)
	case engine.ProcessChanged:
		return l.raiseAgain(ctx, id)
	}
	return nil
}

// lookAtRun cuts the run that works on a sandbox if its row, or the sandbox's,
// says that it is over.
func (l *loop) lookAtRun(ctx context.Context, id engine.SandboxID) error {
	l.lanes.nudge()
	a := l.lanes.of(id)
	if a == nil {
		return nil
	}
	var why *cutError
	err := l.Store.View(ctx, func(tx *store.Tx) error {
		_, err := standing(tx, a.run)
		if !errors.As(err, &why) {
			return err
		}
		return nil
	})
	if why != nil {
		a.cut(why)
	}
	return err
}

func (l *loop) redact(s string) string {
	if l.Redact == nil {
		return s
	}
	return l.Redact(s)
}

// causeOf is a signal as the cause of a run, in words.
func causeOf(sig engine.Signal) string {
	seen := line(sig.Observed, maxCause)
	if seen != "" {
		return seen
	}
	if sig.Exit != nil {
		return sig.Exit.String()
	}
	return string(sig.Kind)
}
