package local

import (
	"context"

	"sbx/engine"
	"sbx/engine/detect"
	"sbx/engine/healer"
	"sbx/store"
)

// stall notices logs that stopped; the healer asks it whether one still does.
func (e *Engine) stall() *detect.Stall {
	return &detect.Stall{
		Store: e.store, Line: e.logs.LastLine, Policy: e.cfg.Stall, Log: e.cfg.Log,
		End: func(id engine.ProcessID) (engine.LogPosition, error) {
			_, end, err := e.logs.Bounds(id, engine.Stdout)
			return end, err
		},
	}
}

// detectors are those of the signals that no process raises itself.
func (e *Engine) detectors(stall *detect.Stall) []component {
	health := &detect.Health{
		Store: e.store, Box: e.cfg.Driver.Attach, Policy: e.cfg.Health, Report: e.gauges.probed, Stuck: stall.Stuck, Log: e.cfg.Log,
	}
	pressure := &detect.Pressure{Store: e.store, Box: e.cfg.Driver.Attach, Policy: e.cfg.Pressure, Log: e.cfg.Log}
	disk := &detect.Disk{
		Store: e.store, Box: e.cfg.Driver.Attach, Scale: e.cfg.Pressure.Scale, Log: e.cfg.Log,
		Cut: func(tx *store.Tx, id engine.SandboxID) error { return healer.Cancel(tx, id, engine.System) },
	}
	wake := &detect.Wake{Policy: e.cfg.Wake, Drop: e.cfg.DropIdle, Probe: health.Woke, Log: e.cfg.Log}
	return []component{
		{"health", health.Run}, {"stalls", stall.Run}, {"pressure", pressure.Run}, {"disk", disk.Run}, {"wake", wake.Run},
	}
}

// healer is the healer of this engine, with what it needs of the others.
func (e *Engine) healer(stall *detect.Stall) *healer.Healer {
	iso := e.cfg.Driver.Isolation()
	return &healer.Healer{
		Store:    e.store,
		Box:      e.cfg.Driver.Attach,
		Turn:     e.changing.lock,
		Model:    e.cfg.Model,
		NoModel:  e.cfg.NoModel,
		Confined: iso.Confines || e.cfg.Unconfined,
		Policy:   e.cfg.Heal,
		Restart:  e.restartAndWait,
		LogTail:  e.logTail,
		Probe:    e.probe,
		Stuck:    stall.Stuck,
		Redact:   e.cfg.Redact,
		Log:      e.cfg.Log,
	}
}

func (e *Engine) startHeal(by engine.Actor, b engine.StartHeal) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		if b.Plan && b.Resume {
			return engine.Errorf(engine.Invalid, "a plan changes nothing, so it can't give the sandbox back to the healer").
				WithHint("plan first, then: sbx heal --resume %s", b.Sandbox)
		}
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		if !sb.State.Live() || sb.Wanted != engine.Up {
			return engine.Errorf(engine.Conflict, "%s is %s: there is nothing to heal", sb.Name, sb.State).
				WithHint("start it: sbx start %s", sb.Name)
		}
		if b.Resume {
			if err := healer.Resume(tx, b.Sandbox); err != nil {
				return err
			}
		}
		open := func() (engine.HealRun, string, error) { return healer.Open(tx, e.cfg.Heal, b.Sandbox, by) }
		if b.Plan {
			open = func() (engine.HealRun, string, error) { return healer.OpenPlan(tx, b.Sandbox, by) }
		}
		run, note, err := open()
		r.Run, r.Note = run.ID, note
		if b.Resume && note != "" {
			r.Note = sb.Name + " is healthy, and the healer's again"
		}
		if err != nil || b.Note == "" {
			return err
		}
		_, err = healer.Note(tx, b.Sandbox, by, b.Note, e.cfg.Redact)
		return err
	}
}

func cancelHeal(by engine.Actor, b engine.CancelHeal) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		run, open, err := tx.OpenRun(b.Sandbox)
		if err != nil {
			return err
		}
		if !open {
			return engine.Errorf(engine.Conflict, "no heal run is open").WithHint("see what happened: sbx logs --healer %s", b.Sandbox)
		}
		r.Run = run.ID
		return healer.Cancel(tx, b.Sandbox, by)
	}
}

// restartAndWait restarts the app and returns when it was started again, or
// when it is known that it can't be.
func (e *Engine) restartAndWait(ctx context.Context, id engine.SandboxID) error {
	var (
		app   engine.ProcessID
		after int
		seq   engine.Seq
	)
	err := e.store.Update(ctx, func(tx *store.Tx) (err error) {
		tx.By = engine.Actor{Kind: engine.ActorHealer}
		sb, err := tx.Sandbox(id)
		switch {
		case err != nil:
			return err
		case sb.Wanted != engine.Up: // somebody stopped it meanwhile: that counts
			return engine.Errorf(engine.Conflict, "%s is being stopped", sb.Name)
		case sb.State == engine.Warming:
			return comingUp(sb)
		case sb.Health == engine.Ready || sb.Health == engine.Unknown:
			// In this commit: no probe of what is being stopped makes it ready.
			if err := restarted(tx, sb); err != nil {
				return err
			}
		}
		if app, err = wantRestart(tx, id, engine.AppName); err != nil {
			return err
		}
		p, err := tx.Process(app)
		after, seq = p.Starts, tx.Seq()
		return err
	})
	if err != nil {
		return err
	}
	for ev, err := range e.store.Events(ctx, seq) {
		if err != nil {
			return err
		}
		b, ok := ev.Body.(engine.ProcessChanged)
		if !ok || b.Process.ID != app {
			continue
		}
		switch p := b.Process; {
		case p.Starts > after && p.State == engine.ProcessRunning:
			return nil
		case p.Starts > after && p.State == engine.ProcessFailed && p.Exit != nil:
			return engine.Errorf(engine.Unavailable, "the app did not start: %s", p.Exit)
		case p.Wanted == engine.WantStopped:
			return engine.Errorf(engine.Conflict, "the app is being stopped")
		}
	}
	return ctx.Err()
}

// logTail is the end of a process's log from a position on, at most maxBytes of it.
func (e *Engine) logTail(ctx context.Context, id engine.ProcessID, from engine.LogPosition, maxBytes int) (string, error) {
	return tail(ctx, e.logs, id, from, maxBytes)
}

// probe is one GET on a sandbox's health path.
func (e *Engine) probe(ctx context.Context, sb engine.Sandbox) engine.Probe {
	fail := func(err error) engine.Probe { return engine.Probe{Detail: err.Error()} }
	app, err := e.processOf(ctx, sb.ID, engine.AppName)
	if err != nil {
		return fail(err)
	}
	bx, err := e.cfg.Driver.Attach(ctx, sb.ID)
	if err != nil {
		return fail(err)
	}
	return detect.Get(ctx, bx, app.Port, sb.Spec.App.Health, e.cfg.Health.Timeout)
}
