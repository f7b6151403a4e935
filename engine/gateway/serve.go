package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sbx/engine"
)

// Bounds of a request. A body is passed on as it comes; one that must be looked
// into is held.
const (
	maxBody     = 32 << 20
	maxHeldBody = 8 << 20
	spendWithin = 10 * time.Second
)

// provider is one of the upstreams, and what may be asked of it.
type provider struct {
	name   string
	up     Upstream
	paths  map[string]bool
	header string // of a key, beside Authorization; "": none
}

// The headers that pass, either way. All others stay behind: cookies, who asked
// from where, whose account it is.
var (
	passUp   = []string{"Content-Type", "Accept", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "User-Agent"}
	passDown = []string{"Content-Type", "Retry-After", "Retry-After-Ms", "Request-Id", "X-Request-Id", "X-Should-Retry"}
)

// flight is a request under way.
type flight struct {
	key engine.Key
	cut context.CancelCauseFunc
}

// serve passes one request to its provider.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, p provider) {
	path := strings.TrimPrefix(r.URL.Path, Prefix+p.name)
	key, err := g.authorize(r, p.header)
	switch {
	case err != nil:
	case !p.paths[path]:
		err = engine.Errorf(engine.NotFound, "the gateway does not serve %q of %s", clip(path), p.name)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		p.fail(w, http.StatusMethodNotAllowed, "invalid_request_error", "only POST is served here")
		return
	case p.up.URL == "":
		err = engine.Errorf(engine.Unavailable, "this engine has no key of %s", p.name)
	}
	if err != nil {
		p.refuse(w, err)
		return
	}
	ctx, cut := context.WithCancelCause(r.Context())
	defer cut(nil)
	f := &flight{key: key, cut: cut}
	g.enter(f)
	defer g.leave(f)
	m, err := g.take(ctx, key)
	if err == nil {
		err = g.pass(ctx, w, r, p, path, m)
	}
	if err != nil {
		p.refuse(w, err)
	}
}

func (g *Gateway) enter(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flights[f] = true
}

func (g *Gateway) leave(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flights, f)
}

// pass sends a request on and its answer back. An error is one that came before
// anything was answered.
func (g *Gateway) pass(ctx context.Context, w http.ResponseWriter, r *http.Request, p provider, path string, m *tally) error {
	defer func() { g.settle(m) }()
	out, hidden, err := p.request(ctx, w, r, path)
	if err != nil {
		return err
	}
	resp, err := g.Transport.RoundTrip(out)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			return cause
		}
		if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
			return engine.Errorf(engine.Invalid, "the request is larger than %d bytes", maxBody)
		}
		g.Log.Warn("the provider could not be reached", "provider", p.name, "sandbox", m.key.Sandbox, "err", err)
		return engine.Errorf(engine.Unavailable, "%s can't be reached", p.name)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return engine.Errorf(engine.Unavailable, "%s answered with a redirect, which is not followed", p.name)
	}
	for _, h := range passDown {
		if v := resp.Header.Values(h); len(v) > 0 {
			w.Header()[h] = v
		}
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		// The real key's trouble is the operator's: its words stay here.
		g.Log.Error("the provider refused the engine's own key", "provider", p.name, "status", resp.StatusCode)
		return engine.Errorf(engine.Unavailable, "%s refused the engine's own key", p.name)
	}
	w.WriteHeader(resp.StatusCode)
	c := &counter{
		w: w, flush: http.NewResponseController(w), tally: m, hide: hidden, provider: p,
		sse: strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"),
	}
	if err := c.copy(ctx, resp.Body); err != nil && ctx.Err() == nil {
		g.Log.Debug("an answer was cut", "provider", p.name, "sandbox", m.key.Sandbox, "err", err)
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	return nil
}

