package healer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/store"
)

// restarts are the verdicts "restart" that are not done with. A restart is no
// run: nothing is edited, and the sandbox is starting, not healing. What is
// left to do about one is read from rows each time (see progress), so neither
// an error nor the end of an engine leaves one behind:
//
//	verdict ─► restart ─► healthy in time ─► done
//	              │              └─ no ─► a new signal, judged at once: repair
//	              └─ can't ─────────────────────────┘
type restarts struct {
	wake chan struct{} // holds one: something is due

	mu   sync.Mutex
	open map[engine.SandboxID]*order
}

// order is one of them.
type order struct {
	sig  engine.Signal
	due  time.Time // when to look at it
	busy bool      // somebody is at it
	seen bool      // meanwhile its rows changed
	// did is what the restart did, in words; "" if this engine made none.
	did string
}

func newRestarts() *restarts {
	return &restarts{wake: make(chan struct{}, 1), open: map[engine.SandboxID]*order{}}
}

// note takes a signal that was judged.
func (r *restarts) note(sig engine.Signal) {
	if sig.Verdict == nil || sig.Verdict.Action != engine.Restart {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.open[sig.Sandbox]; o != nil && o.sig.ID >= sig.ID {
		return
	}
	r.open[sig.Sandbox] = &order{sig: sig}
	r.nudge()
}

// look has the order of a sandbox looked at, if there is one.
func (r *restarts) look(id engine.SandboxID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.open[id]; o != nil {
		o.due, o.seen = time.Time{}, true
		r.nudge()
	}
}

func (r *restarts) nudge() {
	select {
	case r.wake <- struct{}{}:
	default: // somebody nudged already
	}
}

// ready are the orders to look at now, and how long until the next one.
func (r *restarts) ready(now time.Time, most int) (ready []*order, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next = time.Hour
	for _, o := range r.open {
		if o.busy {
			most--
		}
	}
	for _, o := range r.open {
		switch wait := o.due.Sub(now); {
		case o.busy:
		case wait > 0:
			next = min(next, wait)
		case most > 0:
			most--
			o.busy, o.seen = true, false
			ready = append(ready, o)
		}
	}
	return ready, next
}

// put gives an order back, to be looked at when it is due; zero: it is done
// with.
func (r *restarts) put(o *order, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nudge()
	o.busy = false
	switch {
	case r.open[o.sig.Sandbox] != o: // there is a newer one
	case due.IsZero():
		delete(r.open, o.sig.Sandbox)
	case !o.seen:
		o.due = due
	}
}

// followRestarts looks at orders when they are due, until ctx ends. run starts
// a goroutine whose error ends the healer.
func (l *loop) followRestarts(ctx context.Context, run func(func() error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.restarts.wake:
		case <-timer.C:
		}
		ready, next := l.restarts.ready(time.Now(), l.p.PlaybookRuns)
		timer.Reset(next)
		for _, o := range ready {
			run(func() error { return l.followRestart(ctx, o) })
		}
	}
}

// followRestart takes an order one step further.
func (l *loop) followRestart(ctx context.Context, o *order) error {
	var due time.Time
	defer func() { l.restarts.put(o, due) }()
	t, at, err := l.stepRestart(ctx, o, "")
	if err == nil && t == restartNow {
		if err = l.restartApp(ctx, o); err == nil {
			t, at, err = l.stepRestart(ctx, o, "")
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil // the rows tell the next engine
	case err != nil:
		return ignoreGone(err)
	case t == restartWait:
		due = at
	case t == restartNow: // somebody held the sandbox, or its row is about to say so
		due = time.Now().Add(l.p.PollEvery)
	}
	return nil
}

// stepRestart reads how far an order is and writes down what that calls for:
// that it is done, that the sandbox is starting, or a repair. failed is why it
// can't go on, "" if it can.
func (l *loop) stepRestart(ctx context.Context, o *order, failed string) (t task, due time.Time, err error) {
	err = l.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By = actor
		sb, err := tx.Sandbox(o.sig.Sandbox)
		if err != nil {
			return err
		}
		app, _, err := appOf(tx, sb.ID, engine.AppName)
		if err != nil {
			return err
		}
		since := tx.Now.Add(-l.p.FlapWindow)
		if at := o.sig.Verdict.At; at.Before(since) {
			since = at
		}
		runs, err := tx.RunsOf(sb.ID, since)
		if err != nil {
			return err
		}
		var why string
		t, due, why = progress(tx.Now, l.p, o.sig.Verdict.At, sb, app, runs)
		switch {
		case t == restartDone && o.did != "":
			return l.closeRestart(tx, o, why)
		case t != restartDone && failed != "" && (app.State == engine.ProcessFailed || app.Started.Before(o.sig.Verdict.At)):
			t = restartFails
			return l.escalate(tx, sb, runs, o.sig, failed)
		case t == restartFails:
			return l.escalate(tx, sb, runs, o.sig, why)
		}
		return nil
	})
	return t, due, err
}

