package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"sbx/engine"
)

// Logs yields lines in order. A cut isn't seen: it goes on after the last line
// that it yielded.
func (c *Client) Logs(ctx context.Context, q engine.LogQuery) iter.Seq2[engine.LogLine, error] {
	return func(yield func(engine.LogLine, error) bool) {
		ctx, cancel := c.bind(ctx)
		defer cancel()
		tries := len(c.backoff)
		if q.Follow {
			tries = 0
		}
		r := &follower{c: c, q: q, yield: yield}
		if err := c.resume(ctx, tries, endsQuery, r.connection); err != nil && err != errStopped {
			yield(engine.LogLine{}, err)
		}
	}
}

// follower is one way through a log, over as many connections as it takes.
type follower struct {
	c     *Client
	q     engine.LogQuery // what is left to read
	read  bool            // a line was yielded
	yield func(engine.LogLine, error) bool
}

func (r *follower) connection(ctx context.Context) (progress bool, err error) {
	s, err := r.c.dial(ctx, "/v1/logs", logValues(r.q), r.c.silence)
	if err != nil {
		return false, err
	}
	defer s.close()
	for {
		var f struct {
			Lines []engine.LogLine `json:"lines"`
			Empty bool             `json:"empty"`
			Error *engine.Error    `json:"error"`
		}
		more, err := s.next(&f)
		if err != nil || !more {
			return progress, err
		}
		if f.Error != nil {
			return progress, s.told(f.Error)
		}
		if f.Empty {
			r.q.Tail = 0 // what comes from now on is all new
		}
		for _, line := range f.Lines {
			if r.read && line.Next <= r.q.After {
				continue
			}
			if ctx.Err() != nil {
				return progress, context.Cause(ctx)
			}
			r.from(line.Next)
			progress = true
			if !r.yield(line, nil) {
				return progress, errStopped
			}
		}
	}
}

// from makes the query that of what comes at pos and after.
func (r *follower) from(pos engine.LogPosition) {
	r.read = true
	r.q.After, r.q.Tail, r.q.Since, r.q.SinceStart = pos, 0, time.Time{}, false
}

func logValues(q engine.LogQuery) url.Values {
	v := given("sandbox", string(q.Sandbox), "process", q.Process, "stream", string(q.Stream), "since", moment(q.Since))
	if q.After != 0 {
		v.Set("after", strconv.FormatInt(int64(q.After), 10))
	}
	if q.Tail != 0 {
		v.Set("tail", strconv.Itoa(q.Tail))
	}
	if q.SinceStart {
		v.Set("sinceStart", "true")
	}
	if q.Follow {
		v.Set("follow", "true")
	}
	return v
}

// moment is a time as a parameter; "" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
