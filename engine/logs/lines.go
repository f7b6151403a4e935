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

// Query is where to begin reading, and whether to wait for more. Of After,
// Tail and Since the one that begins latest counts.
type Query struct {
	After  engine.LogPosition
	Tail   int       // the last so many lines; ignored with After
	Since  time.Time // what arrived then or later, to about a second
	Follow bool
}

// Lines yields the lines of a stream in order. Their texts are bytes as they
// were written, not even valid UTF-8. A position that has fallen off begins at
// the oldest line kept, and [engine.LogLine.Lost] says how much is missing;
// one beyond the end begins at the end.
//
// Not following, it ends at the end of what is there; following, when the
// stream has ended and all was read, when the log is removed, or with ctx's
// error.
func (s *Store) Lines(ctx context.Context, id engine.ProcessID, st engine.Stream, q Query) iter.Seq2[engine.LogLine, error] {
	return func(yield func(engine.LogLine, error) bool) {
		r, err := s.read(id, st, q)
		if err != nil {
			yield(engine.LogLine{}, fmt.Errorf("read log of %s: %w", id, err))
			return
		}
		defer r.close()
		for {
			line, err := r.line(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(engine.LogLine{}, err)
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

// A reader goes through one stream for one caller.
type reader struct {
	follower
	cursor cursor
	split  splitter
	lost   int64 // before the next line
	done   bool  // the cursor is at the end for good
	follow bool
}

// read opens a reader where q begins.
func (s *Store) read(id engine.ProcessID, st engine.Stream, q Query) (*reader, error) {
	str, err := s.hold(id, st)
	if err != nil {
		return nil, err
	}
	from, err := begin(str.dir, st, q)
	if err != nil {
		s.release(str)
		return nil, err
	}
	r := &reader{
		follower: follower{store: s, stream: str},
		cursor:   cursor{dir: str.dir, stream: st, pos: from},
		follow:   q.Follow,
	}
	r.split.pos = from
	return r, nil
}

func (r *reader) close() {
	r.cursor.close()
	r.follower.close()
}

// line is the next line; io.EOF at the end.
func (r *reader) line(ctx context.Context) (engine.LogLine, error) {
	for {
		if l, ok := r.split.next(r.done); ok {
			return r.logLine(l), nil
		}
		if r.done {
			return engine.LogLine{}, io.EOF
		}
		if err := ctx.Err(); err != nil {
			return engine.LogLine{}, err
		}
		if err := r.fill(ctx); err != nil {
			return engine.LogLine{}, err
		}
	}
}

// fill reads more into the splitter, waiting for it if it must.
func (r *reader) fill(ctx context.Context) error {
	if r.follow {
		r.watch()
	}
	over := r.over() // before reading: what was written before it ended is read
	n, lost, err := r.cursor.read(r.split.room())
	if lost > 0 {
		// What was begun before the gap has no end; it must not get another's.
		r.lost += lost
		r.split.cut(r.cursor.pos - int64(n))
	}
	r.split.fill(n)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, io.EOF):
		return err
	case over || !r.follow:
		r.done = true
		r.split.ended = over
		return nil
	}
	return r.wait(ctx)
}

// logLine makes the line that callers see. A line that was cut by a gap comes
// before the gap and doesn't carry it.
func (r *reader) logLine(l piece) engine.LogLine {
	line := engine.LogLine{
		Process: r.stream.key.process,
		Stream:  r.stream.key.stream,
		Pos:     engine.LogPosition(l.pos),
		Next:    engine.LogPosition(l.next),
		Time:    r.cursor.at(l.pos),
		Text:    string(l.text),
		Partial: l.partial,
	}
	if !l.cut {
		line.Lost, r.lost = r.lost, 0
	}
	return line
}
