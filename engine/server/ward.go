package server

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"sbx/engine"
)

// wards are the tokens of the open streams. Each is asked about again and
// again, once for all of its streams, so that they end when it is revoked.
type wards struct {
	mu   sync.Mutex
	open map[tokenHash]*ward
}

// ward is one such token. Its goroutine is its streams': the last one to leave
// waits for it.
type ward struct {
	streams int // guarded by wards.mu
	ctx     context.Context
	end     context.CancelCauseFunc
	done    chan struct{}
}

// join puts a stream of c under its token. The context ends, with the reason
// as its cause, when the token is revoked or its role changes.
func (w *wards) join(s *Server, c *call) (context.Context, func()) {
	if c.token == "" {
		return context.Background(), func() {}
	}
	key := sha256.Sum256([]byte(c.token))
	w.mu.Lock()
	defer w.mu.Unlock()
	wd := w.open[key]
	if wd == nil || wd.ctx.Err() != nil {
		wd = &ward{done: make(chan struct{})}
		wd.ctx, wd.end = context.WithCancelCause(context.Background())
		if w.open == nil {
			w.open = map[tokenHash]*ward{}
		}
		w.open[key] = wd
		go wd.watch(s, c.token, c.role)
	}
	wd.streams++
	return wd.ctx, func() { w.leave(key, wd) }
}

func (w *wards) leave(key tokenHash, wd *ward) {
	w.mu.Lock()
	wd.streams--
	last := wd.streams == 0
	if last && w.open[key] == wd {
		delete(w.open, key)
	}
	w.mu.Unlock()
	if last {
		wd.end(context.Canceled)
		<-wd.done
	}
}

func (wd *ward) watch(s *Server, token string, role engine.Role) {
	defer close(wd.done)
	every := s.pace.orDefault().recheck
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-wd.ctx.Done():
			return
		case <-tick.C:
		}
		now, err := s.authenticateAgain(wd.ctx, token)
		switch code := engine.AsCode(err); {
		case code == engine.Unauthorized || code == engine.Forbidden || code == engine.NotFound:
			wd.end(engine.Errorf(engine.Unauthorized, "the token was revoked or has expired").
				WithHint("use another"))
		case err == nil && now != role:
			wd.end(engine.Errorf(engine.Unavailable, "the token's role was changed").After(time.Second))
		}
		// Any other error says nothing of the token: a busy disk revokes nobody.
	}
}

func (s *Server) authenticateAgain(ctx context.Context, token string) (engine.Role, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, role, err := s.Authenticate(ctx, token)
	return role, err
}
