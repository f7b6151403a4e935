package client_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/enginetest"
	"sbx/engine/server"
)

const token = "a token of a test"

var origin = engine.Origin{Kind: engine.FromTemplate, Ref: "demo"}

// world is a fake engine behind a server on a loopback address.
type world struct {
	fake   *enginetest.Fake
	asked  *count // the journal's readers
	server *server.Server
	addr   string
	stop   func() // of the server; returns when it has
}

// newWorld begins one that ends with the test, and leaves nothing running.
func newWorld(t *testing.T) *world {
	t.Helper()
	// Everything that this test starts ends before this looks.
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, running) })
	w := &world{fake: enginetest.NewFake(t.TempDir()), asked: newCount()}
	t.Cleanup(func() { _ = w.fake.Close() })
	w.server = &server.Server{Engine: watched{w.fake, w.asked}, Version: "test", Authenticate: authenticate}
	w.listen(t, "127.0.0.1:0")
	t.Cleanup(func() { w.stop() })
	return w
}

// listen serves on addr until the test ends or stop is called.
func (w *world) listen(t *testing.T, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	w.stop = serve(t, w.server, ln, w.server.Handler())
}

func serve(t *testing.T, s *server.Server, ln net.Listener, h http.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln, h) }()
	stopped := false
	return func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
}

func authenticate(_ context.Context, got string) (engine.Actor, engine.Role, error) {
	if got != token {
		return engine.Actor{}, "", engine.Errorf(engine.Unauthorized, "no such token")
	}
	return engine.Actor{Kind: engine.ActorClient, Name: "test"}, engine.Admin, nil
}

// hasty are the settings of a client that doesn't wait long.
func hasty(addr string) client.Config {
	return client.Config{URL: "http://" + addr, Token: token, Backoff: []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}}
}

func dial(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestClientIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Harness {
		return enginetest.Harness{Engine: dial(t, hasty(newWorld(t).addr)), Origin: origin, Chats: true}
	})
}

func TestClientOfAProxyIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Harness {
		first := dial(t, hasty(newWorld(t).addr))
		w := &world{server: &server.Server{Engine: first, Version: "proxy", Authenticate: authenticate}}
		w.listen(t, "127.0.0.1:0")
		t.Cleanup(func() { w.stop() })
		return enginetest.Harness{Engine: dial(t, hasty(w.addr)), Origin: origin, Chats: true}
	})
}

func TestClientOverAUnixSocketIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Harness {
		w := newWorld(t)
		path := filepath.Join(t.TempDir(), "engine.sock")
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		actor := engine.Actor{Kind: engine.ActorOperator, Name: "me", From: "socket"}
		stop := serve(t, w.server, ln, w.server.SocketHandler(func(*http.Request) engine.Actor { return actor }))
		t.Cleanup(stop)
		cfg := hasty("")
		cfg.URL, cfg.Token, cfg.Socket = "", "", path
		return enginetest.Harness{Engine: dial(t, cfg), Origin: origin, Chats: true}
	})
}
