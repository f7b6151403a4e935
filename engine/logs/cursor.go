package logs

import (
	"errors"
	"io"
	"os"
	"time"

	"sbx/engine"
)

// A cursor reads a stream's bytes from a position on, across segments, and
// says what it could not read because it was dropped.
//
//	EOF in a segment ─► is there a segment named by this position?  go on in it
//	                 └► is this segment still there?  then this is the end, for now
//	                 └► is there a later one?  what lies between was dropped
type cursor struct {
	dir    string
	stream engine.Stream
	pos    int64

	file  *os.File // the segment that pos lies in; nil before the first read
	base  int64
	clock clock
}

// read fills p with what comes next and returns how many bytes before that
// were lost. At the end it returns io.EOF; reading again later goes on.
func (c *cursor) read(p []byte) (n int, lost int64, err error) {
	for {
		if c.file != nil {
			n, err = c.file.ReadAt(p, c.pos-c.base)
			if n > 0 {
				c.pos += int64(n)
				c.clock.refresh(c.pos - int64(n))
				return n, lost, nil
			}
			if !errors.Is(err, io.EOF) {
				return 0, lost, err
			}
		}
		skipped, err := c.advance()
		lost += skipped
		if err != nil {
			return 0, lost, err
		}
	}
}

// advance opens the segment that goes on at pos; io.EOF if there is none.
func (c *cursor) advance() (lost int64, err error) {
	if c.file != nil {
		if c.pos > c.base {
			if err := c.open(c.pos); !gone(err) {
				return 0, err
			}
		}
		// The oldest is dropped first: while this one is there, no later one
		// was, and the end is the end.
		if _, err := os.Lstat(segmentPath(c.dir, c.stream, c.base)); err == nil {
			return 0, io.EOF
		}
	}
	bases, err := segments(c.dir, c.stream)
	if err != nil {
		return 0, err
	}
	base, found := segmentAt(bases, c.pos)
	switch {
	case !found && len(bases) == 0:
		return 0, io.EOF
	case !found: // all that is there comes later
		base = bases[0]
	case c.file != nil && base <= c.base: // still the one that was read to its end
		return 0, io.EOF
	}
	if c.file != nil && c.more() {
		return 0, nil // written between our EOF and the listing
	}
	if err := c.open(base); err != nil {
		if gone(err) {
			return 0, nil // dropped since the listing: look again
		}
		return 0, err
	}
	if base > c.pos {
		lost, c.pos = base-c.pos, base
	}
	return lost, nil
}

// segmentAt is the base of the segment that pos lies in or comes to.
func segmentAt(bases []int64, pos int64) (int64, bool) {
	for i := len(bases) - 1; i >= 0; i-- {
		if bases[i] <= pos {
			return bases[i], true
		}
	}
	return 0, false
}

// more reports whether the open segment has bytes at pos.
func (c *cursor) more() bool {
	fi, err := c.file.Stat()
	return err == nil && fi.Size() > c.pos-c.base
}

func (c *cursor) open(base int64) error {
	f, err := os.Open(segmentPath(c.dir, c.stream, base))
	if err != nil {
		return err
	}
	c.close()
	c.file, c.base = f, base
	c.clock = openClock(indexPath(c.dir, c.stream, base), f, max(base, c.pos))
	return nil
}

// at is when the byte at pos arrived; pos must not go backwards, and must lie
// in what was read last or, as the beginning of a line, shortly before.
func (c *cursor) at(pos int64) time.Time { return c.clock.at(pos) }

func (c *cursor) close() {
	if c.file != nil {
		c.file.Close() // only read
		c.file = nil
	}
	c.clock.close()
}