// closeRestart adds to the verdict how it went.
func (l *loop) closeRestart(tx *store.Tx, o *order, how string) error {
	sig, v := o.sig, *o.sig.Verdict
	v.Reason += "; " + o.did + ": " + how
	sig.Verdict = &v
	return tx.JudgeSignal(sig)
}

// escalate raises the signal anew, saying that a restart was no use, and
// judges it in the same commit: it is repaired, or the verdict says why not.
func (l *loop) escalate(tx *store.Tx, sb engine.Sandbox, runs []engine.HealRun, old engine.Signal, why string) error {
	sig, err := tx.RaiseSignal(engine.Signal{
		Sandbox: sb.ID, Process: old.Process, Kind: old.Kind,
		Observed: line(fmt.Sprintf("restarted, and %s (before: %s)", why, old.Observed), maxCause),
	})
	if err != nil {
		return err
	}
	v, quarantine := judgeBy(tx.Now, l.p, sb, runs, sig, func() (engine.VerdictAction, string) {
		return engine.Repair, reasonWith("a restart was no use", sig)
	})
	return l.answer(tx, sb, sig, v, quarantine)
}

// restartApp restarts the app of an order. That it couldn't be is written down
// and no error: an error is the store's.
func (l *loop) restartApp(ctx context.Context, o *order) error {
	release, ok := l.lanes.hold(o.sig.Sandbox)
	if !ok {
		return nil // it is being saved, or healed: the rows will say which
	}
	defer release()
	sb, ok, err := l.showRestart(ctx, o)
	if err != nil || !ok {
		return err
	}
	o.did = "restarted"
	ctx2, cancel := context.WithTimeout(ctx, sb.Spec.App.StopGrace.D()+restartWithin)
	defer cancel()
	if o.sig.Kind == engine.PressureSignal {
		l.killStrays(ctx2, o)
	}
	err = l.Restart(ctx2, o.sig.Sandbox)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	// Not left to the next look: without a new start there would be none to wait for.
	_, _, err = l.stepRestart(ctx, o, line(l.redact("the app could not be started: "+err.Error()), maxCause))
	return err
}

// showRestart makes the sandbox starting, for everyone to see, with why. ok is
// false if it is not to be restarted any more.
func (l *loop) showRestart(ctx context.Context, o *order) (sb engine.Sandbox, ok bool, err error) {
	err = l.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By = actor
		if sb, err = tx.Sandbox(o.sig.Sandbox); err != nil {
			return err
		}
		app, _, err := appOf(tx, sb.ID, engine.AppName)
		if err != nil {
			return err
		}
		runs, err := tx.RunsOf(sb.ID, o.sig.Verdict.At)
		if err != nil {
			return err
		}
		t, _, _ := progress(tx.Now, l.p, o.sig.Verdict.At, sb, app, runs)
		if ok = t == restartNow; !ok {
			return nil
		}
		reason := line(l.redact(fmt.Sprintf("restarted: %s: %s", o.sig.Kind, o.sig.Observed)), maxReason)
		if sb.Health == engine.Starting {
			sb.Reason = reason
			return tx.PutSandbox(&sb)
		}
		sb, err = tx.FireHealth(sb.ID, engine.Restarted, reason)
		return err
	})
	return sb, ok, err
}

// killStrays kills what earlier starts left running. That it can't is no
// reason not to restart.
func (l *loop) killStrays(ctx context.Context, o *order) {
	box, err := l.Box(ctx, o.sig.Sandbox)
	var killed []string
	if err == nil {
		killed, err = box.KillStrays(ctx)
	}
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("what earlier starts left was not killed", "sandbox", o.sig.Sandbox, "err", err)
	}
	if len(killed) > 0 {
		o.did = line(l.redact("killed "+strings.Join(killed, ", ")), maxCause) + "; restarted"
	}
}

// recallRestart finds the order that an engine before this one left open. One
// that is older had its end.
func (l *loop) recallRestart(tx *store.Tx, sb engine.Sandbox) error {
	past, err := tx.Signals(sb.ID, tx.Now.Add(-2*l.p.restartLimit(sb)))
	if err != nil {
		return err
	}
	for _, sig := range past {
		l.restarts.note(sig)
	}
	return nil
}
