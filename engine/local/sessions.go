package local

import (
	"context"
	"maps"
	"slices"

	"sbx/engine"
	"sbx/engine/pool"
	"sbx/store"
)

// prepareSession is prepare for sessions.
func (e *Engine) prepareSession(ctx context.Context, by engine.Actor, body engine.ActionBody) (effect, error) {
	switch b := body.(type) {
	case engine.CreateSession:
		return e.createSession(ctx, b)
	case engine.ExecSession:
		if err := checkCommand(b.Command); err != nil {
			return nil, err
		}
		if err := e.comeTo(ctx, b.Session, b.Sandbox); err != nil {
			return nil, err
		}
		return e.execSession(by, b), nil
	case engine.ResumeSession:
		if err := e.comeTo(ctx, b.Session, ""); err != nil {
			return nil, err
		}
		return func(tx *store.Tx, r *engine.Receipt) error {
			_, err := e.attach(tx, b.Session, b.Sandbox, true, r)
			return err
		}, nil
	case engine.PauseSession:
		return pauseSession(by, b), nil
	case engine.EndSession:
		return endSession(by, b), nil
	}
	return nil, engine.Errorf(engine.Internal, "no session's action: %T", body)
}

// createSession claims a warm sandbox of the template, or boots one.
func (e *Engine) createSession(ctx context.Context, b engine.CreateSession) (effect, error) {
	s, err := e.newSession(ctx, b)
	if err != nil {
		return nil, err
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		s := s
		s.ID = engine.SessionID(engine.NewID(engine.SessionPrefix))
		s.Created = tx.Now
		r.Session = s.ID
		claimed, err := claim(tx, &s, len(b.Env) > 0 || b.SpecTOML != "")
		if err != nil {
			return err
		}
		if !claimed {
			if err := e.bootFor(tx, &s, ""); err != nil {
				return err
			}
		}
		r.Sandbox = s.Sandbox
		return tx.PutSession(s)
	}, nil
}

// newSession checks everything that can be refused before anything is made.
func (e *Engine) newSession(ctx context.Context, b engine.CreateSession) (s engine.Session, err error) {
	if b.Name != "" {
		b.Name = engine.PlainName(b.Name)
		err = engine.CheckName(b.Name)
	}
	for _, check := range []func() error{
		func() error { return err },
		func() error { return engine.CheckOwner(b.Owner) },
		func() error { return checkLabels(b.Labels) },
		func() error { return checkEnv(b.Env) },
	} {
		if err := check(); err != nil {
			return s, err
		}
	}
	if b.Origin.Kind == engine.FromAdopted {
		return s, engine.Errorf(engine.Invalid, "a session's workspace is its own: a directory can't be adopted for it").
			WithHint("copy it: give the origin \"from\"")
	}
	found, err := e.origin(ctx, engine.CreateSandbox{Origin: b.Origin, SpecTOML: b.SpecTOML, File: b.File})
	if err != nil {
		return s, err
	}
	if err := e.fits(found.spec); err != nil {
		return s, err
	}
	return engine.Session{
		Name: b.Name, Owner: b.Owner, Labels: b.Labels,
		Origin: found.origin, Template: found.template, TemplateRevision: found.revision,
		Spec: withEnv(found.spec, b.Env), State: engine.SessionActive,
	}, nil
}

// withEnv is a spec with a session's own environment in all its processes.
func withEnv(sp engine.Spec, env map[string]string) engine.Spec {
	if len(env) == 0 {
		return sp
	}
	join := func(own map[string]string) map[string]string {
		all := map[string]string{}
		maps.Copy(all, own)
		maps.Copy(all, env)
		return all
	}
	sp.App.Env = join(sp.App.Env)
	sp.Processes = slices.Clone(sp.Processes)
	for i := range sp.Processes {
		sp.Processes[i].Env = join(sp.Processes[i].Env)
	}
	return sp
}

// claim gives a warm sandbox of its template to a session, if there is one.
// Where the session has an environment or a spec of its own, its processes
// start again with that.
func claim(tx *store.Tx, s *engine.Session, own bool) (bool, error) {
	if s.Template == "" {
		return false, nil
	}
	for _, id := range tx.WarmOf(s.Template) {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return false, err
		}
		if sb.Health == engine.Broken || sb.TemplateRevision != s.TemplateRevision {
			continue
		}
		sb.PreWarmed, sb.Session, sb.Active = false, s.ID, tx.Now
		sb.Owner, sb.Labels, sb.Spec, sb.Name = s.Owner, s.Labels, s.Spec, sessionName(*s)
		if err := tx.PutSandbox(&sb); err != nil {
			return false, err
		}
		if sb, err = tx.Fire(sb.ID, engine.Claim); err != nil {
			return false, err
		}
		s.Sandbox, s.Live, s.Path, s.Told = sb.ID, true, engine.PathPreWarm, engine.SandboxActive
		if err := tx.Count(store.CountPreWarm); err != nil || !own {
			return true, err
		}
		return true, restartAll(tx, sb)
	}
	return false, nil
}

