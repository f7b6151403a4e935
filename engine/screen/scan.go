// Package screen understands what programs print on a terminal: it keeps track
// of the modes that they set, makes what puts a screen as it is on another
// terminal, and says what of all that may reach a person's own.
//
// The one rule: what it reads is hostile. Nothing it keeps grows with what is
// printed, and nothing is passed on that wasn't understood.
package screen

import "bytes"

// kind is what a token is.
type kind int

const (
	text    kind = iota // characters and control characters
	escape              // ESC, intermediates, one final character
	control             // CSI
	command             // OSC
	device              // DCS, APC, PM and SOS
)

// token is a run of text or one whole control sequence.
type token struct {
	kind kind
	raw  []byte // all of it
	body []byte // of a sequence: without its introducer and terminator
}

// maxSequence bounds a control sequence; a longer one is dropped whole.
const maxSequence = 256 << 10

// A scanner cuts a stream of bytes into tokens. A sequence may begin in one
// piece of the stream and end in another.
type scanner struct {
	state state
	buf   []byte // of the sequence that was begun
	long  bool   // it is too long, and isn't kept
}

type state int

const (
	ground state = iota
	afterEscape
	inEscape  // intermediates
	inControl // CSI
	inString  // OSC, DCS, APC, PM, SOS
	inStringEscape
)

const (
	esc = 0x1b
	bel = 0x07
	can = 0x18
	sub = 0x1a
)

// idle reports whether nothing is begun: a place where a reader may begin.
func (s *scanner) idle() bool { return s.state == ground }

// scan takes a piece of the stream and hands over its tokens, which are valid
// during the call, with how many bytes of p they end behind.
func (s *scanner) scan(p []byte, emit func(t token, end int)) {
	for i := 0; i < len(p); {
		if s.state == ground {
			n := bytes.IndexByte(p[i:], esc)
			if n < 0 {
				n = len(p) - i
			}
			if n > 0 {
				emit(token{kind: text, raw: p[i : i+n]}, i+n)
			}
			if i += n; i < len(p) {
				s.begin()
				i++
			}
			continue
		}
		c := p[i]
		i++
		if t, ok := s.advance(c); ok {
			emit(t, i)
		}
	}
}

func (s *scanner) begin() {
	s.state, s.long = afterEscape, false
	s.buf = append(s.buf[:0], esc)
}

// advance takes one byte of a sequence, and returns what it completed.
func (s *scanner) advance(c byte) (token, bool) {
	switch {
	case s.state == inStringEscape && c == '\\':
		return s.finish(c, 2)
	case s.state != inString && c == esc, s.state == inStringEscape:
		s.begin() // what was begun is void
		if c != esc {
			return s.advance(c)
		}
		return token{}, false
	case c == can || c == sub:
		s.state = ground
		return token{}, false
	case s.state == inString:
		return s.inString(c)
	case c < 0x20: // acted on by itself, in the middle of a sequence
		return token{kind: text, raw: []byte{c}}, true
	case c >= 0x7f:
		s.state = ground
		return token{}, false
	}
	return s.plain(c)
}

func (s *scanner) inString(c byte) (token, bool) {
	switch {
	case c == esc:
		s.keep(c)
		s.state = inStringEscape
		return token{}, false
	case c == bel && s.buf[1] == ']':
		return s.finish(c, 1)
	}
	s.keep(c)
	return token{}, false
}

// plain takes a byte of an escape or control sequence.
func (s *scanner) plain(c byte) (token, bool) {
	switch s.state {
	case afterEscape:
		switch c {
		case '[':
			s.state = inControl
		case ']', 'P', '_', '^', 'X':
			s.state = inString
		default:
			if c >= 0x30 {
				return s.finish(c, 0)
			}
			s.state = inEscape
		}
	case inEscape:
		if c >= 0x30 {
			return s.finish(c, 0)
		}
	case inControl:
		if c >= 0x40 {
			return s.finish(c, 0)
		}
	}
	s.keep(c)
	return token{}, false
}

func (s *scanner) keep(c byte) {
	if len(s.buf) >= maxSequence {
		s.long = true
		return
	}
	s.buf = append(s.buf, c)
}

// finish ends the sequence with c; its terminator is so many bytes long.
func (s *scanner) finish(c byte, terminator int) (token, bool) {
	s.keep(c)
	s.state = ground
	if s.long {
		return token{}, false
	}
	t := token{kind: escape, raw: s.buf, body: s.buf[1:]}
	switch s.buf[1] {
	case '[':
		t.kind, t.body = control, s.buf[2:]
	case ']':
		t.kind, t.body = command, s.buf[2:len(s.buf)-terminator]
	case 'P', '_', '^', 'X':
		t.kind, t.body = device, s.buf[2:len(s.buf)-terminator]
	}
	return t, true
}
