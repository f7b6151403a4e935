package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// The limits of a connection that isn't a stream.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	maxConns      = 8192
	leaveTimeout  = 5 * time.Second
)

// Serve answers on ln with h, one of the server's handlers, until ctx ends.
// Then it takes no more, hangs up on the streams, lets other requests finish
// for a few seconds, and returns nil.
func (s *Server) Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	places := limit(ln, maxConns)
	hs := &http.Server{
		ConnState:                    places.watch,
		Handler:                      h,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  bodyTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // it would answer before the guard
		ErrorLog:                     slog.NewLogLogger(s.logHandler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(places) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	s.streams.hangUp()
	if err := errors.Join(hs.Shutdown(leaving), s.Shutdown(leaving)); err != nil {
		_ = hs.Close() // what is left is cut
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) logHandler() slog.Handler {
	if s.Log == nil {
		return slog.NewTextHandler(io.Discard, nil)
	}
	return s.Log.Handler()
}

// limited is a listener that accepts so many connections at a time: the rest
// of the engine needs descriptors, too. Streams, which take theirs away from
// the http.Server, have a bound of their own.
type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(ln net.Listener, n int) *limited {
	return &limited{Listener: ln, places: make(chan struct{}, n), closed: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
	}
	return conn, err
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// watch is told by the http.Server how its connections are: each ends in one
// of these two states, and gives its place back.
func (l *limited) watch(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		<-l.places
	}
}
