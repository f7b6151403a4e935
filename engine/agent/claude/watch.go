package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
)

// How much of an answer is read. A turn of 64,000 tokens, a token an event, has
// about 8 MB; an error's page is only looked at for its words.
const (
	maxStream = 8 << 20
	maxError  = 64 << 10
)

// errTooLarge is an answer that no model gives.
var errTooLarge = fmt.Errorf("the model's answer is larger than %d MiB", maxStream>>20)

// watchdog ends a request that stays silent, or goes on too long whatever it
// says.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
	total  *time.Timer
	quiet  time.Duration
}

// silence is why the watchdog ended a request.
type silence struct{ words string }

func (s *silence) Error() string { return s.words }

func watch(parent context.Context, idle, total time.Duration) *watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	return &watchdog{
		ctx: ctx, cancel: cancel, quiet: idle,
		idle: time.AfterFunc(idle, func() {
			cancel(&silence{fmt.Sprintf("the model has been silent for %v", idle)})
		}),
		total: time.AfterFunc(total, func() {
			cancel(&silence{fmt.Sprintf("the model's answer took longer than %v", total)})
		}),
	}
}

func (w *watchdog) stop() {
	w.idle.Stop()
	w.total.Stop()
	w.cancel(nil)
}

// cause is why the watchdog ended the request, or nil.
func (w *watchdog) cause() error {
	if s := (*silence)(nil); errors.As(context.Cause(w.ctx), &s) {
		return s
	}
	return nil
}

// redirected and noStream are answers that the SDK would take for empty
// streams.
type redirected struct{ to string }

func (r *redirected) Error() string { return "redirected to " + r.to }

type noStream struct{ kind string }

func (n *noStream) Error() string { return "not a stream but " + n.kind }

// guard watches an answer's body, bounds it, and refuses what isn't a stream.
func (w *watchdog) guard(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err != nil || resp == nil {
		return resp, err
	}
	w.idle.Reset(w.quiet)
	switch {
	case resp.StatusCode >= 400:
		resp.Body = &body{ReadCloser: resp.Body, w: w, left: maxError, over: io.EOF}
		return resp, nil
	case resp.StatusCode >= 300:
		resp.Body.Close()
		return nil, &redirected{resp.Header.Get("Location")}
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body.Close()
		return nil, &noStream{kind}
	}
	resp.Body = &body{ReadCloser: resp.Body, w: w, left: maxStream, over: errTooLarge}
	return resp, nil
}

// body resets the idle clock with every read.
type body struct {
	io.ReadCloser
	w    *watchdog
	left int64
	over error // what a read over the bound returns
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.over
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if n > 0 {
		b.w.idle.Reset(b.w.quiet)
	}
	return n, err
}
