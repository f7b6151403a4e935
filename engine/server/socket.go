package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

const (
	maxMessage = 64 << 10               // of a client to us
	lastWords  = 300 * time.Millisecond // for the close frame of a stream that ends
)

// errPeerGone ends a stream whose client hung up, or was silent for too long.
var errPeerGone = errors.New("the client has gone")

// socket is an open WebSocket of ours. Three goroutines serve it, and all are
// waited for: the handler's own writes, one listens, one keeps time.
type socket struct {
	ws   *websocket.Conn
	pace pace
	// receive takes the client's messages; nil: it has nothing to say.
	receive func(kind int, r io.Reader) error
	// patient: the client may stop reading for as long as it is alive.
	patient bool

	mu sync.Mutex // one message is written at a time
}

// converse upgrades the call and runs talk until it returns, the client has
// gone, or ctx ends. An error of talk is the last frame.
func (s *Server) converse(ctx context.Context, c *call, sk *socket, talk func(ctx context.Context) error) error {
	ws, err := s.upgrade(c)
	if err != nil {
		return nil // the upgrader has answered
	}
	ctx, end := context.WithCancelCause(ctx)
	sk.ws, sk.pace = ws, s.pace.orDefault()
	over, heard := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(heard)
		end(sk.listen())
	})
	wg.Go(func() { sk.keepTime(ctx, end, over) })

	err = talk(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if !errors.Is(err, errPeerGone) {
		sk.bye(err)
		// A connection that is closed with something unread is reset, and the
		// last frame may be lost with it: let the client close first.
		waitFor(heard, lastWords)
	}
	close(over)
	end(context.Canceled)
	_ = ws.Close() // nothing is lost with it: all was said
	wg.Wait()
	return nil
}

func waitFor(done <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

func (s *Server) upgrade(c *call) (*websocket.Conn, error) {
	up := websocket.Upgrader{
		HandshakeTimeout: s.pace.orDefault().write,
		ReadBufferSize:   1 << 10,
		WriteBufferSize:  4 << 10,
		WriteBufferPool:  &s.buffers,
		CheckOrigin:      func(*http.Request) bool { return true }, // the guard has
		Error: func(_ http.ResponseWriter, _ *http.Request, _ int, reason error) {
			c.fail(engine.Errorf(engine.Invalid, "%w", reason).WithHint("this route is a WebSocket"))
		},
	}
	return up.Upgrade(c.w, c.r, http.Header{requestIDHeader: {c.id}})
}

// listen reads until the client is gone, and says so.
func (sk *socket) listen() error {
	alive := func() error { return sk.ws.SetReadDeadline(time.Now().Add(sk.pace.silence)) }
	sk.ws.SetReadLimit(maxMessage)
	pong := sk.ws.PingHandler()
	sk.ws.SetPingHandler(func(data string) error {
		if err := alive(); err != nil {
			return err
		}
		return pong(data)
	})
	sk.ws.SetPongHandler(func(string) error { return alive() })
	for {
		if err := alive(); err != nil {
			return errPeerGone
		}
		kind, r, err := sk.ws.NextReader()
		if err != nil {
			return errPeerGone
		}
		if sk.receive == nil {
			return engine.Errorf(engine.Invalid, "nothing is read from this stream")
		}
		if err := sk.receive(kind, r); err != nil {
			return err
		}
	}
}

// keepTime pings, and cuts the connection when the stream has ended and its
// last frame isn't taken soon.
func (sk *socket) keepTime(ctx context.Context, end context.CancelCauseFunc, over <-chan struct{}) {
	beat := time.NewTicker(sk.pace.beat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			err := sk.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(sk.pace.beat/2))
			// One that waits behind a big frame says nothing. Any other failure
			// is the end, and who listens may be busy with an earlier message.
			if timeout := net.Error(nil); err != nil && !(errors.As(err, &timeout) && timeout.Timeout()) {
				end(errPeerGone)
			}
		case <-ctx.Done():
			waitFor(over, lastWords)
			_ = sk.ws.NetConn().Close() // so that a blocked write returns
			return
		}
	}
}

// write sends one message and returns when the connection took it. A client
// that takes nothing for too long is cut.
func (sk *socket) write(kind int, b []byte) error {
	sk.mu.Lock()
	defer sk.mu.Unlock()
	deadline := time.Time{}
	if !sk.patient {
		deadline = time.Now().Add(sk.pace.write)
	}
	if err := sk.ws.SetWriteDeadline(deadline); err != nil {
		return errPeerGone
	}
	if err := sk.ws.WriteMessage(kind, b); err != nil {
		return errPeerGone
	}
	return nil
}

func (sk *socket) text(b []byte) error { return sk.write(websocket.TextMessage, b) }

// bye says how the stream ended: an error frame if it was one, then the close.
func (sk *socket) bye(err error) {
	code, why := websocket.CloseNormalClosure, ""
	if errors.Is(err, context.Canceled) { // of the http.Server, which ends in a hurry
		err = goingAway()
	}
	if err != nil {
		code, why = websocket.CloseInternalServerErr, string(engine.AsCode(err))
		if engine.AsCode(err) == engine.Unavailable {
			code = websocket.CloseGoingAway
		}
		sk.patient = false
		if sk.text(errorFrame(err)) != nil {
			return
		}
	}
	_ = sk.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(lastWords))
}
