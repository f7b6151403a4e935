package engine

import (
	"context"
	"iter"
	"strings"
	"time"
)

// Session binds one conversation to one sandbox (SPEC §5). Two sessions never
// share a sandbox; a session whose sandbox is gone gets another by the resume
// walk, with the workspace as far as anything still has it.
type Session struct {
	ID     SessionID         `json:"id"`
	Name   string            `json:"name,omitempty"`
	Owner  string            `json:"owner,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`

	// What a sandbox of its own is made of. Spec has the session's environment
	// in it.
	Origin           Origin `json:"origin"`
	Template         string `json:"template,omitempty"`
	TemplateRevision string `json:"templateRevision,omitempty"`
	Spec             Spec   `json:"spec"`

	State SessionState `json:"state"`
	// Sandbox is its own; while none is live, the one it had last.
	Sandbox SandboxID `json:"sandbox,omitempty"`
	// Live: the sandbox is up and takes commands.
	Live bool `json:"live,omitempty"`
	// Reason is why the last sandbox was terminated.
	Reason Termination `json:"reason,omitempty"`
	// Path is how its sandbox came the last time.
	Path ResumePath `json:"path,omitempty"`
	// Told is what this change of the row tells the session's clients.
	Told SessionEventKind `json:"told,omitempty"`

	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
}

// Open reports whether a session can still be used.
func (s Session) Open() bool { return s.State != SessionEnded }

// SessionState is whether a session is in use.
type SessionState string

// The states of a session.
const (
	SessionActive SessionState = "active"
	SessionPaused SessionState = "paused" // its sandbox is down; any call resumes it
	SessionEnded  SessionState = "ended"
)

// ResumePath is where a session's sandbox came from, as the walk of SPEC §4
// tries them.
type ResumePath string

// The paths. All but the first two are steps of the resume walk.
const (
	PathNew       ResumePath = "new"       // booted for a new session
	PathPreWarm   ResumePath = "pre-warm"  // a warm one was claimed
	PathAlive     ResumePath = "alive"     // it was still there
	PathWorkspace ResumePath = "workspace" // its workspace was still on disk
	PathLocal     ResumePath = "local"     // from the local archive
	PathRemote    ResumePath = "remote"    // from the remote archive
	PathFresh     ResumePath = "fresh"     // made anew: nothing had the workspace
)

// Termination is why a session's sandbox is no longer there for it.
type Termination string

// The causes.
const (
	EndedByAbort    Termination = "abort"    // a client aborted what ran
	EndedByEviction Termination = "eviction" // another needed the place
	EndedByIdle     Termination = "idle"     // nobody used it for long
	EndedByCrash    Termination = "crash"    // its processes are gone, or it doesn't answer
	EndedByLimit    Termination = "limit"    // it went over a limit
	EndedByRemoval  Termination = "removal"  // it was removed
	EndedByStop     Termination = "stop"     // it was stopped
	EndedByPause    Termination = "pause"    // the session was paused
	EndedByEnd      Termination = "end"      // the session ended
	EndedByBoot     Termination = "boot"     // it could not be brought up
	EndedByCleanup  Termination = "cleanup"  // it was cold for too long
)

// SessionEventKind is what a session's clients are told.
type SessionEventKind string

// The two things to tell.
const (
	SandboxActive     SessionEventKind = "sandbox_active"
	SandboxTerminated SessionEventKind = "sandbox_terminated"
)

// SessionEvent tells a session's clients that a sandbox is there for them, or
// no longer.
type SessionEvent struct {
	// Position resumes the stream after this event.
	Position Position         `json:"position"`
	Time     time.Time        `json:"time"`
	Session  SessionID        `json:"session"`
	Kind     SessionEventKind `json:"kind"`
	Sandbox  SandboxID        `json:"sandboxId"`
	Reason   Termination      `json:"reason,omitempty"`
	Path     ResumePath       `json:"path,omitempty"`
}

// SessionEvents yields what a session's clients are told after a position, in
// order and without gaps, then waits for more. It ends as [Journal.Events]
// does, and by itself when the session has ended.
func SessionEvents(ctx context.Context, j Journal, id SessionID, after Position) iter.Seq2[SessionEvent, error] {
	return func(yield func(SessionEvent, error) bool) {
		for ev, err := range j.Events(ctx, after) {
			if err != nil {
				yield(SessionEvent{}, err)
				return
			}
			b, ok := ev.Body.(SessionChanged)
			if !ok || b.Session.ID != id {
				continue
			}
			if told, ok := b.told(ev, after.Epoch); ok && !yield(told, nil) {
				return
			}
			if !b.Session.Open() {
				return
			}
		}
	}
}

// told is what a change of a session's row tells its clients.
func (c SessionChanged) told(ev Event, epoch uint64) (SessionEvent, bool) {
	s := c.Session
	told := SessionEvent{
		Position: Position{Epoch: epoch, Seq: ev.Seq}, Time: ev.Time,
		Session: s.ID, Kind: s.Told, Sandbox: s.Sandbox,
	}
	switch s.Told {
	case SandboxActive:
		told.Path = s.Path
	case SandboxTerminated:
		told.Reason = s.Reason
	}
	return told, s.Told != ""
}

// Now is what a client that comes to a session at a position is told of its
// sandbox; ok is false while one is on its way.
func (s Session) Now(at Position) (told SessionEvent, ok bool) {
	told = SessionEvent{Position: at, Time: s.Changed, Session: s.ID, Sandbox: s.Sandbox}
	switch {
	case s.Live:
		told.Kind, told.Path = SandboxActive, s.Path
	case s.State == SessionPaused && s.Reason != "":
		told.Kind, told.Reason = SandboxTerminated, s.Reason
	}
	return told, told.Kind != ""
}

// FindSession is the session that a person means by ref: an id, a name, or a
// unique prefix of an id.
func (s *Snapshot) FindSession(ref string) (Session, error) {
	if ss, ok := s.Sessions[SessionID(ref)]; ok {
		return ss, nil
	}
	var named, hits []Session
	for id, ss := range s.Sessions {
		switch {
		case ss.Name != "" && ss.Name == PlainName(ref):
			named = append(named, ss)
		case len(ref) > len(SessionPrefix) && strings.HasPrefix(string(id), ref):
			hits = append(hits, ss)
		}
	}
	if len(named) > 0 {
		hits = named
	}
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return Session{}, Errorf(NotFound, "no session %q", cutRunes(ref, maxQuoted)).WithHint("see them with: sbx session ls")
	}
	return Session{}, Errorf(Invalid, "%q fits %d sessions", cutRunes(ref, maxQuoted), len(hits)).WithHint("use the id: sbx session ls")
}
