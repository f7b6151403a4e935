package server

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"sbx/engine"
)

// The sizes of bodies.
const (
	maxBody     = 1 << 20
	maxFileBody = 12 << 20 // engine.MaxFile in base64, and the rest
)

const requestIDHeader = "Sbx-Request-Id"

// call is one request and who makes it.
type call struct {
	w     http.ResponseWriter
	r     *http.Request
	id    string // of the request
	actor engine.Actor
	role  engine.Role
	token string // "" over the unix socket
	limit int64  // of the body
}

// body reads what came with the request, if anything did.
func (c *call) body() ([]byte, error) {
	limit := c.limit
	if limit == 0 {
		limit = maxBody
	}
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	c.takeTime()
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return nil, engine.Errorf(engine.Invalid, "the request's body is larger than %s", engine.Size(limit))
	}
	if err != nil {
		return nil, engine.Errorf(engine.Invalid, "read the request's body: %w", err)
	}
	return b, nil
}

// takeTime lets the answer take longer than the reading of the request may:
// when that deadline passes, net/http counts the client as gone.
func (c *call) takeTime() {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // writers of tests have none
}

// reply answers with v.
func (c *call) reply(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return engine.Errorf(engine.Internal, "encode the answer: %w", err)
	}
	c.write(http.StatusOK, b)
	return nil
}

// fail answers with an error. It must not be called once an answer has begun.
func (c *call) fail(err error) {
	e := engine.AsError(err)
	if e.RetryAfter == 0 && e.Code == engine.Exhausted {
		e.RetryAfter = engine.Duration(exhaustedRetry)
	}
	if e.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.D().Seconds()))))
	}
	if e.Code == engine.Unauthorized {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="sbx"`)
	}
	c.write(Status(e.Code), errorFrame(e))
}

// exhaustedRetry is when to come back if the engine doesn't know better: its
// sweep may have made room by then.
const exhaustedRetry = 5 * time.Second

func (c *call) write(status int, b []byte) {
	// Some writers of tests have no deadlines; then the test is the deadline.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(replyTimeout))
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b) // a peer that has gone needs no answer
}

// errorFrame is an error as it stands in an answer or as a stream's last frame.
func errorFrame(err error) []byte {
	b, jerr := json.Marshal(map[string]*engine.Error{"error": engine.AsError(err)})
	if jerr != nil { // strings and a duration always encode
		return []byte(`{"error":{"code":"internal","message":"encode the error"}}`)
	}
	return b
}

// statuses is the one table of codes and what they are in HTTP. The code in
// the body counts: two codes share 503.
var statuses = map[engine.Code]int{
	engine.Invalid:      http.StatusBadRequest,
	engine.NotFound:     http.StatusNotFound,
	engine.Conflict:     http.StatusConflict,
	engine.Exhausted:    http.StatusServiceUnavailable,
	engine.Unauthorized: http.StatusUnauthorized,
	engine.Forbidden:    http.StatusForbidden,
	engine.Unavailable:  http.StatusServiceUnavailable,
	engine.Compacted:    http.StatusGone,
	engine.Internal:     http.StatusInternalServerError,
}

// Status is the HTTP status of a code.
func Status(code engine.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}
