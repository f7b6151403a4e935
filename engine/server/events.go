package server

import (
	"context"
	"encoding/json"
	"sync"

	"sbx/engine"
)

// events is the journal's socket. Frames are {"events":[…]} with all that is
// there, at most maxFrame of it, or one last {"error":…}.
func (s *Server) events(c *call) error {
	after, given, err := positionParam(c)
	if err != nil {
		return err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	sk := &socket{}
	return s.converse(ctx, c, sk, func(ctx context.Context) error {
		t, done, err := s.feed.join(ctx, s.Engine)
		if err != nil {
			return err
		}
		defer done()
		now, err := t.position()
		if err != nil {
			return err
		}
		if !given {
			after = now
		}
		r := &reader{engine: s.Engine, frames: &s.frames, sk: sk, tap: t, pos: after}
		shared, err := s.sameJournal(ctx, after, now)
		if err != nil {
			return err
		}
		if !shared {
			return r.direct(ctx)
		}
		return r.follow(ctx)
	})
}

// sameJournal reports whether a position is of the journal that the ring is
// at now. The ring may be behind the journal by an event or two; a position
// that is ahead of both is of a journal that was.
func (s *Server) sameJournal(ctx context.Context, pos, now engine.Position) (bool, error) {
	if pos.Epoch != now.Epoch || pos.Seq <= now.Seq {
		return pos.Epoch == now.Epoch, nil
	}
	snap, err := s.Engine.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	return pos.Epoch == snap.Position.Epoch && pos.Seq <= snap.Position.Seq, nil
}

func positionParam(c *call) (_ engine.Position, given bool, err error) {
	text := c.r.URL.Query().Get("after")
	if text == "" {
		return engine.Position{}, false, nil
	}
	pos, err := engine.ParsePosition(text)
	return pos, true, err
}

// reader is one socket's way through the journal.
type reader struct {
	engine engine.Engine
	frames *sync.Pool // of *[]byte: a thousand idle sockets hold no buffers
	sk     *socket
	tap    *tap
	pos    engine.Position // of the last event sent
	items  [][]byte        // of the frame to send
}

// follow sends from the shared ring, for as long as the client keeps up.
func (r *reader) follow(ctx context.Context) error {
	for {
		items, behind, more, err := r.tap.after(r.pos.Seq, r.items[:0])
		switch {
		case behind > 0:
			err = r.catchUp(ctx, behind)
		case len(items) > 0:
			r.items = items
			r.pos.Seq += engine.Seq(len(items))
			err = r.send()
		case err == nil:
			select {
			case <-more:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) send() error {
	if len(r.items) == 0 {
		return nil
	}
	buf, _ := r.frames.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer r.frames.Put(buf)
	*buf = frame(*buf, "events", r.items)
	clear(r.items) // the ring may have dropped them by now
	r.items = r.items[:0]
	return r.sk.text(*buf)
}

// catchUp sends the events up to until, all of which are there, by a reader of
// its own.
func (r *reader) catchUp(ctx context.Context, until engine.Seq) error {
	r.items = r.items[:0]
	size := 0
	for ev, err := range r.engine.Events(ctx, r.pos) {
		if err != nil {
			return err
		}
		b, err := json.Marshal(ev)
		if err != nil {
			return engine.Errorf(engine.Internal, "encode event %d: %w", ev.Seq, err)
		}
		if size += len(b) + 1; size > maxFrame {
			if err := r.send(); err != nil {
				return err
			}
			size = len(b)
		}
		r.items = append(r.items, b)
		if r.pos.Seq = ev.Seq; ev.Seq >= until {
			break
		}
	}
	return r.send()
}

// direct is for a position that isn't the ring's kind: the engine knows what
// to say to it.
func (r *reader) direct(ctx context.Context) error {
	for ev, err := range r.engine.Events(ctx, r.pos) {
		if err != nil {
			return err
		}
		b, err := json.Marshal(ev)
		if err != nil {
			return engine.Errorf(engine.Internal, "encode event %d: %w", ev.Seq, err)
		}
		r.items = append(r.items[:0], b)
		if err := r.send(); err != nil {
			return err
		}
	}
	return engine.Errorf(engine.Unavailable, "the journal ended")
}
