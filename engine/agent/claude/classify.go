package claude

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/anthropics/anthropic-sdk-go"

	"sbx/engine"
	"sbx/engine/agent"
)

const (
	keyHint   = "set ANTHROPIC_API_KEY or model.key"
	urlHint   = "is it running, and is model.base_url right?"
	proxyHint = "is there a proxy in between, and is model.base_url right?"
)

// classify gives an error of the SDK the engine's code, words and hint.
func (m *Model) classify(err error) error {
	if api := (*anthropic.Error)(nil); errors.As(err, &api) {
		return m.answered(api)
	}
	var (
		quiet *silence
		moved *redirected
		page  *noStream
	)
	switch {
	case errors.As(err, &quiet):
		return engine.Errorf(engine.Unavailable, "%s", quiet.words)
	case errors.As(err, &moved):
		return engine.Errorf(engine.Invalid, "%s redirects to %q", m.url.Redacted(), clip(moved.to)).
			WithHint("set model.base_url to where the model server is")
	case errors.As(err, &page):
		return engine.Errorf(engine.Unavailable, "%s answered with %s instead of a model's words", m.url.Redacted(), named(page.kind)).
			WithHint(proxyHint)
	case errors.Is(err, errTooLarge):
		return engine.Errorf(engine.Invalid, "%w", err)
	case errors.Is(err, errCut):
		return engine.Errorf(engine.Unavailable, "%w", err)
	}
	return m.unreachable(err)
}

// unreachable is a failure of the way to the server, or of what came along it.
func (m *Model) unreachable(err error) error {
	var (
		lookup *net.DNSError
		cert   *tls.CertificateVerificationError
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
	)
	at := m.url.Redacted()
	switch {
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, errGarbled):
		return engine.Errorf(engine.Unavailable, "%s", m.hide(clip("the model's answer was garbled: "+innermost(err)))).WithHint(proxyHint)
	case errors.As(err, &cert):
		return engine.Errorf(engine.Unavailable, "the certificate of %s isn't trusted: %w", at, cert).
			WithHint("for a private authority set SSL_CERT_FILE")
	case errors.As(err, &lookup):
		return engine.Errorf(engine.Unavailable, "there is no host for %s: %w", at, lookup).WithHint(urlHint)
	case errors.Is(err, syscall.ECONNREFUSED):
		return engine.Errorf(engine.Unavailable, "no model server at %s: connection refused", at).WithHint(urlHint)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		return engine.Errorf(engine.Unavailable, "the model's answer was cut off: the connection broke")
	}
	return engine.Errorf(engine.Unavailable, "the model at %s can't be reached: %s", at, m.hide(clip(innermost(err)))).WithHint(urlHint)
}

// answered is a failure that the server told, by status or in mid-stream.
func (m *Model) answered(e *anthropic.Error) error {
	words, isAPI := said(e.RawJSON())
	words = m.hide(clip(words))
	status, kind := e.StatusCode, string(e.Type())
	switch {
	case status == http.StatusUnauthorized || kind == "authentication_error":
		return engine.Errorf(engine.Unauthorized, "the model refused the key").WithHint(keyHint)
	case status == http.StatusPaymentRequired || kind == "billing_error" || unpaid(e.RawJSON()):
		return exhausted(words)
	case status == http.StatusForbidden || kind == "permission_error":
		return engine.Errorf(engine.Forbidden, "the key may not use %s: %s", m.Name(), words).
			WithHint("set another model.name, or a key that may")
	case status == http.StatusRequestEntityTooLarge || kind == "request_too_large" || tooLong(words):
		return engine.Errorf(engine.Invalid, "%w: %s", agent.ErrTooLong, words)
	case status == http.StatusTooManyRequests || kind == "rate_limit_error":
		return limited(e, words)
	case status == http.StatusNotFound || kind == "not_found_error":
		return m.notFound(words, isAPI)
	case kind == "invalid_request_error", status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return engine.Errorf(engine.Invalid, "the model refused the request: %s", words)
	case status == 529 || kind == "overloaded_error":
		return retryable(e, "the model is overloaded")
	case !isAPI:
		return retryable(e, "the model's server answered "+strconv.Itoa(status)+" with a page that isn't its own").WithHint(proxyHint)
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status < 300:
		return retryable(e, "the model's server failed: "+words)
	}
	return engine.Errorf(engine.Invalid, "the model's server answered %d: %s", status, words)
}

func exhausted(words string) error {
	return engine.Errorf(engine.Exhausted, "the model's spend limit is reached: %s", words).
		WithHint("raise the limit or add credit where the key was made")
}

// limited tells a rate that will pass from a limit that won't: only the first
// says when to come back. In mid-stream there are no headers of its own.
func limited(e *anthropic.Error, words string) error {
	if _, ok := retryAfter(e); !ok && e.StatusCode == http.StatusTooManyRequests {
		return exhausted(words)
	}
	return retryable(e, "the model's rate limit is reached")
}

func (m *Model) notFound(words string, isAPI bool) error {
	if !isAPI {
		return engine.Errorf(engine.NotFound, "nothing answers %s/v1/messages", m.url.Redacted()).WithHint(urlHint)
	}
	return engine.Errorf(engine.NotFound, "there is no model %s at %s: %s", m.Name(), m.url.Redacted(), words).
		WithHint("set model.name, for example %s", DefaultModel)
}

func retryable(e *anthropic.Error, words string) *engine.Error {
	err := engine.Errorf(engine.Unavailable, "%s", words)
	if after, ok := retryAfter(e); ok {
		return err.After(after)
	}
	return err
}

// retryAfter is when the server said to come back, at most in a day.
func retryAfter(e *anthropic.Error) (time.Duration, bool) {
	if e.Response == nil {
		return 0, false
	}
	h := e.Response.Header
	after := time.Duration(0)
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		after = time.Duration(min(ms, 864e5) * float64(time.Millisecond))
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		after = time.Duration(min(s, 86400) * float64(time.Second))
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		after = min(time.Until(at), 24*time.Hour)
	} else {
		return 0, false
	}
	return max(0, after), true
}

// said is the message of an error of the API, or of one that looks like it.
func said(raw string) (words string, isAPI bool) {
	var envelope struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(raw), &envelope) != nil || envelope.Error.Message == "" {
		return "it did not say why", json.Valid([]byte(raw)) && strings.HasPrefix(strings.TrimSpace(raw), "{")
	}
	return envelope.Error.Message, true
}

// unpaid and tooLong read what the API tells in words only.
func unpaid(raw string) bool {
	return strings.Contains(raw, "spend_limit") || strings.Contains(raw, "spend limit") || strings.Contains(raw, "credit balance")
}

func tooLong(words string) bool {
	return strings.Contains(words, "prompt is too long") || strings.Contains(words, "exceed context limit")
}

func named(kind string) string {
	switch kind {
	case "":
		return "nothing that has a type"
	case "text/html":
		return "a page of HTML"
	}
	return clip(kind)
}

// hide takes the key out of what a server said.
func (m *Model) hide(s string) string {
	for _, secret := range []string{m.config.Key, m.config.AuthToken} {
		if len(secret) > 3 {
			s = strings.ReplaceAll(s, secret, "…")
		}
	}
	return s
}

// innermost is what an error of net/http says without its method and address.
func innermost(err error) string {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

// clip is foreign text on one short line.
func clip(s string) string { return agent.OneLine(s, 300) }
