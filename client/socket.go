package client

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

// maxFrame bounds what an engine may send in one piece.
const maxFrame = 64 << 20

// socket is one connection of a stream. It is read in the goroutine of whoever
// reads the stream, and closed when ctx ends.
type socket struct {
	c       *Client
	ctx     context.Context // of this connection alone
	ws      *websocket.Conn
	silence time.Duration
	release func()
}

// dial opens a WebSocket. A socket that says nothing for silence is lost.
func (c *Client) dial(ctx context.Context, path string, q url.Values, silence time.Duration) (*socket, error) {
	h := http.Header{}
	c.sign(h)
	dialing, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	ws, resp, err := c.handshake(dialing, c.address("ws", path, q), h)
	if err != nil {
		if resp != nil && ctx.Err() == nil { // its body holds the beginning of the answer
			return nil, c.refusal(resp)
		}
		return nil, c.transport(ctx, err)
	}
	s := &socket{c: c, ctx: ctx, ws: ws, silence: silence}
	ws.SetReadLimit(maxFrame)
	pong := ws.PingHandler()
	ws.SetPingHandler(func(data string) error {
		if err := s.alive(); err != nil {
			return err
		}
		return pong(data)
	})
	s.release = closeWith(ctx, ws)
	return s, nil
}

// handshake is the dialer's, but that it ends with ctx: gorilla looks at the
// deadline of one only.
func (c *Client) handshake(ctx context.Context, url string, h http.Header) (*websocket.Conn, *http.Response, error) {
	stop := func() bool { return true }
	d := *c.sockets
	connect := d.NetDialContext
	d.NetDialContext = func(dialing context.Context, network, addr string) (net.Conn, error) {
		conn, err := connect(dialing, network, addr)
		if err == nil {
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
	ws, resp, err := d.DialContext(ctx, url, h)
	if !stop() && err == nil {
		_ = ws.Close()
		return nil, nil, ctx.Err()
	}
	return ws, resp, err
}

// closeWith closes ws when ctx ends, so that a blocked read returns. The
// function it returns undoes that and returns when nothing of it runs.
func closeWith(ctx context.Context, ws *websocket.Conn) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = ws.Close()
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// close says goodbye and hangs up.
func (s *socket) close() {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second)) // it may be gone already
	_ = s.ws.Close()
	s.release()
}

func (s *socket) alive() error { return s.ws.SetReadDeadline(time.Now().Add(s.silence)) }

// next reads one JSON frame into v; false at the stream's own end.
func (s *socket) next(v any) (bool, error) {
	if err := s.alive(); err != nil {
		return false, s.broken(err)
	}
	_, b, err := s.ws.ReadMessage()
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		return false, nil
	}
	if err != nil {
		return false, s.broken(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, s.broken(err)
	}
	return true, nil
}

func (s *socket) broken(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return s.c.lost(err)
}

// told is an error that the engine sent, as an error of ours.
func (s *socket) told(e *engine.Error) error {
	if e == nil {
		return nil
	}
	return s.c.hinted(e)
}
