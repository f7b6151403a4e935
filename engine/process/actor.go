package process

import (
	"context"
	"errors"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// An actor is the life of one row, for as long as there is something to do:
//
//	rows say      ┌────────────── wanted again ──────────────┐
//	  start ─► starting ─► running ─► exit ─┬─ asked ─► stopped, exited
//	              ▲                         └─ decide ─┬─ give up ─► failed
//	              └───── backoff ◄──── again in a while ┘
//
// It is one goroutine, and waits in the driver's Wait. Whatever it commits it
// decides from the row inside the transaction: what it was told is a hint to
// look, and may be old.
type actor struct {
	s          *Supervisor
	id         engine.ProcessID
	sandbox    engine.SandboxID
	supervised bool
	wake       chan struct{} // one token: look at the row

	// Guarded by Supervisor.mu.
	seen      engine.Seq // of the row that wanted is from
	wanted    engine.WantedProcess
	renewed   bool
	again     bool               // something was told since the last look
	interrupt context.CancelFunc // ends the wait for the exit
	proc      driver.Proc        // that lives
	input     *Input             // of proc; nil if it has none
	exited    bool               // there was a proc

	// The goroutine's own.
	asked   time.Time // the last start that somebody asked for
	left    bool      // it goes on without this engine
	crashes int       // exits since then that nobody asked for
	row     engine.Process
	plan    launch
}

// tell gives the actor a row that an event carries. The caller holds mu.
func (a *actor) tell(seq engine.Seq, p engine.Process) {
	if seq <= a.seen {
		return // its own, or older
	}
	a.seen = seq
	if p.State == engine.ProcessFailed && p.Wanted != engine.WantRunning {
		a.renewed = true
	}
	a.poke(p.Wanted)
}

// poke makes the actor look at its row. The caller holds mu.
func (a *actor) poke(wanted engine.WantedProcess) {
	a.wanted, a.again = wanted, true
	select {
	case a.wake <- struct{}{}:
	default:
	}
	if wanted != engine.WantRunning && a.interrupt != nil {
		a.interrupt()
	}
}

// run does what the row needs until it needs nothing.
func (a *actor) run(ctx, last context.Context) {
	for ctx.Err() == nil {
		todo, err := a.look(ctx)
		switch {
		case err != nil && engine.AsCode(err) != engine.NotFound:
			a.complain("reading its row", err)
			sleep(ctx, time.Second)
		case err != nil || todo == rest:
			if a.leave() {
				return
			}
		case todo == settle:
			a.settle(last)
		default:
			a.live(ctx, last)
		}
	}
	a.quit(last)
}

// look reads the row and says what it needs.
func (a *actor) look(ctx context.Context) (step, error) {
	a.s.mu.Lock()
	a.again = false
	a.s.mu.Unlock()
	err := a.s.Store.View(ctx, func(tx *store.Tx) (err error) {
		a.row, err = tx.Process(a.id)
		return err
	})
	if err != nil {
		return rest, err
	}
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return next(a.row, a.s.outlook(a.row, a.renewed)), nil
}

// leave ends the actor, unless it was told something since it looked.
func (a *actor) leave() bool {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.again {
		return false
	}
	delete(a.s.actors, a.id)
	return true
}

// quit ends the actor because the engine leaves. What it was about to start
// again is stopped, and still wanted.
func (a *actor) quit(last context.Context) {
	if a.supervised && !a.row.State.Over() && !a.left {
		a.commit(last, func(_ *store.Tx, p *engine.Process) error {
			if !p.State.Over() {
				p.State, p.Reason, p.PID = engine.ProcessStopped, Stopped, 0
			}
			return nil
		})
	}
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	delete(a.s.actors, a.id)
}

// live starts the process and stays with it until it has ended and nothing is
// to be done about that at once.
func (a *actor) live(ctx, last context.Context) {
	l, ok := a.adopt(ctx)
	if !ok {
		l, ok = a.first(ctx, last)
	}
	for ok {
		if l.err == nil && !a.stands(l) && !a.running(last, l) {
			return
		}
		exit, asked := a.await(ctx, last, l)
		if a.left {
			return
		}
		a.clear()
		a.drain(l)
		if asked || !a.supervised {
			a.ended(last, exit)
			l.forget()
			return
		}
		l, ok = a.after(ctx, last, l, exit)
	}
}

// await waits for the end of a life, and brings it about where that is wanted:
// it was stopped, its time is over, or the engine leaves.
func (a *actor) await(ctx, last context.Context, l life) (exit engine.Exit, asked bool) {
	if l.err != nil {
		return notStarted(l.err), false
	}
	for {
		exit, err := a.wait(ctx, l)
		switch {
		case err == nil:
			return exit, l.lost()
		case ctx.Err() != nil && a.leaves(l):
			a.left = true
			return exit, true
		case ctx.Err() != nil:
			return a.kill(last, l, min(a.grace(), a.s.policy.SpawnGrace)), true
		case errors.Is(err, context.DeadlineExceeded):
			exit = a.kill(last, l, a.grace())
			exit.Code, exit.TimedOut, exit.Killed, exit.Signal = engine.ExitTimeout, true, false, ""
			return exit, true
		case !errors.Is(err, context.Canceled):
			a.complain("waiting for its exit", err)
			return a.kill(last, l, 0), false
		case a.unwanted(last):
			return a.kill(last, l, a.grace()), true
		}
	}
}

// wait is one wait for the exit, which a changed want or the command's timeout
// cuts short.
func (a *actor) wait(ctx context.Context, l life) (engine.Exit, error) {
	var cancel context.CancelFunc
	if limit := a.plan.timeout; limit > 0 {
		ctx, cancel = context.WithDeadline(ctx, l.started.Add(limit))
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	a.s.mu.Lock()
	a.interrupt = cancel
	if a.wanted != engine.WantRunning {
		cancel()
	}
	a.s.mu.Unlock()

	exit, err := l.proc.Wait(ctx)

	a.s.mu.Lock()
	a.interrupt = nil
	a.s.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return l.dated(exit), err
}

// kill ends a life with all its descendants.
func (a *actor) kill(last context.Context, l life, grace time.Duration) engine.Exit {
	// Also when the time for leaving is over: nothing may be left running.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(last), grace+killTimeout)
	defer cancel()
	if err := l.proc.Kill(ctx, grace); err != nil {
		a.complain("killing it", err)
	}
	exit, err := l.proc.Wait(ctx)
	if err != nil {
		exit = engine.Exit{Code: engine.ExitSignalBase + 9, Signal: "SIGKILL"}
	}
	exit.Killed = true
	return l.dated(exit)
}

// killTimeout is how long the kernel may take to be rid of what was killed.
const killTimeout = 10 * time.Second

// drain waits for the last of the output, so that the log is whole when the
// exit is told. Not for long: somebody else may hold the pipe.
func (a *actor) drain(l life) {
	timer := time.NewTimer(a.s.policy.Drain)
	defer timer.Stop()
	for _, o := range l.outputs {
		select {
		case <-o.closed:
		case <-timer.C:
			return
		}
	}
}

// sweep kills what a supervised process left behind when it went: it would
// hold the port against the next start. What a command leaves is its own
// affair.
func (a *actor) sweep(last context.Context, l life) {
	if l.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(last), killTimeout)
	defer cancel()
	if err := l.proc.Kill(ctx, 0); err != nil {
		a.complain("killing what it left", err)
	}
}

// grace is how long the process has between TERM and KILL.
func (a *actor) grace() time.Duration {
	if a.supervised {
		return a.plan.spec.StopGrace.D()
	}
	return a.s.policy.SpawnGrace
}

func (a *actor) complain(doing string, err error) {
	a.s.Log.Warn("process: "+doing, "process", a.id, "sandbox", a.sandbox, "err", err)
}
