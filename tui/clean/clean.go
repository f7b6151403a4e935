// Package clean makes any text safe to draw: what a sandbox, a model or an
// engine wrote can't move the cursor, hide, reorder or smear.
//
// What would act is shown instead: an escape as ␛, a zero-width space as
// <U+200B>. The one rule: no control character leaves this package, but for the
// colours of [Colors], which it writes itself.
package clean

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	// Marks is how many combining marks one cell may carry.
	Marks = 8
	// Tab is how far apart tab stops are.
	Tab = 8
)

// Plain reports whether s is printable ASCII, which is safe as it is and as
// wide as it is long.
func Plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Simple reports whether s is safe as it is and one cell a rune, which holds for
// nearly all that is ever drawn, and how many cells that makes.
func Simple(s string) (cells int, ok bool) {
	for i := 0; i < len(s); cells++ {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c > '~' {
				return 0, false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !simple(r) {
			return 0, false
		}
		i += n
	}
	return cells, true
}

// simple reports whether r is a letter or sign of one cell everywhere, that
// nothing joins with: Latin letters, and the signs of the dashboard.
func simple(r rune) bool {
	switch {
	case r >= 0xa1 && r <= 0x2af:
		return r != 0xad && r != 0xa9 && r != 0xae // soft hyphen; signs that may be pictures
	case r >= 0x2500 && r <= 0x259f, r >= 0x25a0 && r <= 0x25d7, r >= 0x2800 && r <= 0x28ff:
		return r != 0x25aa && r != 0x25ab && r != 0x25b6 && r != 0x25c0
	}
	switch r {
	case '—', '–', '…', '·', '×', '−', '→', '›', '✓', '✗', '↻', '“', '”', '’':
		return true
	}
	return false
}

// Line is s as one line that is safe to draw.
func Line(s string) string { return Cut(s, -1) }

// Cut is Line of as much of s as fills at least cells cells, all of it if cells
// is negative. It reads no more than that of a line of a megabyte.
func Cut(s string, cells int) string {
	if most := bytesFor(cells); cells >= 0 && len(s) > most {
		s = s[:most]
	}
	if Plain(s) {
		if cells >= 0 && len(s) > cells {
			return s[:cells]
		}
		return s
	}
	if n, ok := Simple(s); ok {
		return head(s, n, cells)
	}
	w := writer{}
	for len(s) > 0 && (cells < 0 || w.cells < cells) {
		r, n := utf8.DecodeRuneInString(s)
		w.rune(r, n)
		s = s[n:]
	}
	return agreed(w.b.String())
}

// bytesFor is how many bytes surely fill so many cells.
func bytesFor(cells int) int { return 16*cells + 256 }

// Lines is s cut at its line ends, each line safe to draw.
func Lines(s string) []string {
	list := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, l := range list {
		list[i] = Line(strings.TrimSuffix(l, "\r"))
	}
	return list
}

// head is the first cells runes of a simple text of n.
func head(s string, n, cells int) string {
	if cells < 0 || n <= cells {
		return s
	}
	for i := range s {
		if cells == 0 {
			return s[:i]
		}
		cells--
	}
	return s
}

// writer maps rune by rune and keeps count of cells and marks.
type writer struct {
	b     strings.Builder
	cells int
	marks int
	last  rune
}

func (w *writer) rune(r rune, size int) {
	switch {
	case r == utf8.RuneError && size == 1:
		w.put(utf8.RuneError)
	case r == '\t':
		for range Tab - w.cells%Tab {
			w.put(' ')
		}
	case r < ' ':
		w.put('␀' + r) // U+2400 and on are the pictures of the controls
	case r == 0x7f:
		w.put('␡')
	case hidden(r):
		w.hidden(r)
	case unicode.In(r, unicode.Mn, unicode.Me):
		if w.marks++; w.marks <= Marks && w.last != 0 {
			w.b.WriteRune(r)
		}
	default:
		w.put(r)
	}
}

func (w *writer) put(r rune) {
	w.b.WriteRune(r)
	w.cells++
	w.marks, w.last = 0, r
}

// hidden shows what has no shape of its own. A selector of presentation or skin
// after a sign is left out: it only asks for another picture of the same sign.
func (w *writer) hidden(r rune) {
	if w.last > 0x7f && (r == 0xfe0e || r == 0xfe0f || skin(r)) {
		return
	}
	for _, c := range fmt.Sprintf("<U+%04X>", r) {
		w.put(c)
	}
}

// hidden reports whether r acts on the text around it, or is nothing to see.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f, r == 0x2028, r == 0x2029: // C1, line separators
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0: // fillers
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0x180b && r <= 0x180f: // variation selectors
	case r >= 0xe0000 && r <= 0xe0fff: // tags, more selectors
	case skin(r), unicode.Is(unicode.Cf, r): // bidi, zero width, joiners
	default:
		return false
	}
	return true
}

// skin reports whether r tints the emoji before it.
func skin(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }

// agreed replaces what terminals don't agree on the width of: a frame that is a
// cell off tears every line after it.
func agreed(s string) string {
	if ansi.StringWidth(s) == ansi.StringWidthWc(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		cluster, _, n, _ := ansi.DecodeSequence(s, 0, nil)
		if n <= 0 {
			break
		}
		b.WriteString(settle(cluster))
		s = s[n:]
	}
	if out := b.String(); ansi.StringWidth(out) == ansi.StringWidthWc(out) {
		return out
	}
	return strings.Map(func(r rune) rune { // clusters that join anew: give up on them
		if r > '~' {
			return utf8.RuneError
		}
		return r
	}, b.String())
}

// settle is as much of a cluster as has one width everywhere: all of it, its
// first rune, or a replacement.
func settle(cluster string) string {
	if ansi.StringWidth(cluster) == ansi.StringWidthWc(cluster) {
		return cluster
	}
	_, n := utf8.DecodeRuneInString(cluster)
	if base := cluster[:n]; ansi.StringWidth(base) == ansi.StringWidthWc(base) {
		return base
	}
	return string(utf8.RuneError)
}
