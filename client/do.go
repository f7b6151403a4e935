package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"sbx/engine"
)

// Do sends an action. Where the way to the engine fails, it is sent again
// under its own id, so that it is done once however often it arrives, until
// the tries of one back-off are used up or ctx ends.
func (c *Client) Do(ctx context.Context, a engine.Action) (engine.Receipt, error) {
	if a.Body == nil {
		return engine.Receipt{}, engine.Errorf(engine.Invalid, "an action without a body")
	}
	if a.ID == "" {
		a.ID = engine.NewAction(a.Body).ID
	}
	body, err := json.Marshal(a.Body)
	if err != nil {
		return engine.Receipt{}, engine.Errorf(engine.Invalid, "encode the action: %w", err)
	}
	ctx, cancel := c.bind(ctx)
	defer cancel()
	for try := 0; ; try++ {
		r, err := c.send(ctx, a, body)
		if !isCut(err) || try >= len(c.backoff) {
			return r, err
		}
		c.log.Debug("action lost on its way", "action", a.ID, "error", errors.Unwrap(err))
		if c.pause(ctx, c.delay(try)) != nil {
			return r, context.Cause(ctx)
		}
	}
}

func (c *Client) send(ctx context.Context, a engine.Action, body []byte) (engine.Receipt, error) {
	e := engine.EntryOf(a.Body)
	path := strings.ReplaceAll(e.Path, "{id}", segment(a.Body.Subject()))
	h := http.Header{"Idempotency-Key": {string(a.ID)}}
	if a.IfSeq != 0 {
		h.Set("Sbx-If-Seq", strconv.FormatInt(int64(a.IfSeq), 10))
	}
	resp, err := c.request(ctx, e.Method, path, nil, h, body)
	if err != nil {
		return engine.Receipt{}, err
	}
	var r engine.Receipt
	err = c.decode(ctx, resp, &r)
	return r, err
}

// segment is an id as one segment of a path, whatever it is.
func segment[T ~string](id T) string {
	switch id {
	case "", ".", "..":
		return "-" // no id: a path with these would be another path
	}
	return url.PathEscape(string(id))
}
