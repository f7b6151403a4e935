package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"sbx/engine"
)

const (
	maxAnswer = 256 << 20 // of an engine, in one piece
	maxError  = 64 << 10
)

// cutError is a failure of the way to the engine, not of the engine: what was
// asked may be asked again.
type cutError struct{ err error }

func (e *cutError) Error() string { return e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

func isCut(err error) bool {
	var cut *cutError
	return errors.As(err, &cut)
}

// nobody is the error of an engine that can't be reached.
func (c *Client) nobody(cause error) error {
	err := engine.Errorf(engine.Unavailable, "no engine at %s", c.where).WithHint(`is "sbx serve" running there?`)
	err.Err = cause
	return &cutError{err}
}

// lost is the error of a connection that broke.
func (c *Client) lost(cause error) error {
	err := engine.Errorf(engine.Unavailable, "the connection to the engine at %s was lost", c.where).
		WithHint(`is "sbx serve" running there?`)
	err.Err = cause
	return &cutError{err}
}

// request makes one HTTP request, and returns an answer that says yes.
func (c *Client) request(ctx context.Context, method, path string, q url.Values, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.address("http", path, q), bytes.NewReader(body))
	if err != nil {
		return nil, engine.Errorf(engine.Invalid, "make the request: %w", err)
	}
	if header != nil {
		req.Header = header
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	c.sign(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.transport(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

// address is a path's URL; scheme is "http" or "ws", with an s where the
// engine's has one. Ids in path are escaped by [url.PathEscape].
func (c *Client) address(scheme, path string, q url.Values) string {
	if c.base.Scheme == "https" {
		scheme += "s"
	}
	text := scheme + "://" + c.base.Host + c.base.EscapedPath() + path
	if len(q) > 0 {
		text += "?" + q.Encode()
	}
	return text
}

func (c *Client) sign(h http.Header) {
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
}

// transport is the error of a request that got no answer: ctx's if it ended.
func (c *Client) transport(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.nobody(err)
}

// refusal is the error in an answer. One that isn't the engine's, but of
// something in between, gets its code from the status.
func (c *Client) refusal(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // half an error is none
	var answer struct {
		Error *engine.Error `json:"error"`
	}
	if err := json.Unmarshal(b, &answer); err == nil && answer.Error != nil && answer.Error.Code != "" {
		return c.hinted(answer.Error)
	}
	code := codeOf(resp.StatusCode)
	err := engine.Errorf(code, "%s answered %s", c.where, resp.Status)
	if code == engine.Unavailable {
		return &cutError{err}
	}
	return c.hinted(err)
}

// hinted is an error of the engine with what to do on this side.
func (c *Client) hinted(e *engine.Error) error {
	if e.Code == engine.Unauthorized {
		if c.token == "" {
			return e.WithHint("give a token of that engine: set SBX_TOKEN")
		}
		if e.Hint == "" {
			return e.WithHint("set SBX_TOKEN to a token of that engine")
		}
	}
	return e
}

// codes is what a status means when no error of an engine came with it.
var codes = map[int]engine.Code{
	http.StatusBadRequest:         engine.Invalid,
	http.StatusUnauthorized:       engine.Unauthorized,
	http.StatusForbidden:          engine.Forbidden,
	http.StatusNotFound:           engine.NotFound,
	http.StatusConflict:           engine.Conflict,
	http.StatusGone:               engine.Compacted,
	http.StatusBadGateway:         engine.Unavailable,
	http.StatusServiceUnavailable: engine.Unavailable,
	http.StatusGatewayTimeout:     engine.Unavailable,
}

func codeOf(status int) engine.Code {
	if code, ok := codes[status]; ok {
		return code
	}
	return engine.Internal
}

// get asks for a value.
func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	ctx, cancel := c.bind(ctx)
	defer cancel()
	resp, err := c.request(ctx, http.MethodGet, path, q, http.Header{}, nil)
	if err != nil {
		return err
	}
	return c.decode(ctx, resp, into)
}

func (c *Client) decode(ctx context.Context, resp *http.Response, into any) error {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return c.lost(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return engine.Errorf(engine.Unavailable, "what answers at %s is no engine: %w", c.where, err).WithHint("check the address")
	}
	return nil
}

// answer is get for functions that return what they got.
func answer[T any](ctx context.Context, c *Client, path string, q url.Values) (T, error) {
	var v T
	err := c.get(ctx, path, q, &v)
	return v, err
}
