package healer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is recorded and sent, in bytes.
const (
	maxCause    = 200
	maxArgument = 300
	maxDoing    = 120
	maxWords    = 4 << 10
	maxStepText = 32 << 10
	maxStepDiff = 64 << 10
	maxOutput   = 32 << 10 // of a tool
	maxReason   = 240
)

// clean makes text harmless to show and to send: valid UTF-8 without control,
// bidirectional, zero-width or tag characters. Line ends and tabs stay; a
// carriage return becomes a line end; an escape sequence goes whole.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			i += escapeLen(s[i:])
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\r':
			if !strings.HasPrefix(s[i:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case hidden(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character has no shape of its own: what could hide
// an instruction from a person or move a terminal's cursor.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) ||
		unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) ||
		r >= 0xE0000 && r <= 0xE0FFF
}

// escapeLen is the length of the escape sequence that s begins with: CSI, OSC
// and its like up to their end, or two bytes.
func escapeLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s) && i < 64; i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return 2
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(s) && i < 4096; i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
	}
	if s[1] < utf8.RuneSelf {
		return 2
	}
	return 1
}

// bound cuts the middle out of text that is longer than limit, and says how
// much is left out.
func bound(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const room = 64 // for the words in the middle
	keep := max(limit-room, 0)
	head, tail := cutHead(s, keep/2), cutTail(s, keep-keep/2)
	return head + leftOut(int64(len(s)-len(head)-len(tail))) + tail
}

func leftOut(n int64) string { return fmt.Sprintf("\n… %s left out …\n", sizeWords(n)) }

func sizeWords(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// cutHead is the beginning of s, at most n bytes, not in the middle of a character.
func cutHead(s string, n int) string {
	n = min(n, len(s))
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cutTail is the end of s, at most n bytes.
func cutTail(s string, n int) string {
	i := max(0, len(s)-n)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// line is text on one line, at most limit bytes.
func line(s string, limit int) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if len(s) > limit {
		s = cutHead(s, limit-len("…")) + "…"
	}
	return s
}
