package agent

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxResult is how many bytes of a tool's output a model gets, and how many of
// its words and diffs are kept in a step.
const MaxResult = 32 << 10

// Bound makes text fit to be sent and shown: valid UTF-8 without NUL, and at
// most limit bytes. What is too long is cut in the middle, at line ends where
// they are near, and says how much is missing: beginnings name what was done,
// ends how it went.
func Bound(text string, limit int) string {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	}
	if len(text) <= limit {
		return text
	}
	const mark = 64 // more than the words below take
	keep := max(0, limit-mark)
	head := cutEnd(text[:keep/2])
	tail := cutStart(text[len(text)-(keep-keep/2):])
	left := len(text) - len(head) - len(tail)
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, left, tail)
}

// cutEnd drops what a cut left of a rune, and of a line if it is short.
func cutEnd(s string) string {
	for len(s) > 0 {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	if i := strings.LastIndexByte(s, '\n'); i >= 0 && len(s)-i < 200 {
		return s[:i]
	}
	return s
}

func cutStart(s string) string {
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < 200 {
		return s[i+1:]
	}
	return s
}

// maxLine is how long the one line of a call may be, in bytes.
const maxLine = 200

// OneLine is s on one line of at most limit bytes: runs of spaces, line ends,
// control and invisible characters become one space, and what is too long ends
// in an ellipsis.
func OneLine(s string, limit int) string {
	s = s[:min(len(s), 4*limit)] // the rest could not be seen anyway
	words := strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
	line := strings.Join(words, " ")
	if len(line) <= limit {
		return line
	}
	cut := max(0, limit-len("…"))
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}

func oneLine(s string) string { return OneLine(s, maxLine) }
