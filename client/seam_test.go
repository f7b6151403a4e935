package client_test

import (
	"context"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/server"
)

// restart ends the server, as an engine does that is upgraded, and serves the
// same engine at the same address.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.stop()
	w.server = &server.Server{Engine: w.server.Engine, Version: "test", Authenticate: authenticate}
	w.listen(t, w.addr)
}

// watched is an engine that counts how often its journal was asked for.
type watched struct {
	engine.Engine
	asked *count
}

func (e watched) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		e.asked.add()
		e.Engine.Events(ctx, after)(yield)
	}
}

// freezer makes connections that can fall silent without being closed.
type freezer struct {
	mu     sync.Mutex
	frozen bool
}

func (f *freezer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &silent{Conn: conn, f: f}, nil
}

func (f *freezer) freeze() { f.set(true) }
func (f *freezer) thaw()   { f.set(false) }

func (f *freezer) set(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = frozen
}

type silent struct {
	net.Conn
	f *freezer
}

// Read throws away what comes while frozen.
func (s *silent) Read(b []byte) (int, error) {
	for {
		n, err := s.Conn.Read(b)
		s.f.mu.Lock()
		frozen := s.f.frozen
		s.f.mu.Unlock()
		if !frozen || err != nil {
			return n, err
		}
	}
}

// handlerServer serves h on a loopback address until the test ends.
func handlerServer(t *testing.T, h http.Handler) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = hs.Serve(ln) // ends with Close
	}()
	t.Cleanup(func() {
		_ = hs.Close()
		<-done
	})
	return ln.Addr().String()
}

// spy makes connections that count the reads which brought some words.
type spy struct {
	words string
	seen  *count
}

func (s *spy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &spied{Conn: conn, spy: s}, nil
}

type spied struct {
	net.Conn
	*spy
}

func (s *spied) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if strings.Contains(string(b[:n]), s.words) {
		s.seen.add()
	}
	return n, err
}
