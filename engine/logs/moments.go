package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"sbx/engine"
)

// Moment is what arrived at one time, as far as that is known. Data is valid
// until the next one is asked for.
type Moment struct {
	Pos  engine.LogPosition // of the first byte; what lies before and wasn't yielded is lost
	Time time.Time
	Data []byte
}

// Moments yields all that is there of a stream, as it was written, with its
// times.
func (s *Store) Moments(ctx context.Context, id engine.ProcessID, st engine.Stream) iter.Seq2[Moment, error] {
	return func(yield func(Moment, error) bool) {
		r, err := s.read(id, st, Query{})
		if err != nil {
			yield(Moment{}, fmt.Errorf("read log of %s: %w", id, err))
			return
		}
		defer r.close()
		buf := make([]byte, 32<<10)
		for ctx.Err() == nil {
			n, _, err := r.cursor.read(buf)
			if !r.cursor.moments(buf[:n], yield) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Moment{}, err)
				return
			}
		}
		yield(Moment{}, ctx.Err())
	}
}

// moments cuts what was read last where its time changes.
func (c *cursor) moments(b []byte, yield func(Moment, error) bool) bool {
	for len(b) > 0 {
		pos := c.pos - int64(len(b))
		at, n := c.at(pos), len(b)
		if next := c.clock.until; c.clock.known && next > pos && next < c.pos {
			n = int(next - pos)
		}
		if !yield(Moment{Pos: engine.LogPosition(pos), Time: at, Data: b[:n]}, nil) {
			return false
		}
		b = b[n:]
	}
	return true
}
