package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

func TestEventsTravelTogether(t *testing.T) {
	l := newLive(t, nil)
	from := l.position(t)
	l.fake.Emit(l.sb, 2000)
	to := l.position(t)
	ws := l.open(t, "/v1/events?after="+from.String(), "viewer-token")
	if frames := readEvents(t, ws, from.Seq, to.Seq); frames > 20 {
		t.Errorf("2,000 events took %d frames, want them coalesced", frames)
	}
}

func TestEventsWithoutAPositionBeginNow(t *testing.T) {
	l := newLive(t, nil)
	l.fake.Emit(l.sb, 10)
	ws := l.open(t, "/v1/events", "viewer-token")
	from := l.position(t)
	l.reading(t, 1)
	l.fake.Emit(l.sb, 3)
	readEvents(t, ws, from.Seq, from.Seq+3)
}

// TestASocketThatTheRingLeftBehindCatchesUp: it stands at the beginning while
// the ring has long moved on.
func TestASocketThatTheRingLeftBehindCatchesUp(t *testing.T) {
	l := newLive(t, func(s *Server) { s.feed.limits = ringLimits{events: 50, bytes: 1 << 20} })
	from := l.position(t)
	quick := l.open(t, "/v1/events?after="+from.String(), "viewer-token")
	l.reading(t, 1)
	const n = 500
	go l.fake.Emit(l.sb, n)
	readEvents(t, quick, from.Seq, from.Seq+n)
	late := l.open(t, "/v1/events?after="+from.String(), "viewer-token")
	l.fake.Emit(l.sb, 10)
	readEvents(t, late, from.Seq, from.Seq+n+10)
	readEvents(t, quick, from.Seq+n, from.Seq+n+10)
}

// counting is an engine that counts who reads its journal.
type counting struct {
	engine.Engine
	mu      sync.Mutex
	readers int
}

func (c *counting) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	c.mu.Lock()
	c.readers++
	c.mu.Unlock()
	return c.Engine.Events(ctx, after)
}

func TestManySocketsAreOneReaderOfTheEngine(t *testing.T) {
	var c *counting
	l := newLive(t, func(s *Server) {
		c = &counting{Engine: s.Engine}
		s.Engine = c
	})
	from := l.position(t)
	var all []*websocket.Conn
	for range 20 {
		all = append(all, l.open(t, "/v1/events?after="+from.String(), "viewer-token"))
	}
	l.reading(t, len(all))
	l.fake.Emit(l.sb, 100)
	for _, ws := range all {
		readEvents(t, ws, from.Seq, from.Seq+100)
	}
	if c.mu.Lock(); c.readers != 1 {
		t.Errorf("the engine has %d readers, want 1", c.readers)
	}
	c.mu.Unlock()
}

