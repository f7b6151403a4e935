package client

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

const (
	maxInput = 32 << 10 // of one message to the engine
	pipeBeat = 10 * time.Second
)

// Pipe is a spawned process's stdout and stdin. A cut ends it with an
// Unavailable error: what of stdin had arrived can't be known. Whoever can
// tell opens it again after the bytes read.
func (c *Client) Pipe(ctx context.Context, id engine.ProcessID, after engine.LogPosition) (engine.Pipe, error) {
	q := url.Values{}
	if after != 0 {
		q.Set("after", strconv.FormatInt(int64(after), 10))
	}
	p, err := c.openPipe(ctx, "/v1/processes/"+segment(id)+"/pipe", q)
	if err != nil {
		return nil, err // not an interface holding a nil pipe
	}
	return p, nil
}

func (c *Client) openPipe(ctx context.Context, path string, q url.Values) (*pipe, error) {
	ctx, cancel := c.bind(ctx)
	s, err := c.dial(ctx, path, q, c.silence)
	if err != nil {
		cancel()
		return nil, err
	}
	p := &pipe{socket: s, cancel: cancel}
	p.beat.Go(func() { p.keepTime(ctx) })
	return p, nil
}

// pipe is an open one. Its goroutine keeps time, because nobody has to read.
type pipe struct {
	*socket
	cancel context.CancelFunc
	beat   sync.WaitGroup
	rest   io.Reader // of the message being read
	ended  error     // what reading ended with
	once   sync.Once
	closed atomic.Bool
	moved  func(engine.LogPosition) // told where what comes next is, if that is said; nil: nobody cares

	mu    sync.Mutex // one message is written at a time
	input error      // why stdin takes no more
}

// keepTime tells the engine that we live, whether anyone reads or not.
func (p *pipe) keepTime(ctx context.Context) {
	t := time.NewTicker(pipeBeat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			_ = p.ws.WriteControl(websocket.PongMessage, nil, time.Now().Add(pipeBeat/2)) // a lost one shows elsewhere
		case <-ctx.Done():
			return
		}
	}
}

// Read reads stdout; io.EOF at its end.
func (p *pipe) Read(b []byte) (int, error) {
	for p.ended == nil {
		if p.rest == nil {
			p.ended = p.message()
			continue
		}
		if err := p.alive(); err != nil { // nobody may have read for a while
			return 0, p.broken(err)
		}
		n, err := p.rest.Read(b)
		if err == io.EOF {
			p.rest, err = nil, nil
		}
		if err != nil {
			p.ended = p.broken(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, p.ended
}

// message begins with the next one.
func (p *pipe) message() error {
	if err := p.alive(); err != nil {
		return p.broken(err)
	}
	kind, r, err := p.ws.NextReader()
	switch {
	case websocket.IsCloseError(err, websocket.CloseNormalClosure):
		p.refuse(engine.Errorf(engine.Conflict, "the process has ended its output, and the pipe with it"))
		return io.EOF
	case err != nil:
		return p.broken(err)
	case kind == websocket.BinaryMessage:
		p.rest = r
		return nil
	}
	var f struct {
		Error      *engine.Error `json:"error"`
		InputError *engine.Error `json:"inputError"`

		Position *engine.LogPosition `json:"position"`
	}
	if err := json.NewDecoder(r).Decode(&f); err != nil {
		return p.broken(err)
	}
	if f.InputError != nil {
		p.refuse(f.InputError)
	}
	if f.Position != nil && p.moved != nil {
		p.moved(*f.Position)
	}
	return p.told(f.Error)
}

// refuse has the next Write fail.
func (p *pipe) refuse(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.input == nil {
		p.input = why
	}
}

// broken is the error of a connection that broke, or that we closed.
func (p *pipe) broken(err error) error {
	if p.closed.Load() {
		return io.ErrClosedPipe
	}
	return p.socket.broken(err)
}

// Write writes to stdin. That it takes no more is known by the next Write.
func (p *pipe) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), maxInput)]
		if err := p.send(websocket.BinaryMessage, part); err != nil {
			return n, err
		}
		n += len(part)
		b = b[len(part):]
	}
	return n, nil
}

// CloseInput ends the process's stdin.
func (p *pipe) CloseInput() error {
	return p.send(websocket.TextMessage, []byte(`{"closeInput":true}`))
}

func (p *pipe) send(kind int, b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.input != nil {
		return p.input
	}
	if err := p.ws.WriteMessage(kind, b); err != nil {
		return p.broken(err)
	}
	return nil
}

// Close hangs up; the process goes on.
func (p *pipe) Close() error {
	p.once.Do(func() {
		p.closed.Store(true)
		p.socket.close()
		p.cancel()
		p.beat.Wait()
	})
	return nil
}