// request is what goes to the provider. hidden: the count of tokens was asked
// for by the gateway, and stays here.
func (p provider) request(ctx context.Context, w http.ResponseWriter, r *http.Request, path string) (out *http.Request, hidden bool, err error) {
	to, err := url.Parse(p.up.URL)
	if err != nil {
		return nil, false, engine.Errorf(engine.Internal, "the address of %s: %w", p.name, err)
	}
	to = to.JoinPath(path)
	body, length := io.Reader(http.MaxBytesReader(w, r.Body, maxBody)), r.ContentLength
	if r.ContentLength > maxBody {
		return nil, false, engine.Errorf(engine.Invalid, "the request is larger than %d bytes", maxBody)
	}
	if path == "/v1/chat/completions" {
		var held []byte
		if held, hidden, err = withUsage(w, r.Body); err != nil {
			return nil, false, err
		}
		body, length = bytes.NewReader(held), int64(len(held))
	}
	out, err = http.NewRequestWithContext(ctx, http.MethodPost, to.String(), body)
	if err != nil {
		return nil, false, engine.Errorf(engine.Internal, "ask %s: %w", p.name, err)
	}
	out.ContentLength = length
	for _, h := range passUp {
		if v := r.Header.Values(h); len(v) > 0 {
			out.Header[h] = v
		}
	}
	switch {
	case p.up.Token != "":
		out.Header.Set("Authorization", "Bearer "+p.up.Token)
	case p.header != "":
		out.Header.Set(p.header, p.up.Key)
	default:
		out.Header.Set("Authorization", "Bearer "+p.up.Key)
	}
	return out, hidden, nil
}

// withUsage has a stream of OpenAI's tell its tokens, which it does only if it
// is asked to. asked: it was the gateway who did.
func withUsage(w http.ResponseWriter, r io.Reader) (b []byte, asked bool, err error) {
	b, err = io.ReadAll(http.MaxBytesReader(w, io.NopCloser(r), maxHeldBody))
	if err != nil {
		return nil, false, engine.Errorf(engine.Invalid, "the request can't be read, or is larger than %d bytes", maxHeldBody)
	}
	var fields map[string]json.RawMessage
	var stream bool
	if json.Unmarshal(b, &fields) != nil || json.Unmarshal(fields["stream"], &stream) != nil || !stream || fields["stream_options"] != nil {
		return b, false, nil // the provider says what is wrong with it
	}
	fields["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	b, err = json.Marshal(fields)
	return b, err == nil, err
}

// refuse answers an error in the provider's shape.
func (p provider) refuse(w http.ResponseWriter, err error) {
	status, kind := http.StatusInternalServerError, "api_error"
	switch engine.AsCode(err) {
	case engine.Unauthorized:
		status, kind = http.StatusUnauthorized, "authentication_error"
	case engine.NotFound:
		status, kind = http.StatusNotFound, "not_found_error"
	case engine.Invalid:
		status, kind = http.StatusBadRequest, "invalid_request_error"
		if strings.Contains(err.Error(), "larger than") {
			status, kind = http.StatusRequestEntityTooLarge, "request_too_large"
		}
	case engine.Exhausted:
		status, kind = http.StatusTooManyRequests, "rate_limit_error"
		if e := (*engine.Error)(nil); errors.As(err, &e) && e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.D()/time.Second)+1))
		}
		w.Header().Set("X-Should-Retry", "false")
	case engine.Unavailable:
		status = http.StatusBadGateway
	}
	p.fail(w, status, kind, err.Error())
}

func (p provider) fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(p.errorBody(kind, message)) // a client that left needs no answer
}

// errorBody is an error as the provider tells it.
func (p provider) errorBody(kind, message string) []byte {
	inner := map[string]any{"type": kind, "message": "sbx: " + message}
	body := map[string]any{"error": inner}
	if p.name == "anthropic" {
		body["type"] = "error"
	} else {
		inner["param"], inner["code"] = nil, kind
	}
	b, err := json.Marshal(body)
	if err != nil {
		return []byte(`{"error":{}}`) // strings always marshal
	}
	return b
}

func clip(s string) string { return s[:min(len(s), 100)] }
