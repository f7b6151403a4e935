package logs

import (
	"bytes"
	"os"
	"time"

	"sbx/engine"
)

// begin is the position that a query begins at.
func begin(dir string, st engine.Stream, q Query) (int64, error) {
	first, end, err := bounds(dir, st)
	if err != nil {
		return 0, err
	}
	from := min(max(0, int64(q.After)), end)
	if q.After == 0 && q.Tail > 0 {
		tail, err := tailFrom(dir, st, first, end, q.Tail)
		if err != nil {
			return 0, err
		}
		from = max(from, tail)
	}
	if !q.Since.IsZero() {
		since, err := sinceFrom(dir, st, end, q.Since)
		if err != nil {
			return 0, err
		}
		from = max(from, since)
	}
	return from, nil
}

const seekBlock = 32 << 10

// tailFrom is where the last n lines begin. It reads backwards from the end,
// and never further than n lines of the greatest length.
func tailFrom(dir string, st engine.Stream, first, end int64, n int) (int64, error) {
	floor := max(first, end-int64(n)*int64(lineRoom))
	if int64(n) > (end-first)/int64(lineRoom)+1 {
		floor = first // and no product overflows
	}
	buf := make([]byte, seekBlock)
	for to := end; to > floor; {
		from := max(floor, to-seekBlock)
		block, err := readSpan(dir, st, buf[:to-from], from)
		if err != nil {
			return 0, err
		}
		if to == end && len(block) > 0 && block[len(block)-1] == '\n' {
			block = block[:len(block)-1] // the end of the last line begins no line
		}
		for {
			i := bytes.LastIndexByte(block, '\n')
			if i < 0 {
				break
			}
			if n--; n == 0 {
				return from + int64(i) + 1, nil
			}
			block = block[:i]
		}
		to = from
	}
	return floor, nil
}

// readSpan reads the bytes from pos on, as far as they are still there and
// buf reaches.
func readSpan(dir string, st engine.Stream, buf []byte, pos int64) ([]byte, error) {
	c := cursor{dir: dir, stream: st, pos: pos}
	defer c.close()
	n := 0
	for n < len(buf) {
		k, lost, err := c.read(buf[n:])
		if lost > 0 || err != nil { // dropped meanwhile: begin behind it
			return buf[:n], nil
		}
		n += k
	}
	return buf[:n], nil
}

// sinceFrom is where the first line begins that arrived at since or later.
func sinceFrom(dir string, st engine.Stream, end int64, since time.Time) (int64, error) {
	bases, err := segments(dir, st)
	if err != nil {
		return 0, err
	}
	// A record speaks for what came within the interval after it.
	milli := since.Add(-indexInterval).UnixMilli()
	for _, base := range bases {
		pos, found, err := sinceIn(dir, st, base, milli)
		if err != nil {
			return 0, err
		}
		if found {
			return lineStart(dir, st, min(max(pos, base), end), bases[0])
		}
	}
	return end, nil
}

// sinceIn is the offset of a segment's first record later than milli. Without
// an index, the whole segment counts as written when it was changed last.
func sinceIn(dir string, st engine.Stream, base, milli int64) (int64, bool, error) {
	f, err := os.Open(indexPath(dir, st, base))
	if gone(err) {
		fi, err := os.Stat(segmentPath(dir, st, base))
		return base, err == nil && fi.ModTime().UnixMilli() > milli, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close() // only read
	r, ok := readRecord(f, search(f, func(r record) bool { return r.milli > milli }))
	return r.offset, ok, nil
}

// lineStart is where the line begins that pos lies in: records don't know of
// lines.
func lineStart(dir string, st engine.Stream, pos, first int64) (int64, error) {
	from := max(first, pos-seekBlock)
	block, err := readSpan(dir, st, make([]byte, pos-from), from)
	if err != nil {
		return 0, err
	}
	if i := bytes.LastIndexByte(block, '\n'); i >= 0 {
		return from + int64(i) + 1, nil
	}
	if from == first {
		return first, nil
	}
	return pos, nil
}