func TestRevokingATokenEndsItsStreamsWithinASecond(t *testing.T) {
	var mu sync.Mutex
	revoked := false
	l := newLive(t, func(s *Server) {
		s.Authenticate = func(ctx context.Context, token string) (engine.Actor, engine.Role, error) {
			mu.Lock()
			defer mu.Unlock()
			if revoked && token == "operator-token" {
				return engine.Actor{}, "", engine.Errorf(engine.Unauthorized, "revoked")
			}
			return testAuth(ctx, token)
		}
	})
	from := l.position(t)
	paths := []string{"/v1/events", "/v1/gauges?every=50ms", "/v1/logs?follow=true&sandbox=" + string(l.sb)}
	var theirs []*websocket.Conn
	for _, p := range paths {
		theirs = append(theirs, l.open(t, p, "operator-token"))
	}
	other := l.open(t, "/v1/events?after="+from.String(), "viewer-token")
	l.reading(t, 2)
	mu.Lock()
	revoked = true
	mu.Unlock()
	began := time.Now()
	for i, ws := range theirs {
		if e, _ := readEnd(t, ws); e == nil || e.Code != engine.Unauthorized {
			t.Errorf("%s ended with %+v, want unauthorized", paths[i], e)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the streams ended after %s, want a second at most", took)
	}
	l.fake.Emit(l.sb, 1)
	readEvents(t, other, from.Seq, from.Seq+1)
}

func TestAServerThatStopsHangsUp(t *testing.T) {
	l := newLive(t, nil)
	paths := []string{"/v1/events", "/v1/gauges", "/v1/logs?follow=true&sandbox=" + string(l.sb)}
	var all []*websocket.Conn
	for _, p := range paths {
		all = append(all, l.open(t, p, "viewer-token"))
	}
	l.reading(t, 1)
	stopped := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		l.stop()
		stopped <- time.Since(began)
	}()
	for i, ws := range all {
		if e, code := readEnd(t, ws); e == nil || e.Code != engine.Unavailable || code != websocket.CloseGoingAway {
			t.Errorf("%s ended with %+v and the close %d, want going away", paths[i], e, code)
		}
	}
	if took := <-stopped; took > 2*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

func TestAClientThatReadsNothingIsCutAndSlowsNobody(t *testing.T) {
	l := newLive(t, func(s *Server) { s.pace.write = 300 * time.Millisecond })
	fat := l.fat(t)
	from := l.position(t)
	slow := l.open(t, "/v1/events?after="+from.String(), "viewer-token")
	quick := l.open(t, "/v1/events?after="+from.String(), "viewer-token")
	// A host may let a socket take in 32 MiB that nobody reads.
	if err := slow.NetConn().(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	l.reading(t, 2)
	const n = 16 << 20 / fatEvent // more than the buffers between two sockets
	l.fake.Emit(fat, n)
	readEvents(t, quick, from.Seq, from.Seq+n)
	l.left(t, 1) // it reads nothing until it was given up
	if err := slow.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	last, ended := from.Seq, error(nil)
	for ended == nil {
		var b []byte
		if _, b, ended = slow.ReadMessage(); ended == nil {
			last += engine.Seq(len(seqsOf(t, b)))
		}
	}
	if ne := net.Error(nil); errors.As(ended, &ne) && ne.Timeout() || last >= from.Seq+n {
		t.Errorf("the slow one got %d of %d events and %v, want it cut before the end", last-from.Seq, n, ended)
	}
	l.fake.Emit(l.sb, 1)
	readEvents(t, quick, from.Seq+n, from.Seq+n+1)
}

func TestAClientThatAnswersNoPingIsCut(t *testing.T) {
	l := newLive(t, func(s *Server) { s.pace.beat, s.pace.silence = 30*time.Millisecond, 200*time.Millisecond })
	dead := l.open(t, "/v1/events", "viewer-token")
	dead.SetPingHandler(func(string) error { return nil })
	alive := l.open(t, "/v1/events", "viewer-token")
	l.reading(t, 2)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = dead.ReadMessage() // until it is cut
	}()
	pongs := make(chan struct{}, 100)
	pong := alive.PingHandler()
	alive.SetPingHandler(func(s string) error {
		pongs <- struct{}{}
		return pong(s)
	})
	got := make(chan error, 1)
	go func() {
		_, _, err := alive.ReadMessage()
		got <- err
	}()
	<-ended
	for range 10 { // longer than the silence that is the other's end
		<-pongs
	}
	l.fake.Emit(l.sb, 1)
	if err := <-got; err != nil {
		t.Errorf("the one that answers was cut, too: %v", err)
	}
}

func TestAMessageToAStreamEndsIt(t *testing.T) {
	l := newLive(t, nil)
	for name, message := range map[string]string{"a word": "hello", "a huge frame": strings.Repeat("x", 8<<20)} {
		ws := l.open(t, "/v1/events", "viewer-token")
		_ = ws.WriteMessage(websocket.TextMessage, []byte(message)) // a huge one is cut in the middle
		if _, code := readEnd(t, ws); code == websocket.CloseNormalClosure {
			t.Errorf("after %s the stream goes on", name)
		}
	}
}

func TestHistoryIsALinePerRecord(t *testing.T) {
	l := newLive(t, nil)
	for i := range 3 {
		if _, err := l.fake.Do(t.Context(), engine.NewAction(engine.KeepSandbox{Sandbox: l.sb, Keep: i == 0})); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+l.addr+"/v1/audit?limit=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer admin-token")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != mediaLines {
		t.Errorf("the type is %q", ct)
	}
	dec := json.NewDecoder(resp.Body)
	var kinds []string
	for dec.More() {
		var e engine.AuditEntry
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	if fmt.Sprint(kinds) != "[sandbox.keep sandbox.keep]" {
		t.Errorf("the newest 2 are %q", kinds)
	}
}
