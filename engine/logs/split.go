package logs

import (
	"bytes"
	"unicode/utf8"

	"sbx/engine"
)

// A splitter cuts bytes into lines. Bytes go in by room and fill; lines come
// out by next, and are valid until room is called again.
type splitter struct {
	buf   []byte
	begin int   // of what wasn't given out yet
	seen  int   // after begin, where no line's end is
	pos   int64 // of buf[begin]

	gap   int   // in buf, where a gap cuts a line in two; 0: there is none
	after int64 // the position behind the gap
	ended bool  // the last line needs no line end: nothing more will come
}

// piece is a line, or a part of one.
type piece struct {
	text      []byte
	pos, next int64
	partial   bool
	cut       bool // by a gap behind it
}

// splitBuffer holds the longest line twice over, so that bytes are moved
// seldom.
const splitBuffer = 2 * engine.MaxLogLine

// lineRoom is how many bytes a line and its end may need.
const lineRoom = engine.MaxLogLine + len("\r\n")

// room is where to put more bytes. Only call it when next has nothing: there
// is room then.
func (s *splitter) room() []byte {
	if s.buf == nil {
		s.buf = make([]byte, 0, splitBuffer)
	}
	if s.begin > 0 {
		n := copy(s.buf, s.buf[s.begin:])
		s.buf = s.buf[:n]
		s.begin = 0
	}
	return s.buf[len(s.buf):cap(s.buf)]
}

// fill says that n bytes were put into room.
func (s *splitter) fill(n int) { s.buf = s.buf[:len(s.buf)+n] }

// cut says that the bytes filled next begin at pos, and that those between
// what was filled before and pos are lost.
func (s *splitter) cut(pos int64) {
	if s.begin == len(s.buf) {
		s.pos = pos
		return
	}
	s.gap, s.after = len(s.buf), pos
}

// next is the next line. At the end, it is also what has no line end.
func (s *splitter) next(end bool) (piece, bool) {
	if s.gap > 0 {
		return s.beforeGap(), true
	}
	rest := s.buf[s.begin:]
	window := rest[:min(len(rest), lineRoom)]
	if i := bytes.IndexByte(window[s.seen:], '\n'); i >= 0 {
		i += s.seen
		text := bytes.TrimSuffix(window[:i], []byte("\r"))
		if len(text) <= engine.MaxLogLine {
			return s.take(text, i+1, false), true
		}
	} else {
		s.seen = len(window)
	}
	switch {
	case len(rest) >= lineRoom:
		n := pieceLength(rest)
		return s.take(rest[:n], n, true), true
	case end && len(rest) > engine.MaxLogLine:
		n := pieceLength(rest)
		return s.take(rest[:n], n, true), true
	case end && len(rest) > 0:
		return s.take(rest, len(rest), !s.ended), true
	}
	return piece{}, false
}

func (s *splitter) take(text []byte, n int, partial bool) piece {
	p := piece{text: text, pos: s.pos, next: s.pos + int64(n), partial: partial}
	s.begin += n
	s.pos += int64(n)
	s.seen = 0
	return p
}

// beforeGap is what was begun before a gap, in pieces if it is long.
func (s *splitter) beforeGap() piece {
	n := min(s.gap-s.begin, engine.MaxLogLine)
	p := s.take(s.buf[s.begin:s.begin+n], n, true)
	p.cut = true
	if s.begin == s.gap {
		s.gap, s.pos = 0, s.after
	}
	return p
}

// pieceLength is how much of a line that is too long makes one piece: all that
// fits, without cutting a character or a line end in two.
func pieceLength(line []byte) int {
	n := engine.MaxLogLine
	for back := 1; back < utf8.UTFMax; back++ {
		if c := line[n-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(line[n-back : n]) {
				n -= back
			}
			break
		}
	}
	if line[n-1] == '\r' {
		n--
	}
	return n
}
