package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"sync/atomic"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

// AttachTerminal attaches a viewer. A cut ends it with an Unavailable error:
// what of the keys had arrived can't be known. Whoever can tell attaches again,
// from its Position.
func (c *Client) AttachTerminal(ctx context.Context, id engine.ProcessID, how engine.Attachment) (engine.Terminal, error) {
	q := url.Values{"from": {"screen"}}
	if how.From != engine.FromScreen {
		q.Set("from", strconv.FormatInt(int64(how.From), 10))
	}
	for name, set := range map[string]bool{"live": how.Live, "watch": how.Watch} {
		if set {
			q.Set(name, "true")
		}
	}
	if err := how.Size.Check(); err != nil {
		return nil, err
	}
	if !how.Size.Zero() {
		q.Set("cols", strconv.Itoa(how.Size.Cols))
		q.Set("rows", strconv.Itoa(how.Size.Rows))
	}
	p, err := c.openPipe(ctx, "/v1/processes/"+segment(id)+"/terminal", q)
	if err != nil {
		return nil, err
	}
	t := &terminal{pipe: p, watch: how.Watch}
	t.at.Store(int64(how.From))
	p.moved = func(at engine.LogPosition) { t.at.Store(int64(at)) }
	return t, nil
}

// terminal is an attached viewer: a pipe that knows where it is.
type terminal struct {
	*pipe
	watch bool
	at    atomic.Int64
}

// Read reads what is printed; io.EOF when the program has ended.
func (t *terminal) Read(b []byte) (int, error) {
	n, err := t.pipe.Read(b)
	if at := t.at.Load(); at >= 0 {
		t.at.Store(at + int64(n)) // only whoever reads moves it
	}
	return n, err
}

// Position is that of what Read gives next.
func (t *terminal) Position() engine.LogPosition { return engine.LogPosition(t.at.Load()) }

// Write types.
func (t *terminal) Write(b []byte) (int, error) {
	if t.watch {
		return 0, engine.Errorf(engine.Forbidden, "this viewer only watches")
	}
	return t.pipe.Write(b)
}

// Resize says how large the viewer's window is.
func (t *terminal) Resize(size engine.TermSize) error {
	if err := size.Check(); err != nil {
		return err
	}
	b, err := json.Marshal(map[string]engine.TermSize{"resize": size})
	if err != nil {
		return err
	}
	return t.send(websocket.TextMessage, b)
}

// Recording yields what a terminal printed. A cut ends it: the moments have no
// numbers to go on from.
func (c *Client) Recording(ctx context.Context, id engine.ProcessID) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) {
		ctx, cancel := c.bind(ctx)
		defer cancel()
		_, err := lines(ctx, c, "/v1/processes/"+segment(id)+"/recording", nil, func(r engine.Recorded) bool { return yield(r, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(engine.Recorded{}, err)
		}
	}
}
