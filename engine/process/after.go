package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"sbx/engine"
	"sbx/store"
)

// errUnwanted is a start that the rows don't ask for any more.
var errUnwanted = errors.New("it is not wanted any more")

func refused(err error) bool { return errors.Is(err, errUnwanted) || errors.Is(err, errTaken) }

// after answers an exit that nobody asked for: it records it and makes the
// next life, at once or after the delay. ok is false if there is none.
//
// A restart without delay is started while its predecessor's exit is being
// committed, so that the disk adds nothing to the time that a server is down.
// That can't start anything twice: the row says "running" or "starting" all
// the while, and an engine that dies in between leaves a row and a process
// that its successor corrects and kills, whichever of the two got further. If
// the rows turn out to say otherwise (somebody stopped it, the healer began)
// the new process is killed before anybody was told of it.
func (a *actor) after(ctx, last context.Context, was life, exit engine.Exit) (life, bool) {
	if a.expectsRestart(ctx, exit) {
		return a.atOnce(ctx, last, was, exit)
	}
	d := a.crashed(last, exit)
	a.sweep(last, was)
	switch {
	case !d.Restart || ctx.Err() != nil:
		return life{}, false
	case d.After > 0 && !a.backoff(ctx, d.After):
		return life{}, false
	case d.After > 0 && !a.resumed(last):
		return life{}, false
	}
	return a.launch(last), true
}

func (a *actor) atOnce(ctx, last context.Context, was life, exit engine.Exit) (life, bool) {
	decided := make(chan Decision, 1)
	// crashed writes a.row; launch doesn't read it.
	go func() { decided <- a.crashed(last, exit) }()
	a.sweep(last, was)
	l := a.launch(last)
	d := <-decided
	if d.Restart && d.After == 0 && ctx.Err() == nil {
		return l, true
	}
	if l.err == nil {
		a.kill(last, l, 0)
		a.clear()
	}
	return life{}, false
}

// expectsRestart is Decide's answer from what the actor knows without asking
// the store.
func (a *actor) expectsRestart(ctx context.Context, exit engine.Exit) bool {
	if ctx.Err() != nil || a.plan.box == nil { // to be prepared from the row, first
		return false
	}
	a.s.mu.Lock()
	c := a.s.sandboxes[a.sandbox]
	wanted := a.wanted
	a.s.mu.Unlock()
	if wanted != engine.WantRunning || !c.up || c.healing {
		return false
	}
	exits := append(slices.Clone(a.row.Exits), exit)
	d := Decide(time.Now(), a.s.policy, a.plan.spec, Past{Exits: a.unasked(exits)})
	return d.Restart && d.After == 0
}

// backoff waits until the delay is over; false if something else is wanted
// before, or the engine leaves.
func (a *actor) backoff(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-a.wake:
		}
		a.s.mu.Lock()
		wanted := a.wanted
		a.s.mu.Unlock()
		if wanted != engine.WantRunning {
			return false
		}
	}
}

// resumed commits that the delay is over and the process is being started. If
// the healer began meanwhile, it is not.
func (a *actor) resumed(last context.Context) bool {
	healing := false
	ok, _ := a.commit(last, func(tx *store.Tx, p *engine.Process) error {
		sb, err := tx.Sandbox(a.sandbox)
		if err != nil {
			return err
		}
		c := conditionOf(sb)
		if p.Wanted != engine.WantRunning || p.State != engine.ProcessBackoff || !c.up {
			return errUnwanted // the next look sees to it
		}
		if healing = c.healing; healing {
			p.State, p.Reason = engine.ProcessFailed, told(*p.Exit)+": the healer decides"
			return nil
		}
		begins(p)
		return nil
	})
	if healing {
		a.hold()
	}
	return ok && !healing
}
