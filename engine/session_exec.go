package engine

import (
	"context"
	"time"
)

// OpenSession opens a session and returns it as it was accepted.
func OpenSession(ctx context.Context, e Engine, body CreateSession) (Session, error) {
	r, err := e.Do(ctx, NewAction(body))
	if err != nil {
		return Session{}, err
	}
	return FindSession(ctx, e, r.Session)
}

// FindSession is a session that has not ended.
func FindSession(ctx context.Context, e Journal, id SessionID) (Session, error) {
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return Session{}, err
	}
	s, ok := snap.Sessions[id]
	if !ok {
		return Session{}, Errorf(NotFound, "no session %q", cutRunes(string(id), maxQuoted)).WithHint("see them with: sbx session ls")
	}
	return s, nil
}

// SessionExec is how a command of a session ended: with its result, or because
// its sandbox was terminated.
type SessionExec struct {
	Result
	Session SessionID `json:"session"`
	Sandbox SandboxID `json:"sandboxId"`
	// Terminated is why its sandbox went before the command was over; then
	// there is no exit code.
	Terminated Termination `json:"terminated,omitempty"`
}

// lastWords is how long a command may take to tell its own end after its
// sandbox was terminated.
const lastWords = 300 * time.Millisecond

// ExecInSession runs a command in a session's sandbox, which is brought back
// first if it isn't there, and returns when it is over in one of three ways:
// its result, the termination of its sandbox within a second, or the exit of
// its timeout. remembered is the sandbox that the client knows, or "". When
// ctx ends first, the command is killed.
func ExecInSession(ctx context.Context, e Engine, id SessionID, remembered SandboxID, cmd Command, o SpawnOptions) (SessionExec, error) {
	body := ExecSession{Session: id, Sandbox: remembered, Command: cmd, Stdin: o.Stdin}
	h, r, err := spawnBy(ctx, e, body, cmd, o, resumeWithin)
	if err != nil {
		return SessionExec{Session: id}, err
	}
	return waitInSession(ctx, e, h, r.Session, r.Sandbox, r.Position)
}

// resumeWithin is how long bringing a sandbox back may take until its command
// is accepted, also when its caller has gone.
const resumeWithin = time.Minute

// WaitInSession waits for the end of a command that was begun in a session, as
// ExecInSession does. It kills nothing.
func WaitInSession(ctx context.Context, e Engine, id SessionID, process ProcessID, o SpawnOptions) (SessionExec, error) {
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return SessionExec{Session: id}, err
	}
	s, open := snap.Sessions[id]
	p, err := e.ProcessByID(ctx, process)
	switch {
	case AsCode(err) == NotFound && open: // it went with its sandbox
		why := s.Reason
		if why == "" {
			why = EndedByRemoval
		}
		return SessionExec{Session: id, Terminated: why}, nil
	case err != nil:
		return SessionExec{Session: id}, err
	case !open && !p.State.Over():
		return SessionExec{Session: id, Sandbox: p.Sandbox, Terminated: EndedByEnd}, nil
	case s.State == SessionPaused && s.Sandbox == p.Sandbox && !p.State.Over():
		return SessionExec{Session: id, Sandbox: p.Sandbox, Terminated: s.Reason}, nil
	}
	ctx, cancel := context.WithCancel(ctx) // the handle's
	defer cancel()
	h, err := FindHandle(ctx, e, string(process), o)
	if err != nil {
		return SessionExec{Session: id, Sandbox: p.Sandbox}, err
	}
	return waitInSession(ctx, e, h, id, p.Sandbox, snap.Position)
}

func waitInSession(ctx context.Context, e Engine, h *Handle, id SessionID, sandbox SandboxID, since Position) (SessionExec, error) {
	end := SessionExec{Session: id, Sandbox: sandbox}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	gone := make(chan Termination, 1)
	go func() { // ends with the wait
		if why, ok := terminated(watching, e, id, sandbox, since); ok {
			gone <- why
		}
	}()
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the handle ends soon after ctx
	defer cancel()
	over := make(chan struct{})
	var err error
	go func() {
		defer close(over)
		end.Result, err = h.Wait(waiting)
	}()
	var why Termination
	select {
	case <-over:
	case why = <-gone:
		select {
		case <-over:
		case <-time.After(lastWords):
		}
	}
	cancel()
	<-over
	if ctx.Err() != nil && (err != nil || end.Killed) {
		return end, ctx.Err()
	}
	if err != nil || end.Killed {
		if why == "" {
			why = soon(gone)
		}
	}
	switch {
	case why != "" && (err != nil || end.Killed):
		end.Terminated, err = why, nil
	}
	return end, err
}

// soon is the cause that may follow an end at once.
func soon(gone <-chan Termination) Termination {
	select {
	case why := <-gone:
		return why
	case <-time.After(lastWords):
		return ""
	}
}

// terminated waits until a session's clients are told that a sandbox is gone.
func terminated(ctx context.Context, e Journal, id SessionID, sandbox SandboxID, since Position) (Termination, bool) {
	for {
		for ev, err := range SessionEvents(ctx, e, id, since) {
			if err != nil {
				break
			}
			since = ev.Position
			if ev.Sandbox == sandbox && ev.Kind == SandboxTerminated {
				return ev.Reason, true
			}
		}
		if ctx.Err() != nil {
			return "", false
		}
		snap, err := e.Snapshot(ctx) // the journal moved on without us, or the session ended
		if err != nil {
			return "", false
		}
		s, open := snap.Sessions[id]
		switch {
		case !open:
			return EndedByEnd, true
		case s.Sandbox != sandbox || !s.Live && s.State == SessionPaused:
			return s.Reason, true
		}
		since = snap.Position
	}
}
