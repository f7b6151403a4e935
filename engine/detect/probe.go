package detect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// The most that a probe reads of an answer's head, and how many interim
// answers (1xx) it lets pass.
const (
	maxHead    = 64 << 10
	maxInterim = 8
)

// Get makes one probe: a GET on a port of the box, healthy if the answer is
// 2xx. The answer comes from inside the sandbox, so no more than its head is
// read, and that bounded.
//
// It speaks HTTP itself: a client with its pool would cost three times as much
// for a connection that is used once.
func Get(ctx context.Context, box driver.Box, port int, path string, timeout time.Duration) engine.Probe {
	start := time.Now()
	p := engine.Probe{At: start.UTC().Truncate(time.Millisecond)}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, err := get(ctx, box, port, path)
	p.Latency = engine.Duration(time.Since(start).Round(time.Microsecond))
	if err != nil {
		p.Detail = words(ctx, err, timeout)
		return p
	}
	p.OK = status >= 200 && status < 300
	p.Detail = strconv.Itoa(status)
	return p
}

var errPath = errors.New("the health path is not a path")

func get(ctx context.Context, box driver.Box, port int, path string) (status int, err error) {
	u, err := url.ParseRequestURI(path)
	if err != nil || !strings.HasPrefix(path, "/") {
		return 0, errPath
	}
	conn, err := box.Dial(ctx, port)
	if err != nil {
		return 0, err
	}
	defer conn.Close() // nothing was written that could be lost
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost:%d\r\nUser-Agent: sbx-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n",
		u.RequestURI(), port)
	if err != nil {
		return 0, err
	}
	return statusOf(bufio.NewReaderSize(io.LimitReader(conn, maxHead), 1<<10))
}

func statusOf(r *bufio.Reader) (int, error) {
	for range maxInterim {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return 0, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode < 100 {
			return resp.StatusCode, nil
		}
	}
	return 0, errors.New("interim answers only")
}

// words is what went wrong as a person would say it.
func words(ctx context.Context, err error, timeout time.Duration) string {
	var timer net.Error
	switch {
	case errors.Is(err, errPath):
		return err.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timer) && timer.Timeout():
		return "no answer within " + timeout.String()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed without an answer"
	case errors.As(err, new(*net.OpError)):
		return "no connection"
	}
	if code := engine.Code(""); errors.As(err, &code) {
		return "no connection: " + cut(err.Error())
	}
	return "not an HTTP answer"
}

// cut keeps words short and in one line.
func cut(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 120 {
		s = strings.ToValidUTF8(s[:120], "")
	}
	return s
}
