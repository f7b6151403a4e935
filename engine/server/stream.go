package server

import (
	"context"
	"sync"
	"time"

	"sbx/engine"
)

// maxStreams bounds what is open at a time: sockets and long answers.
const maxStreams = 4096

// streams are those that are open now.
type streams struct {
	mu      sync.Mutex
	closing bool
	last    int
	open    map[int]context.CancelCauseFunc
	empty   chan struct{} // closed when the last one has left after hangUp
}

// goingAway is what streams end with when the server stops.
func goingAway() error {
	return engine.Errorf(engine.Unavailable, "the engine is stopping").After(time.Second)
}

// enter counts a stream in. Its context ends with the server; leave counts it
// out.
func (s *streams) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, nil, goingAway()
	}
	if len(s.open) >= maxStreams {
		return nil, nil, engine.Errorf(engine.Exhausted, "%d streams are open", len(s.open)).After(exhaustedRetry)
	}
	if s.open == nil {
		s.open = map[int]context.CancelCauseFunc{}
	}
	s.last++
	id := s.last
	ctx, s.open[id] = context.WithCancelCause(ctx)
	return ctx, func() { s.leave(id) }, nil
}

func (s *streams) leave(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id](context.Canceled)
	delete(s.open, id)
	if s.empty != nil && len(s.open) == 0 {
		close(s.empty)
		s.empty = nil
	}
}

func (s *streams) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for _, end := range s.open {
		end(goingAway())
	}
}

func (s *streams) wait(ctx context.Context) error {
	s.mu.Lock()
	if len(s.open) == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stream makes of a call one that may last: its context ends, with the reason
// as its cause, when the client has gone, when the token is revoked and when
// the server stops.
func (s *Server) stream(c *call) (context.Context, func(), error) {
	ctx, leave, err := s.streams.enter(c.r.Context())
	if err != nil {
		return nil, nil, err
	}
	token, release := s.wards.join(s, c)
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(token, func() { end(context.Cause(token)) })
	return ctx, func() {
		stop()
		end(context.Canceled)
		release()
		leave()
	}, nil
}
