package process

import (
	"context"
	"slices"
	"time"

	"sbx/engine"
	"sbx/store"
)

// commit changes the row in one transaction. It reports false if the row is
// gone or fn refused. A store that is short of something is tried again until
// last ends: an exit must not be lost because a disk was full for a minute.
func (a *actor) commit(last context.Context, fn func(tx *store.Tx, p *engine.Process) error) (bool, error) {
	for {
		var (
			p   engine.Process
			seq engine.Seq
		)
		err := a.s.Store.Update(last, func(tx *store.Tx) (err error) {
			if p, err = tx.Process(a.id); err != nil {
				return err
			}
			if err := fn(tx, &p); err != nil {
				return err
			}
			err = tx.PutProcess(p)
			seq = tx.Seq()
			return err
		})
		switch code := engine.AsCode(err); {
		case err == nil:
			a.row = p
			a.note(seq, p)
			return true, nil
		case refused(err) || code == engine.NotFound || code == engine.Conflict || code == engine.Invalid || last.Err() != nil:
			return false, err
		}
		a.complain("writing its row", err)
		if !sleep(last, time.Second) {
			return false, err
		}
	}
}

// note remembers the row as this actor wrote it, unless it was told newer.
func (a *actor) note(seq engine.Seq, p engine.Process) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if seq > a.seen {
		a.seen, a.wanted = seq, p.Wanted
	}
}

// removed reports whether the row is gone, with its sandbox.
func (a *actor) removed(last context.Context) bool {
	err := a.s.Store.View(last, func(tx *store.Tx) error {
		_, err := tx.Process(a.id)
		return err
	})
	return engine.AsCode(err) == engine.NotFound
}

// begin commits that the process is being started, as somebody wants. It
// counts the start, and takes the port if there is one.
func (a *actor) begin(last context.Context, portless bool) (bool, error) {
	renewed := a.isRenewed()
	ok, err := a.commit(last, func(tx *store.Tx, p *engine.Process) error {
		if err := a.wanting(tx, p, renewed); err != nil {
			return err
		}
		if a.supervised && !portless && p.Port == 0 {
			ports, err := tx.Ports()
			if err != nil {
				return err
			}
			if holder, held := ports[a.plan.port]; held && holder != a.id {
				return errTaken
			}
			p.Port = a.plan.port
		}
		p.State, p.Wanted, p.Reason, p.PID = engine.ProcessStarting, engine.WantRunning, "", 0
		p.Starts++
		return nil
	})
	if ok {
		a.asked, a.crashes = time.Now(), 0
		a.s.mu.Lock()
		a.renewed = false
		delete(a.s.held, a.id)
		a.s.mu.Unlock()
	}
	return ok, err
}

func (a *actor) isRenewed() bool {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return a.renewed
}

// wanting refuses a start that the rows don't ask for any more.
func (a *actor) wanting(tx *store.Tx, p *engine.Process, renewed bool) error {
	sb, err := tx.Sandbox(a.sandbox)
	if err != nil {
		return err
	}
	c := conditionOf(sb)
	asked := next(*p, outlook{up: c.up, renewed: renewed, resume: !c.healing})
	if asked != start {
		return errUnwanted
	}
	return nil
}

// running commits that the process runs. It reports false, with the process
// killed, if there is no row for it any more.
func (a *actor) running(last context.Context, l life) bool {
	ok, _ := a.commit(last, func(_ *store.Tx, p *engine.Process) error {
		p.State, p.PID, p.Started, p.LogStart = engine.ProcessRunning, l.proc.PID(), l.started.UTC().Truncate(time.Millisecond), int64(l.logStart)
		return nil
	})
	if !ok {
		a.kill(last, l, 0)
		a.clear()
	}
	return ok
}

// unwanted commits that the process is being stopped, and reports whether that
// is what the row wants. A row that is gone wants nothing.
func (a *actor) unwanted(last context.Context) bool {
	wanted := false
	ok, err := a.commit(last, func(_ *store.Tx, p *engine.Process) error {
		if wanted = p.Wanted == engine.WantRunning; !wanted {
			p.State = engine.ProcessStopping
		}
		return nil
	})
	return ok && !wanted || engine.AsCode(err) == engine.NotFound
}

