package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/server"
)

func TestDialSaysThatNobodyIsThere(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	_, err = client.Dial(t.Context(), hasty(addr))
	if engine.AsCode(err) != engine.Unavailable || err.Error() != "no engine at http://"+addr || engine.Hint(err) != `is "sbx serve" running there?` {
		t.Errorf("got %q with the hint %q (%s)", err, engine.Hint(err), engine.AsCode(err))
	}
}

func TestDialSaysThatTheTokenIsWrong(t *testing.T) {
	w := newWorld(t)
	for _, wrong := range []string{"", "wrong"} {
		cfg := hasty(w.addr)
		cfg.Token = wrong
		if _, err := client.Dial(t.Context(), cfg); !errors.Is(err, engine.Unauthorized) || engine.Hint(err) == "" {
			t.Errorf("the token %q: %v with the hint %q, want unauthorized and what to do", wrong, err, engine.Hint(err))
		}
	}
}

func TestDialRefusesWhatItCannotSpeakTo(t *testing.T) {
	answers := map[string]string{
		"a newer protocol": `{"version":"9","protocol":{"min":2,"max":3}}`,
		"a web page":       `<html>hello</html>`,
		"other JSON":       `{"hello":"there"}`,
	}
	for name, body := range answers {
		addr := handlerServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		if _, err := client.Dial(t.Context(), hasty(addr)); engine.AsCode(err) != engine.Unavailable || engine.Hint(err) == "" {
			t.Errorf("%s: %v with the hint %q, want unavailable and what to do", name, err, engine.Hint(err))
		}
	}
	addr := handlerServer(t, http.NotFoundHandler())
	if _, err := client.Dial(t.Context(), hasty(addr)); engine.AsCode(err) != engine.Unavailable {
		t.Errorf("a server without our routes: %v, want unavailable", err)
	}
}

func TestDialRefusesURLsThatAreNone(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:7443", "ftp://h", "http://user:secret@h", "http://h?token=x", "http://"} {
		_, err := client.Dial(t.Context(), client.Config{URL: bad})
		if engine.AsCode(err) != engine.Invalid {
			t.Errorf("%q: %v, want invalid", bad, err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

func TestTheTokenFollowsNoRedirect(t *testing.T) {
	leaked := ""
	thief := handlerServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked = r.Header.Get("Authorization") }))
	addr := handlerServer(t, http.RedirectHandler("http://"+thief+"/", http.StatusTemporaryRedirect))
	if _, err := client.Dial(t.Context(), hasty(addr)); err == nil {
		t.Error("a redirect was followed")
	}
	if leaked != "" {
		t.Error("the token was sent to where the redirect pointed")
	}
}

// forgetful does what it is asked, and loses the first answers.
type forgetful struct {
	http.Handler
	mu      sync.Mutex
	losses  int
	arrived []string // the ids of the actions
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		f.Handler.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	f.arrived = append(f.arrived, r.Header.Get("Idempotency-Key"))
	lose := len(f.arrived) <= f.losses
	f.mu.Unlock()
	if !lose {
		f.Handler.ServeHTTP(w, r)
		return
	}
	f.Handler.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

func TestAnActionWhoseAnswerIsLostIsDoneOnce(t *testing.T) {
	w := newWorld(t)
	f := &forgetful{Handler: w.server.Handler(), losses: 3}
	c := dial(t, hasty(handlerServer(t, f)))
	r, err := c.Do(t.Context(), engine.NewAction(engine.CreateSandbox{Name: "one", Origin: origin}))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Sandboxes) != 1 || snap.Sandboxes[r.Sandbox].Name != "one" {
		t.Errorf("there are %d sandboxes, want the one of the receipt", len(snap.Sandboxes))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.arrived) < 4 || f.arrived[0] != f.arrived[3] {
		t.Errorf("the actions %q arrived, want one id four times", f.arrived)
	}
}

