package server

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

// The rates of gauges.
const (
	usualEvery  = time.Second
	fastestRate = 20 * time.Millisecond
	slowestRate = time.Minute
)

// gauges sends {"gauges":…}, the newest when the client took the last. An
// engine out of reach, behind this one, is told as {"error":…} in between.
func (s *Server) gauges(c *call) error {
	v := c.values()
	every := v.duration("every", usualEvery, fastestRate, slowestRate)
	if v.err != nil {
		return v.err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	sk := &socket{}
	return s.converse(ctx, c, sk, func(ctx context.Context) error {
		for g, err := range s.Engine.Gauges(ctx, every) {
			b := errorFrame(err)
			if err == nil {
				b, err = json.Marshal(map[string]engine.Gauges{"gauges": g})
			}
			if err != nil && engine.AsCode(err) != engine.Unavailable {
				return err
			}
			if err := sk.text(b); err != nil {
				return err
			}
		}
		return engine.Errorf(engine.Unavailable, "the gauges ended")
	})
}

// logs sends {"lines":[…]} with all that is there. A follower of the last so
// many lines of an empty log is told so with {"lines":[],"empty":true}: after
// a cut it begins at the beginning, and misses nothing.
func (s *Server) logs(c *call) error {
	q, err := logQuery(c)
	if err != nil {
		return err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	sk := &socket{}
	return s.converse(ctx, c, sk, func(ctx context.Context) error {
		if err := s.tellEmpty(ctx, sk, q); err != nil {
			return err
		}
		var buf []byte
		lines := func(ctx context.Context) iter.Seq2[engine.LogLine, error] { return s.Engine.Logs(ctx, q) }
		return pump(ctx, lines, func(items [][]byte) error {
			if buf = frame(buf, "lines", items); cap(buf) > maxFrame {
				defer func() { buf = nil }() // an idle follower holds no big buffer
			}
			return sk.text(buf)
		})
	})
}

func (s *Server) tellEmpty(ctx context.Context, sk *socket, q engine.LogQuery) error {
	if !q.Follow || q.Tail == 0 || q.After != 0 {
		return nil
	}
	q.Follow, q.Tail = false, 1
	for _, err := range s.Engine.Logs(ctx, q) {
		return err
	}
	return sk.text([]byte(`{"lines":[],"empty":true}`))
}

// closeInput is the text frame that ends a process's stdin.
type closeInput struct {
	CloseInput bool `json:"closeInput"`
}

// pipe sends a process's stdout as binary frames and takes its stdin so. It
// ends when the process's output does. What can't be written to stdin is told
// as {"inputError":…}.
func (s *Server) pipe(c *call) error {
	v := c.values()
	after := engine.LogPosition(v.number("after"))
	if v.err != nil {
		return v.err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	p, err := s.Engine.Pipe(ctx, engine.ProcessID(c.r.PathValue("id")), after)
	if err != nil {
		return err
	}
	hangUp := sync.OnceFunc(func() { _ = p.Close() })
	defer hangUp()
	sk := &socket{patient: true}
	sk.receive = func(kind int, r io.Reader) error { return toInput(sk, p, kind, r) }
	return s.converse(ctx, c, sk, func(ctx context.Context) error {
		// What waits for output, or for a reader of stdin, is set free by this:
		// the socket can end before the process does, and the other way round.
		defer hangUp()
		defer context.AfterFunc(ctx, hangUp)()
		return fromOutput(sk, p)
	})
}

func fromOutput(sk *socket, p engine.Pipe) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := p.Read(buf)
		if n > 0 {
			if err := sk.write(websocket.BinaryMessage, buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func toInput(sk *socket, p engine.Pipe, kind int, r io.Reader) error {
	var err error
	if kind == websocket.BinaryMessage {
		_, err = io.Copy(p, r)
	} else {
		var m closeInput
		if jerr := json.NewDecoder(r).Decode(&m); jerr != nil || !m.CloseInput {
			return engine.Errorf(engine.Invalid, "text on a pipe is %s", strconv.Quote(`{"closeInput":true}`))
		}
		err = p.CloseInput()
	}
	if err == nil {
		return nil
	}
	b, jerr := json.Marshal(map[string]*engine.Error{"inputError": engine.AsError(err)})
	if jerr != nil {
		return jerr
	}
	return sk.text(b)
}
