package local

import (
	"context"

	"sbx/engine"
	"sbx/engine/healer"
	"sbx/engine/pool"
	"sbx/engine/spec"
	"sbx/store"
)

// create checks everything that can be refused before anything is made: the
// name, the owner, the origin and its spec. The place in the pool is reserved with the row.
func (e *Engine) create(ctx context.Context, b engine.CreateSandbox) (effect, error) {
	if b.Name != "" {
		b.Name = engine.PlainName(b.Name)
		if err := engine.CheckName(b.Name); err != nil {
			return nil, err
		}
	}
	if err := engine.CheckOwner(b.Owner); err != nil {
		return nil, err
	}
	if err := checkLabels(b.Labels); err != nil {
		return nil, err
	}
	found, err := e.origin(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := e.fits(found.spec); err != nil {
		return nil, err
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		if err := e.pool.Reserve(tx); err != nil {
			return err
		}
		name, err := freeName(tx, b, found)
		if err != nil {
			return err
		}
		sb := engine.Sandbox{
			ID:   engine.SandboxID(engine.NewID(engine.SandboxPrefix)),
			Name: name, Owner: b.Owner, Labels: b.Labels, Keep: b.Keep,
			Template: found.template, TemplateRevision: found.revision,
			Spec: found.spec, Origin: found.origin,
			Wanted: engine.Up, State: engine.Cold, Health: engine.Unknown,
			Created: tx.Now, StateChanged: tx.Now, HealthChanged: tx.Now, Active: tx.Now,
		}
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		r.Sandbox = sb.ID
		_, err = tx.Fire(sb.ID, engine.Resume)
		return err
	}, nil
}

func startSandbox(b engine.StartSandbox) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		if sb.Wanted == engine.Up && sb.State.Live() {
			r.Note = "already up"
			return nil
		}
		sb.Resumed = tx.Now // whoever starts it wants it healed, too
		return wantUp(tx, sb)
	}
}

// wantUp has the pool bring a sandbox up. One that is on its way down has to get
// there first.
func wantUp(tx *store.Tx, sb engine.Sandbox) error {
	if sb.State.Live() {
		return engine.Errorf(engine.Conflict, "%s is still being stopped", sb.Name).WithHint("try again in a moment")
	}
	sb.Wanted, sb.Reason, sb.Active = engine.Up, "", tx.Now
	if err := tx.PutSandbox(&sb); err != nil {
		return err
	}
	_, err := tx.Fire(sb.ID, engine.Resume)
	return err
}

func stopSandbox(by engine.Actor, b engine.StopSandbox) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		if sb.Wanted == engine.Down && !sb.State.Live() {
			r.Note = "already stopped"
			return nil
		}
		return takeDown(tx, sb, engine.Down, engine.EndedByStop, by)
	}
}

func removeSandbox(by engine.Actor, b engine.RemoveSandbox) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		return takeDown(tx, sb, engine.Removed, engine.EndedByRemoval, by)
	}
}

// takeDown wants a sandbox and all its processes down. An open heal run is cut.
func takeDown(tx *store.Tx, sb engine.Sandbox, wanted engine.Wanted, why engine.Termination, by engine.Actor) error {
	if err := pool.TakeDown(tx, sb, wanted, why); err != nil {
		return err
	}
	if _, open, err := tx.OpenRun(sb.ID); !open || err != nil {
		return err
	}
	return healer.Cancel(tx, sb.ID, by)
}

func keepSandbox(b engine.KeepSandbox) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		if b.Keep && sb.Leaving {
			return engine.Errorf(engine.Conflict, "%s was evicted: its place is another's", sb.Name).
				WithHint("it is too late to keep it; make room with: sbx rm")
		}
		sb.Keep = b.Keep
		return tx.PutSandbox(&sb)
	}
}

