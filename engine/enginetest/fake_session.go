package enginetest

import (
	"sbx/engine"
)

// session does what is asked of sessions. The sandbox of a fake's session is up
// at once.
func (f *Fake) session(by author, body engine.ActionBody, r *engine.Receipt) error {
	if b, ok := body.(engine.CreateSession); ok {
		return f.createSession(by, b, r)
	}
	s, ok := f.snap.Sessions[engine.SessionID(body.Subject())]
	if !ok {
		return engine.Errorf(engine.NotFound, "no session %q", body.Subject()).WithHint("see them with: sbx session ls")
	}
	r.Session, r.Sandbox = s.ID, s.Sandbox
	switch b := body.(type) {
	case engine.ExecSession:
		f.resume(by, s.ID, b.Sandbox, r)
		return f.spawn(by, f.snap.Sandboxes[r.Sandbox], engine.Spawn{Sandbox: r.Sandbox, Command: b.Command, Stdin: b.Stdin}, r)
	case engine.ResumeSession:
		f.resume(by, s.ID, b.Sandbox, r)
	case engine.PauseSession:
		return f.pauseSession(by, s, b)
	case engine.EndSession:
		f.terminated(by, s, engine.EndedByEnd)
		s = f.snap.Sessions[s.ID]
		s.State, s.Told = engine.SessionEnded, ""
		f.append(by, engine.SessionChanged{Session: s})
		if sb, err := f.sandbox(s.Sandbox); err == nil && !sb.Keep {
			f.stopApp(by, sb)
			f.append(by, engine.SandboxRemoved{ID: sb.ID, Name: sb.Name})
		}
	}
	return nil
}

func (f *Fake) createSession(by author, b engine.CreateSession, r *engine.Receipt) error {
	if err := f.create(by, engine.CreateSandbox{Owner: b.Owner, Labels: b.Labels, Origin: b.Origin, SpecTOML: b.SpecTOML}, r); err != nil {
		return err
	}
	s := engine.Session{
		ID: engine.SessionID(engine.NewID(engine.SessionPrefix)), Name: b.Name, Owner: b.Owner, Labels: b.Labels,
		Origin: b.Origin, State: engine.SessionActive, Sandbox: r.Sandbox, Live: true, Path: engine.PathNew,
		Told: engine.SandboxActive, Created: now(), Changed: now(),
	}
	s.Spec.App.Env = b.Env
	sb := f.snap.Sandboxes[r.Sandbox]
	sb.Session, sb.Spec.App.Env = s.ID, b.Env
	f.append(by, engine.SandboxChanged{Sandbox: sb}, engine.SessionChanged{Session: s})
	r.Session = s.ID
	return nil
}

func (f *Fake) pauseSession(by author, s engine.Session, b engine.PauseSession) error {
	sb, err := f.sandbox(s.Sandbox)
	if err != nil {
		return nil // nothing to take down
	}
	why := engine.EndedByPause
	for _, p := range f.snap.Of(sb.ID) {
		if p.Kind == engine.Spawned && !b.Abort {
			return engine.Errorf(engine.Conflict, "a command runs in the session")
		} else if p.Kind == engine.Spawned {
			why = engine.EndedByAbort
		}
	}
	f.terminated(by, s, why)
	if sb.State.Live() {
		f.stopApp(by, sb)
	}
	return nil
}

func (f *Fake) terminated(by author, s engine.Session, why engine.Termination) {
	if !s.Live {
		return
	}
	s.State, s.Live, s.Reason, s.Told, s.Changed = engine.SessionPaused, false, why, engine.SandboxTerminated, now()
	f.append(by, engine.SessionChanged{Session: s})
}

// resume has the session's sandbox up: the one it has, or another if that is
// gone.
func (f *Fake) resume(by author, id engine.SessionID, remembered engine.SandboxID, r *engine.Receipt) {
	s := f.snap.Sessions[id]
	sb, there := f.snap.Sandboxes[s.Sandbox]
	if there && s.Live && sb.State.Live() && (remembered == "" || remembered == s.Sandbox) {
		r.Sandbox = sb.ID
		return
	}
	s.Path = engine.PathWorkspace
	switch {
	case !there:
		s.Path = engine.PathFresh
		var made engine.Receipt
		if f.create(by, engine.CreateSandbox{Owner: s.Owner, Labels: s.Labels, Origin: s.Origin}, &made) == nil {
			s.Sandbox = made.Sandbox
		}
		sb = f.snap.Sandboxes[s.Sandbox]
		sb.Session, sb.Spec.App.Env = s.ID, s.Spec.App.Env
		f.append(by, engine.SandboxChanged{Sandbox: sb})
	case !sb.State.Live():
		f.startApp(by, sb)
	default:
		s.Path = engine.PathAlive
	}
	s.State, s.Live, s.Reason, s.Told, s.Changed = engine.SessionActive, true, "", engine.SandboxActive, now()
	f.append(by, engine.SessionChanged{Session: s})
	r.Sandbox = s.Sandbox
}
