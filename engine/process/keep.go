package process

import (
	"context"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// Where a box keeps its processes, they and their logs go on without the
// engine: one that leaves, or is killed, leaves them running, and the next
// takes up each life where it stands. Its row keeps its pid, its place in the
// log and its counts, and an exit that came meanwhile is told as it was.

// keep starts a process that outlives this engine.
func (a *actor) keep(last context.Context, box driver.Keeper) life {
	k, err := box.Keep(last, a.id, a.plan.cmd, !a.supervised && a.plan.cmd.Terminal == nil, !a.supervised)
	if err != nil {
		a.endLogs()
		return life{err: err, started: time.Now()}
	}
	l := lifeOf(k)
	a.s.mu.Lock()
	a.begun(k)
	a.s.mu.Unlock()
	return l
}

func lifeOf(k driver.Kept) life {
	b := k.Began()
	return life{proc: k, kept: k, started: b.At, logStart: b.Log}
}

// adopt takes up the life of a process that an engine before this one started.
func (a *actor) adopt(ctx context.Context) (life, bool) {
	a.s.mu.Lock()
	inherited := a.s.inherited[a.id]
	delete(a.s.inherited, a.id)
	a.s.mu.Unlock()
	if !inherited {
		return life{}, false
	}
	box, err := a.s.Box(ctx, a.sandbox)
	if err != nil {
		return life{}, false
	}
	keeper, ok := box.(driver.Keeper)
	if !ok {
		return life{}, false
	}
	k, ok := keeper.Kept(a.id)
	if !ok {
		return life{}, false
	}
	if a.plan, err = a.prepare(ctx); err != nil {
		a.complain("taking it up", err) // its end is noticed all the same
	} else if l := a.plan.cmd.Limits; l != nil {
		keeper.Hold(*l)
	}
	a.asked = a.row.Started
	l := lifeOf(k)
	l.adopted = true
	a.s.mu.Lock()
	a.begun(k)
	a.s.mu.Unlock()
	return l, true
}

// stands reports whether the row says of a life what is true of it.
func (a *actor) stands(l life) bool {
	return l.adopted && a.row.PID == l.proc.PID() && a.row.LogStart == int64(l.logStart) &&
		(a.row.State == engine.ProcessRunning || a.row.State == engine.ProcessStopping)
}

// leaves reports whether a life goes on when this engine ends.
func (a *actor) leaves(l life) bool { return l.kept != nil && (a.s.Leave || l.adopted) }

// forget says that the end of a life is in its row.
func (l life) forget() {
	if l.kept != nil {
		l.kept.Forget()
	}
}

// lost reports whether a life ended because what held it in the engine's place
// did: no fault of its own.
func (l life) lost() bool { return l.kept != nil && l.kept.Lost() }
