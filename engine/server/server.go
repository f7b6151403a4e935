// Package server serves any engine.Engine over HTTP and WebSocket: a local
// one, or a client of another engine, which makes it a proxy for free.
//
// The one rule: deny by default. Every route stands in one table with the
// least role that it takes, every request passes the same door, and nothing is
// done for a request before its headers and its token were judged.
//
//	request ─► guard ─────────► door ──────────► role ───► handler
//	           Host, Origin,    bearer token,    of the    JSON, NDJSON
//	           content type     or unix socket   route     or WebSocket
//
// A stream pulls: the engine's iterator is advanced when the socket took what
// came before (one bounded buffer ahead, so that a burst travels as few big
// frames). A client that is slow or dead waits for itself alone, and is cut.
package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sbx/engine"
)

// Server serves an engine. Its exported fields are set before its handlers are
// made and not changed after.
type Server struct {
	Engine engine.Engine
	// Authenticate says whose a token is. Its errors are engine.Unauthorized
	// for a token that is unknown, expired or revoked; any other code is
	// answered as it is.
	Authenticate func(ctx context.Context, token string) (engine.Actor, engine.Role, error)
	// Hosts are the names, "sbx.example.com" or "sbx.example.com:7443", that
	// requests may be addressed to besides localhost, 127.0.0.1 and [::1].
	Hosts []string
	// Metrics writes what /metrics tells besides; nil: nothing.
	Metrics func(w io.Writer) error
	// Version is what hello says.
	Version string
	// Log gets a line for each refused or failed request, and one at the debug
	// level for every other; nil: none. It never gets a token.
	Log *slog.Logger

	streams streams
	wards   wards
	brake   brake
	feed    feed
	buffers sync.Pool // of gorilla's write buffers
	frames  sync.Pool // of frames of events
	pace    pace
}

// pace is how patient the server is with a peer. Zero values are the defaults
// below; tests are in more of a hurry.
type pace struct {
	beat    time.Duration // between pings
	silence time.Duration // of a peer, until it counts as dead
	write   time.Duration // for one frame or answer
	recheck time.Duration // of the token of an open stream
}

const (
	defaultBeat    = 15 * time.Second
	defaultSilence = 2*defaultBeat + 5*time.Second
	defaultWrite   = 10 * time.Second
	defaultRecheck = 400 * time.Millisecond // a revoked token's streams end within a second
	replyTimeout   = 30 * time.Second       // for an answer that isn't a stream
)

func (p pace) orDefault() pace {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&p.beat, defaultBeat)
	set(&p.silence, defaultSilence)
	set(&p.write, defaultWrite)
	set(&p.recheck, defaultRecheck)
	return p
}

// Handler is for TCP: it takes a bearer token on every route but /healthz.
func (s *Server) Handler() http.Handler { return s.handler(s.bearer) }

// SocketHandler is for the engine's own unix socket, whose mode says who may
// connect: it takes no token, and whoever is there may everything. actor says
// who that is.
func (s *Server) SocketHandler(actor func(*http.Request) engine.Actor) http.Handler {
	return s.handler(func(c *call) error {
		c.actor, c.role = actor(c.r), engine.Admin
		return nil
	})
}

// Shutdown hangs up on every open stream with "going away", refuses new ones,
// and returns when all have ended or ctx has. Other requests are the
// http.Server's to wait for; [Server.Serve] does both.
func (s *Server) Shutdown(ctx context.Context) error {
	s.streams.hangUp()
	return s.streams.wait(ctx)
}

// A door finds out who is calling and sets it, or refuses.
type door func(c *call) error

func (s *Server) handler(who door) http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.Handle(rt.method+" "+rt.path, s.serve(rt, who))
	}
	mux.Handle("/", s.serve(nowhere, who)) // a path that isn't there needs a token, too
	return s.guard(mux)
}

// serve is one route behind its door.
func (s *Server) serve(rt route, who door) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		c := &call{w: w, r: r, id: w.Header().Get(requestIDHeader), limit: rt.limit}
		err := s.admit(rt, who, c)
		if err == nil {
			err = rt.handle(s, c)
		}
		if err != nil {
			c.fail(err)
		}
		s.logCall(c, err, time.Since(begun))
	})
}

// admit is the door and the role.
func (s *Server) admit(rt route, who door, c *call) error {
	if rt.open {
		return nil
	}
	if err := who(c); err != nil {
		return err
	}
	if !c.role.Allows(rt.least) {
		return engine.Errorf(engine.Forbidden, "a token with the role %q can't do this", c.role).
			WithHint("use a token with the role %q", rt.least)
	}
	return nil
}

func (s *Server) logCall(c *call, err error, took time.Duration) {
	if s.Log == nil {
		return
	}
	// The path only: what stands behind the question mark may be a secret that
	// somebody put there by mistake.
	attrs := []any{"method", c.r.Method, "path", c.r.URL.Path, "by", c.actor.String(), "from", c.r.RemoteAddr, "took", took, "request", c.id}
	switch code := engine.AsCode(err); code {
	case "":
		s.Log.Debug("served", attrs...)
	case engine.Internal, engine.Unauthorized, engine.Forbidden:
		s.Log.Warn("refused or failed", append(attrs, "code", string(code), "error", err)...)
	default:
		s.Log.Debug("refused", append(attrs, "code", string(code), "error", err)...)
	}
}
