package healer

import (
	"context"
	"fmt"
	"slices"

	"sbx/engine"
	"sbx/store"
)

// interrupted are the last runs of sandboxes that are to be judged again. The
// rows say it too, so nothing is lost with this map.
type interrupted map[engine.SandboxID]engine.HealRun

// move is what to do for a sandbox whose last run was cut.
type move int

const (
	notYet move = iota // how it is doing will be known later
	forget             // somebody else took it up: a signal, a run, an operator
	raise              // its trouble is still there, and nobody else will say so
	fine               // it works
)

// again decides about a sandbox whose last run was cut, from what is now. It is
// pure. An app that is starting tells by itself how that ends: it passes a
// probe, or its supervisor or a detector raises a signal. Only where it was not
// started again nobody would: then the old signal is raised anew.
func again(sb engine.Sandbox, app engine.Process, since []engine.Signal) move {
	up := sb.State.Live() && sb.State != engine.Warming
	switch {
	case len(since) > 0, sb.Wanted != engine.Up, sb.Health == engine.Healing, sb.Health == engine.Broken:
		return forget
	case !up:
		return notYet
	case sb.Health == engine.Ready:
		return fine
	case app.State == engine.ProcessFailed || app.State == engine.ProcessExited:
		return raise
	case sb.Health == engine.Starting || app.State != engine.ProcessRunning:
		return notYet
	case sb.Spec.App.Health == "":
		return fine
	}
	return raise
}

// raiseAgain has a sandbox judged again whose run was cut, in one transaction
// with the look at its rows, so that it happens once.
func (l *loop) raiseAgain(ctx context.Context, id engine.SandboxID) error {
	run, ok := l.cut[id]
	if !ok {
		return nil
	}
	var m move
	err := l.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By = actor
		sb, err := tx.Sandbox(id)
		if err != nil {
			return err
		}
		app, _, err := appOf(tx, id, engine.AppName)
		if err != nil {
			return err
		}
		since, err := tx.Signals(id, run.Ended)
		if err != nil {
			return err
		}
		since = slices.DeleteFunc(since, func(s engine.Signal) bool { // judged while the run was open
			return s.Verdict != nil && !s.At.After(run.Ended)
		})
		if m = again(sb, app, since); m != raise && m != fine {
			return nil
		}
		sig, err := signalOf(tx, run)
		if err != nil {
			return err
		}
		return l.raiseAnew(tx, sig, m)
	})
	if err != nil && engine.AsCode(err) != engine.NotFound {
		return err
	}
	if m != notYet || err != nil {
		delete(l.cut, id)
	}
	return nil
}

func (l *loop) raiseAnew(tx *store.Tx, old engine.Signal, m move) error {
	const suffix = " (again, after the engine restarted)"
	sig, err := tx.RaiseSignal(engine.Signal{
		Sandbox: old.Sandbox, Process: old.Process, Kind: old.Kind, Exit: old.Exit, Probes: old.Probes, At: tx.Now,
		Observed: line(old.Observed, maxCause) + suffix,
	})
	if err != nil || m == raise {
		return err // consume judges it like any other
	}
	return judged(tx, sig, engine.Verdict{
		Action: engine.Ignore, Reason: "it works again after the engine restarted", At: tx.Now,
	}, "")
}

// String is for the engine's log and for tests.
func (m move) String() string {
	names := [...]string{"not yet", "forget", "raise", "fine"}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("move(%d)", int(m))
	}
	return names[m]
}