func setMaintenance(by engine.Actor, b engine.SetMaintenance) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		if b.For < 0 {
			return engine.Errorf(engine.Invalid, "maintenance for %s: the time is negative", b.For.D())
		}
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		paused := sb.Maintenance.Active(tx.Now)
		sb.Maintenance = engine.Maintenance{}
		if b.On {
			sb.Maintenance = engine.Maintenance{On: true, By: by.String(), Reason: b.Reason}
			if b.For > 0 {
				sb.Maintenance.Until = tx.Now.Add(b.For.D())
			}
		}
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		switch {
		case b.On:
			r.Run, err = healer.TakeOver(tx, sb.ID, by)
			if r.Run != "" {
				r.Note = "the heal under way was cut, and is rolled back"
			}
			return err
		case !paused:
			return nil
		}
		return healer.Resumed(tx, sb.ID)
	}
}

// applySpec replaces the stored spec; the supervised processes restart under it.
func (e *Engine) applySpec(b engine.ApplySpec) (effect, error) {
	file := b.File
	if file == "" {
		file = "sbx.toml"
	}
	sp, err := spec.Parse(file, []byte(b.SpecTOML))
	if err != nil {
		return nil, err
	}
	if err := e.fits(sp); err != nil {
		return nil, err
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		if sb.Health == engine.Healing {
			return engine.Errorf(engine.Conflict, "%s is being healed", sb.Name).
				WithHint("wait for the run, or abort it: sbx heal --cancel %s", sb.Name)
		}
		sb.Spec = sp
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		if sb.Wanted != engine.Up || !sb.State.Live() || sb.State == engine.Warming {
			return nil // the next start reads it
		}
		return restartAll(tx, sb)
	}, nil
}

func restartAll(tx *store.Tx, sb engine.Sandbox) error {
	if err := pool.WantProcesses(tx, sb); err != nil {
		return err
	}
	procs, err := tx.ProcessesOf(sb.ID)
	if err != nil {
		return err
	}
	for _, p := range procs {
		if p.Kind != engine.Supervised {
			continue
		}
		p.Wanted = engine.WantRestart
		if _, stays := sb.Spec.Process(p.Name); !stays {
			p.Wanted = engine.WantStopped
		}
		if err := tx.PutProcess(p); err != nil {
			return err
		}
	}
	return restarted(tx, sb)
}

// restartApp restarts one supervised process.
func restartApp(b engine.RestartApp) effect {
	name := b.Process
	if name == "" {
		name = engine.AppName
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		switch {
		case sb.Health == engine.Healing:
			return engine.Errorf(engine.Conflict, "%s is being healed: a restart now would be judged as the healer's own", sb.Name).
				WithHint("wait for the run, or abort it: sbx heal --cancel %s", sb.Name)
		case sb.Wanted != engine.Up || !sb.State.Live():
			return engine.Errorf(engine.Conflict, "%s is %s", sb.Name, sb.State).WithHint("start it: sbx start %s", sb.Name)
		case sb.State == engine.Warming:
			return comingUp(sb)
		}
		if r.Process, err = wantRestart(tx, sb.ID, name); err != nil {
			return err
		}
		if name != engine.AppName {
			return nil
		}
		if sb.Health == engine.Broken {
			sb.Resumed = tx.Now
			if err := tx.PutSandbox(&sb); err != nil {
				return err
			}
		}
		return restarted(tx, sb)
	}
}

// comingUp refuses a restart of what is being started anyway. Its health is the
// boot's to begin.
func comingUp(sb engine.Sandbox) error {
	return engine.Errorf(engine.Conflict, "%s is coming up, and its processes start with it", sb.Name).
		WithHint("see how that goes with: sbx show %s", sb.Name)
}

// restarted begins a new life for the sandbox's health, where it has one.
func restarted(tx *store.Tx, sb engine.Sandbox) error {
	if sb.Health == engine.Starting {
		return nil
	}
	_, err := tx.FireHealth(sb.ID, engine.Restarted, "restarted")
	return err
}

func wantRestart(tx *store.Tx, id engine.SandboxID, name string) (engine.ProcessID, error) {
	procs, err := tx.ProcessesOf(id)
	if err != nil {
		return "", err
	}
	for _, p := range procs {
		if p.Kind == engine.Supervised && p.Name == name {
			p.Wanted = engine.WantRestart
			return p.ID, tx.PutProcess(p)
		}
	}
	return "", engine.Errorf(engine.NotFound, "no supervised process %q", name).WithHint("see them with: sbx show %s", id)
}
