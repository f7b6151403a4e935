package server

import (
	"bufio"
	"iter"
	"net/http"
	"time"
)

func (s *Server) heals(c *call) error {
	q, err := healQuery(c)
	if err != nil {
		return err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	return writeLines(s, c, toJSON(s.Engine.Heals(ctx, q)))
}

func (s *Server) audit(c *call) error {
	q, err := auditQuery(c)
	if err != nil {
		return err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	return writeLines(s, c, toJSON(s.Engine.Audit(ctx, q)))
}

// writeLines answers with a line of JSON for each item. An error before the
// first is the answer; one after it is the last line, {"error":…}.
func writeLines(s *Server, c *call, seq iter.Seq2[[]byte, error]) error {
	c.takeTime()
	w := &lines{c: c, buf: bufio.NewWriterSize(nil, 32<<10), patience: s.pace.orDefault().write}
	for b, err := range seq {
		if err != nil && !w.begun {
			return err
		}
		if err != nil {
			b = errorFrame(err)
		}
		if w.line(b) != nil {
			return nil // the client has gone, and needs no answer
		}
	}
	w.begin()
	_ = w.buf.Flush()
	return nil
}

// lines is an answer that is written line by line. Each write of it to the
// connection has a deadline of its own.
type lines struct {
	c        *call
	buf      *bufio.Writer
	patience time.Duration
	begun    bool
}

func (l *lines) begin() {
	if l.begun {
		return
	}
	l.begun = true
	l.c.w.Header().Set("Content-Type", mediaLines)
	l.c.w.WriteHeader(http.StatusOK)
	l.buf.Reset(l)
}

func (l *lines) line(b []byte) error {
	l.begin()
	if _, err := l.buf.Write(b); err != nil {
		return err
	}
	return l.buf.WriteByte('\n')
}

// Write is the buffer's way to the connection.
func (l *lines) Write(b []byte) (int, error) {
	// Some writers of tests have no deadlines; then the test is the deadline.
	_ = http.NewResponseController(l.c.w).SetWriteDeadline(time.Now().Add(l.patience))
	return l.c.w.Write(b)
}
