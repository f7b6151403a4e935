package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"sbx/engine"
	"sbx/engine/enginetest"
)

// live is a server on a loopback address, with a sandbox in its engine.
type live struct {
	*Server
	fake *enginetest.Fake
	addr string
	sb   engine.SandboxID
	stop func()
}

func newLive(t testing.TB, change func(*Server)) *live {
	t.Helper()
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, running) })
	f := enginetest.NewFake(t.TempDir())
	t.Cleanup(func() { _ = f.Close() })
	l := &live{Server: &Server{Engine: f, Authenticate: testAuth, Version: "test"}, fake: f}
	if change != nil {
		change(l.Server)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx, ln, l.Handler()) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(l.stop)
	l.sb = l.create(t, engine.CreateSandbox{Name: "one"})
	return l
}

func (l *live) create(t testing.TB, body engine.CreateSandbox) engine.SandboxID {
	t.Helper()
	r, err := l.fake.Do(context.Background(), engine.NewAction(body))
	if err != nil {
		t.Fatal(err)
	}
	return r.Sandbox
}

// fatEvent is about the size of the events that a sandbox made by fat has: so
// that a few of them fill what takes thousands of others.
const fatEvent = 64 << 10

func (l *live) fat(t testing.TB) engine.SandboxID {
	return l.create(t, engine.CreateSandbox{Name: "fat", Owner: strings.Repeat("x", fatEvent)})
}

// open is a WebSocket to a path.
func (l *live) open(t testing.TB, path, token string) *websocket.Conn {
	t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial("ws://"+l.addr+path, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		t.Fatalf("open %s: %v (%+v)", path, err, resp)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return ws
}

func (l *live) position(t testing.TB) engine.Position {
	t.Helper()
	snap, err := l.fake.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return snap.Position
}

// seqsOf are those of the events in a frame. It looks for how each begins:
// decoding megabytes takes the race detector seconds.
func seqsOf(t testing.TB, frame []byte) (list []engine.Seq) {
	t.Helper()
	for {
		_, rest, ok := bytes.Cut(frame, []byte(`{"seq":`))
		if !ok {
			return list
		}
		digits, _, _ := bytes.Cut(rest, []byte(","))
		seq, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			t.Fatalf("an event begins with %q", digits)
		}
		list = append(list, engine.Seq(seq))
		frame = rest
	}
}

// readEvents reads events until seq, and returns how many frames that took.
func readEvents(t testing.TB, ws *websocket.Conn, after, seq engine.Seq) (frames int) {
	t.Helper()
	for after < seq {
		_, b, err := ws.ReadMessage()
		if err != nil || bytes.HasPrefix(b, []byte(`{"error"`)) {
			t.Fatalf("after %d: %v %.200s", after, err, b)
		}
		frames++
		for _, seq := range seqsOf(t, b) {
			if seq != after+1 {
				t.Fatalf("event %d came after %d", seq, after)
			}
			after = seq
		}
	}
	return frames
}

// readEnd reads until the stream ends: with which error, and which close.
func readEnd(t testing.TB, ws *websocket.Conn) (*engine.Error, int) {
	t.Helper()
	if err := ws.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var last *engine.Error
	for {
		_, b, err := ws.ReadMessage()
		if ce, ok := err.(*websocket.CloseError); ok {
			return last, ce.Code
		}
		if err != nil {
			return last, 0
		}
		var f struct{ Error *engine.Error }
		if json.Unmarshal(b, &f) == nil && f.Error != nil {
			last = f.Error
		}
	}
}

// left waits until no more than n sockets read the journal.
func (l *live) left(t testing.TB, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		l.feed.mu.Lock()
		tap := l.feed.tap
		ok := tap == nil || tap.sockets <= n
		l.feed.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-t.Context().Done():
		case <-time.After(time.Millisecond):
		}
	}
	t.Errorf("more than %d sockets still read the journal", n)
}

// reading waits until the shared reader of the journal has n sockets and knows
// where it is.
func (l *live) reading(t testing.TB, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		l.feed.mu.Lock()
		tap := l.feed.tap
		ok := tap != nil && tap.sockets >= n
		l.feed.mu.Unlock()
		if ok {
			<-tap.ready
			return
		}
		select {
		case <-t.Context().Done():
		case <-time.After(time.Millisecond):
		}
	}
	t.Fatalf("no %d sockets read the journal", n)
}