func TestAnActionThatWasRefusedIsNotSentAgain(t *testing.T) {
	w := newWorld(t)
	f := &forgetful{Handler: w.server.Handler()}
	c := dial(t, hasty(handlerServer(t, f)))
	if _, err := engine.Start(t.Context(), c, "sb-nobody"); engine.AsCode(err) != engine.NotFound {
		t.Errorf("got %v, want not found", err)
	}
	if f.mu.Lock(); len(f.arrived) != 1 {
		t.Errorf("it arrived %d times, want once", len(f.arrived))
	}
	f.mu.Unlock()
}

func TestAnActionToALostEngineGivesUp(t *testing.T) {
	w := newWorld(t)
	p := newProxy(t, w.addr)
	c := dial(t, hasty(p.addr()))
	p.set(true)
	if _, err := engine.Start(t.Context(), c, "sb-nobody"); engine.AsCode(err) != engine.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
	cfg := hasty(p.addr())
	cfg.Backoff = []time.Duration{time.Hour}
	p.set(false)
	patient := dial(t, cfg)
	p.set(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := engine.Start(ctx, patient, "sb-nobody"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// cutter cuts the first answers of a path after so many bytes.
type cutter struct {
	http.Handler
	path  string
	after int

	mu   sync.Mutex
	cuts int // left
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	cut := r.URL.Path == c.path && c.cuts > 0
	if cut {
		c.cuts--
	}
	c.mu.Unlock()
	if !cut {
		c.Handler.ServeHTTP(w, r)
		return
	}
	rec := httptest.NewRecorder()
	c.Handler.ServeHTTP(rec, r)
	w.WriteHeader(rec.Code)
	_, _ = w.Write(bytes.Clone(rec.Body.Bytes()[:min(c.after, rec.Body.Len())]))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestTheAuditLogIsReadOnceOverCuts(t *testing.T) {
	w := newWorld(t)
	sb := create(t, w.fake)
	for range 40 {
		if _, err := w.fake.Do(t.Context(), engine.NewAction(engine.KeepSandbox{Sandbox: sb.ID})); err != nil {
			t.Fatal(err)
		}
	}
	h := &cutter{Handler: w.server.Handler(), path: "/v1/audit", after: 1500, cuts: 5}
	c := dial(t, hasty(handlerServer(t, h)))
	var ids []int64
	for e, err := range c.Audit(t.Context(), engine.AuditQuery{Limit: 30}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if len(ids) != 30 || ids[0] != 12 || ids[29] != 41 {
		t.Errorf("got the entries %d, want 12 to 41", ids)
	}
	if h.cuts != 0 {
		t.Errorf("%d cuts were not made: the test tested nothing", h.cuts)
	}
}

func TestAPipeEndsWithACut(t *testing.T) {
	w := newWorld(t)
	p := newProxy(t, w.addr)
	c := dial(t, hasty(p.addr()))
	sb := create(t, w.fake)
	r, err := c.Do(t.Context(), engine.NewAction(engine.Spawn{Sandbox: sb.ID, Stdin: true, Command: engine.Command{Shell: "cat"}}))
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := c.Pipe(t.Context(), r.Process, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	p.cut()
	if _, err := io.ReadAll(pipe); engine.AsCode(err) != engine.Unavailable {
		t.Errorf("reading ended with %v, want unavailable", err)
	}
}

func TestStatusesMeanTheirCodes(t *testing.T) {
	for _, code := range []engine.Code{
		engine.Invalid, engine.NotFound, engine.Conflict, engine.Unauthorized, engine.Forbidden,
		engine.Unavailable, engine.Compacted, engine.Internal,
	} {
		broken := false
		addr := handlerServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken {
				w.WriteHeader(server.Status(code)) // without a body that says more
				return
			}
			_, _ = io.WriteString(w, `{"version":"1","protocol":{"min":1,"max":1}}`)
		}))
		c := dial(t, hasty(addr))
		broken = true
		if _, err := c.Snapshot(t.Context()); engine.AsCode(err) != code {
			t.Errorf("status %d came as %q, want %q", server.Status(code), engine.AsCode(err), code)
		}
	}
}
