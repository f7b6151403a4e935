package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"sbx/engine"
)

// Fine has everything that a process writes stamped to the millisecond, for
// [Store.Moments], by whoever writes it; else that is known to about a second.
// It is for before the process starts.
func (s *Store) Fine(id engine.ProcessID) error {
	dir, err := s.path(id, engine.Stdout)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = os.WriteFile(finePath(dir), nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("time the log of %s: %w", id, err)
	}
	return nil
}

func finePath(dir string) string { return filepath.Join(dir, "fine") }

func fine(dir string) bool {
	_, err := os.Lstat(finePath(dir))
	return err == nil
}

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