// ended commits an end that was asked for, or the end of a command.
func (a *actor) ended(last context.Context, exit engine.Exit) {
	_, err := a.commit(last, func(_ *store.Tx, p *engine.Process) error {
		p.Exit, p.PID = &exit, 0
		switch {
		case p.Once():
			p.State, p.Reason = engine.ProcessExited, exit.String()
			if exit.Killed {
				p.Reason = "killed"
			}
		case p.Wanted == engine.WantRestart:
			p.State, p.Reason = engine.ProcessStopped, "being restarted"
		default:
			p.State, p.Reason = engine.ProcessStopped, "stopped"
		}
		if exit.Killed && p.Wanted == engine.WantRunning {
			p.Reason = Stopped
		}
		if exit.Killed && exit.Error != "" {
			p.Reason = exit.Error
		}
		return nil
	})
	if err != nil && engine.AsCode(err) != engine.NotFound {
		a.complain("recording its end", err)
	}
}

// settle commits that a process which doesn't run isn't wanted to. For a
// command that is its end.
func (a *actor) settle(last context.Context) {
	a.endLogs()
	_, err := a.commit(last, func(tx *store.Tx, p *engine.Process) error {
		switch {
		case p.Once() && p.Wanted != engine.WantStopped:
			recovered(p, tx) // its actor could not record how it ended
		case p.Once():
			exit := engine.Exit{Code: engine.ExitSignalBase + 15, Signal: "SIGTERM", Killed: true, At: tx.Now}
			p.State, p.Reason, p.Exit = engine.ProcessExited, "killed before it was started", &exit
		case p.Wanted == engine.WantStopped:
			p.State, p.Reason, p.PID = engine.ProcessStopped, "stopped", 0
		}
		return nil
	})
	if err != nil && engine.AsCode(err) != engine.NotFound {
		a.complain("settling", err)
	}
}

// crashed commits an exit that nobody asked for, with what is done about it,
// and raises the signal where one is called for.
func (a *actor) crashed(last context.Context, exit engine.Exit) Decision {
	var d Decision
	counts := 0
	_, err := a.commit(last, func(tx *store.Tx, p *engine.Process) error {
		d, counts = Decision{}, 0
		sb, err := tx.Sandbox(a.sandbox)
		if err != nil {
			return err
		}
		p.Exit, p.PID = &exit, 0
		if p.Wanted != engine.WantRunning {
			// Somebody had stopped it; it went before it was told.
			p.State, p.Reason = engine.ProcessStopped, "stopped"
			return nil
		}
		p.Exits = append(slices.Clone(p.Exits), exit)
		p.Exits = p.Exits[max(0, len(p.Exits)-engine.KeptExits):]
		counts = 1
		if d, err = a.decide(tx, sb, *p); err != nil {
			return err
		}
		apply(p, &d, conditionOf(sb))
		if !d.Raise {
			return nil
		}
		_, err = tx.RaiseSignal(engine.Signal{
			Sandbox: a.sandbox, Process: a.id, Kind: engine.ExitSignal, Observed: d.Observed, Exit: &exit,
		})
		return err
	})
	if err != nil {
		d, counts = Decision{}, 0
		if engine.AsCode(err) != engine.NotFound {
			a.complain("recording its exit", err)
		}
	}
	a.crashes += counts
	if d.Held {
		a.hold()
	}
	return d
}

// decide asks Decide about the row's last exit.
func (a *actor) decide(tx *store.Tx, sb engine.Sandbox, p engine.Process) (Decision, error) {
	spec, _ := sb.Spec.Process(p.Name)
	past := Past{Exits: a.unasked(p.Exits), Healing: sb.Health == engine.Healing}
	signals, err := tx.Signals(a.sandbox, a.asked)
	for _, sig := range signals {
		if sig.Process == a.id && sig.Kind == engine.ExitSignal {
			past.Raised = &sig
		}
	}
	return Decide(tx.Now, a.s.policy, spec, past), err
}

// unasked are the exits since the last start that somebody asked for, the one
// to decide about included. They are counted, not told by their times: on a
// clock that was put back, each would be the first, and nothing ever given up.
func (a *actor) unasked(exits []engine.Exit) []engine.Exit {
	return exits[max(0, len(exits)-a.crashes-1):]
}

// apply puts a decision into the row.
func apply(p *engine.Process, d *Decision, c condition) {
	p.Reason = d.Reason
	switch {
	case !c.up:
		p.State, d.Restart = engine.ProcessStopped, false
	case d.Restart && d.After == 0:
		begins(p)
	case d.Restart:
		p.State = engine.ProcessBackoff
	default:
		p.State = engine.ProcessFailed
	}
}

// begins makes the row that of a restart by the supervisor itself.
func begins(p *engine.Process) {
	p.State = engine.ProcessStarting
	p.Starts++
	p.Restarts++
}

// hold remembers that the process is started when the healer is done.
func (a *actor) hold() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.s.held[a.id] = a.sandbox
}
