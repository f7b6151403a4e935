package server

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"sbx/engine"
)

// sessionReads are the reads of sessions.
func sessionReads() []route {
	return []route{
		get("/v1/sessions", "the sessions that have not ended, oldest first", []engine.Session{}, (*Server).sessions),
		get("/v1/sessions/{id}", "a session", engine.Session{}, (*Server).session),
		get("/v1/sessions/{id}/wait", "how a command of the session ended, or why its sandbox went, as soon as it has", engine.SessionExec{}, (*Server).sessionWait,
			param{"process", "string", "the id in the receipt of exec"}, param{"within", "string", "how long to wait, like 30s; then unavailable: ask again"}),
		get("/v1/sessions/{id}/events", `frames {"events":[…]} of sandbox_active and sandbox_terminated, or one last {"error":…}`,
			engine.SessionEvent{}, (*Server).sessionEvents,
			param{"after", "string", "a position like 7.481; absent: how it is now, then what comes"}).as(mediaSocket),
	}
}

func (s *Server) sessions(c *call) error {
	snap, err := s.Engine.Snapshot(c.r.Context())
	if err != nil {
		return err
	}
	list := make([]engine.Session, 0, len(snap.Sessions))
	for _, ss := range snap.Sessions {
		list = append(list, ss)
	}
	slices.SortFunc(list, func(a, b engine.Session) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return c.reply(list)
}

func (s *Server) session(c *call) error {
	ss, err := engine.FindSession(c.r.Context(), s.Engine, engine.SessionID(c.r.PathValue("id")))
	if err != nil {
		return err
	}
	return c.reply(ss)
}

// sessionWait answers when a session's command is over, in whichever way.
func (s *Server) sessionWait(c *call) error {
	v := c.values()
	within := v.duration("within", usualWithin, time.Millisecond, longestWithin)
	if v.err != nil {
		return v.err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	c.takeTime()
	late := engine.Errorf(engine.Unavailable, "the command has not ended within %s", within).WithHint("ask again").After(time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	end, err := engine.WaitInSession(ctx, s.Engine, engine.SessionID(c.r.PathValue("id")), engine.ProcessID(v.Get("process")), engine.SpawnOptions{})
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return c.reply(end)
}

// sessionEvents tells a session's clients what becomes of its sandbox. Without
// a position it begins with how that is.
func (s *Server) sessionEvents(c *call) error {
	after, given, err := positionParam(c)
	if err != nil {
		return err
	}
	id := engine.SessionID(c.r.PathValue("id"))
	snap, err := s.Engine.Snapshot(c.r.Context())
	if err != nil {
		return err
	}
	now, open := snap.Sessions[id]
	if !open {
		return engine.Errorf(engine.NotFound, "there is no session %q, or it has ended", id).WithHint("see them with: sbx session ls")
	}
	if !given {
		after = snap.Position
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	sk := &socket{}
	return s.converse(ctx, c, sk, func(ctx context.Context) error {
		var buf []byte
		told := func(ctx context.Context) iter.Seq2[engine.SessionEvent, error] {
			return func(yield func(engine.SessionEvent, error) bool) {
				if first, ok := now.Now(after); !given && ok && !yield(first, nil) {
					return
				}
				for ev, err := range engine.SessionEvents(ctx, s.Engine, id, after) {
					if !yield(ev, err) {
						return
					}
				}
			}
		}
		err := pump(ctx, told, func(items [][]byte) error {
			buf = frame(buf, "events", items)
			return sk.text(buf)
		})
		if err == nil {
			err = engine.Errorf(engine.NotFound, "the session has ended")
		}
		return err
	})
}