// sessionName is the name of a session's sandbox, which nobody else has.
func sessionName(s engine.Session) string {
	base := s.Name
	if base == "" {
		base = s.Template
	}
	if base == "" || len(base) > engine.MaxName-12 {
		base = "session"
	}
	return base + "-" + engine.NewID("")[:8]
}

// bootFor makes the row of a new sandbox for a session, whose workspace is
// restored from the archive of another, if there is one.
func (e *Engine) bootFor(tx *store.Tx, s *engine.Session, restore engine.SandboxID) error {
	if err := e.pool.Reserve(tx); err != nil {
		return err
	}
	sb := engine.Sandbox{
		ID:   engine.SandboxID(engine.NewID(engine.SandboxPrefix)),
		Name: sessionName(*s), Owner: s.Owner, Labels: s.Labels, Session: s.ID, Restore: restore,
		Template: s.Template, TemplateRevision: s.TemplateRevision, Spec: s.Spec, Origin: s.Origin,
		Wanted: engine.Up, State: engine.Cold, Health: engine.Unknown,
		Created: tx.Now, StateChanged: tx.Now, HealthChanged: tx.Now, Active: tx.Now,
	}
	if err := tx.PutSandbox(&sb); err != nil {
		return err
	}
	s.Sandbox, s.State, s.Live, s.Reason, s.Told = sb.ID, engine.SessionActive, false, "", ""
	s.Path = engine.PathNew
	_, err := tx.Fire(sb.ID, engine.Resume)
	return err
}

// newWarm is the row of an unclaimed sandbox, for the pool to keep ready.
func (e *Engine) newWarm(template string) (engine.Sandbox, error) {
	found, err := e.fromTemplate(engine.CreateSandbox{Origin: engine.Origin{Kind: engine.FromTemplate, Ref: template}})
	if err == nil {
		err = e.fits(found.spec)
	}
	return engine.Sandbox{
		Template: found.template, TemplateRevision: found.revision, Spec: found.spec, Origin: found.origin,
	}, err
}

// execSession resumes the session's sandbox where it isn't there, and begins a
// command in it, in one transaction: nobody comes in between.
func (e *Engine) execSession(by engine.Actor, b engine.ExecSession) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		sb, err := e.attach(tx, b.Session, b.Sandbox, b.Sandbox != "", r)
		if err != nil {
			return err
		}
		do, err := spawn(by, engine.Spawn{Sandbox: sb, Command: b.Command, Stdin: b.Stdin})
		if err != nil {
			return err
		}
		return do(tx, r)
	}
}

func pauseSession(by engine.Actor, b engine.PauseSession) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		s, sb, there, err := openSession(tx, b.Session)
		if err != nil {
			return err
		}
		r.Session, r.Sandbox = s.ID, s.Sandbox
		if !there || !sb.State.Live() || sb.Wanted != engine.Up {
			r.Note = "already paused"
			return tx.EndSandbox(s.Sandbox, engine.EndedByPause)
		}
		why := engine.EndedByPause
		if busy, err := pool.Busy(tx, sb.ID); err != nil {
			return err
		} else if busy && !b.Abort {
			return engine.Errorf(engine.Conflict, "a command runs in session %s", s.ID).
				WithHint("wait for it, or abort it: sbx session pause --abort %s", s.ID)
		}
		if b.Abort {
			why = engine.EndedByAbort
		}
		return takeDown(tx, sb, engine.Down, why, by)
	}
}

func endSession(by engine.Actor, b engine.EndSession) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		s, sb, there, err := openSession(tx, b.Session)
		if err != nil {
			return err
		}
		r.Session, r.Sandbox = s.ID, s.Sandbox
		switch {
		case there && sb.Keep:
			sb.Session = ""
			err = tx.PutSandbox(&sb)
			r.Note = "its sandbox is kept"
		case there && sb.Wanted != engine.Removed:
			err = takeDown(tx, sb, engine.Removed, engine.EndedByEnd, by)
		}
		if err != nil {
			return err
		}
		if err := tx.EndSandbox(s.Sandbox, engine.EndedByEnd); err != nil {
			return err
		}
		if s, err = tx.Session(s.ID); err != nil {
			return err
		}
		s.State, s.Live, s.Told = engine.SessionEnded, false, ""
		return tx.PutSession(s)
	}
}

// openSession is a session that has not ended, and its sandbox, if that is
// there.
func openSession(tx *store.Tx, id engine.SessionID) (s engine.Session, sb engine.Sandbox, there bool, err error) {
	if s, err = tx.Session(id); err != nil {
		return s, sb, false, err
	}
	if !s.Open() {
		return s, sb, false, engine.Errorf(engine.NotFound, "session %s has ended", id).WithHint("open another: sbx session create")
	}
	sb, err = tx.Sandbox(s.Sandbox)
	if engine.AsCode(err) == engine.NotFound {
		return s, sb, false, nil
	}
	return s, sb, err == nil, err
}
