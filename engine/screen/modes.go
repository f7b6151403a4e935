package screen

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sbx/engine"
)

// Modes are what a program has set about its terminal, beside the text on it.
// The zero value is a terminal as it was opened.
type Modes struct {
	Title string // hostile
	// private are the modes of CSI ? h, where they aren't as at the beginning.
	private  map[int]bool
	insert   bool
	keypad   bool
	style    string // of the cursor: the parameter of CSI SP q
	region   string // the parameters of CSI r
	pen      []byte // what SGR sequences have set since the last reset
	graphics [2]byte
	shifted  bool // SO: the second character set is in use
}

// initially are the private modes that are on at the beginning.
var initially = map[int]bool{7: true, 25: true}

// remembered are the private modes that are worth knowing: cursor keys,
// reverse video, origin, wrapping, the mouse, the cursor, the alternate
// screens, focus, bracketed paste.
var remembered = []int{1, 5, 6, 7, 9, 25, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1047, 1049, 2004}

// alternate are those that switch to the alternate screen.
var alternate = []int{47, 1047, 1049}

const maxPen = 512

func (m *Modes) clone() Modes {
	c := *m
	c.private, c.pen = maps.Clone(m.private), slices.Clone(m.pen)
	return c
}

func (m *Modes) is(mode int) bool {
	on, set := m.private[mode]
	if !set {
		return initially[mode]
	}
	return on
}

// Alternate reports whether the alternate screen is shown.
func (m *Modes) Alternate() bool { return slices.ContainsFunc(alternate, m.is) }

// take takes note of a token, and reports whether it cleared all that there was
// to see.
func (m *Modes) take(t token) (cleared bool) {
	switch t.kind {
	case text:
		m.shift(t.raw)
	case escape:
		return m.escape(t.body)
	case control:
		return m.control(t.body)
	case command:
		m.command(t.body)
	}
	return false
}

func (m *Modes) shift(b []byte) {
	out, in := bytes.LastIndexByte(b, 0x0e), bytes.LastIndexByte(b, 0x0f)
	if out >= 0 || in >= 0 {
		m.shifted = out > in
	}
}

func (m *Modes) escape(b []byte) (cleared bool) {
	switch {
	case string(b) == "c":
		*m = Modes{Title: m.Title}
		return true
	case string(b) == "=", string(b) == ">":
		m.keypad = b[0] == '='
	case len(b) == 2 && (b[0] == '(' || b[0] == ')') && (b[1] == '0' || b[1] == 'B'):
		m.graphics[b[0]-'('] = b[1]
	}
	return false
}

func (m *Modes) control(b []byte) (cleared bool) {
	final, params := b[len(b)-1], string(b[:len(b)-1])
	switch {
	case final == 'm' && plain(params):
		m.paint(params)
	case final == 'J' && params == "2":
		return true
	case (final == 'h' || final == 'l') && strings.HasPrefix(params, "?"):
		return m.set(params[1:], final == 'h')
	case (final == 'h' || final == 'l') && params == "4":
		m.insert = final == 'h'
	case final == 'r' && plain(params):
		m.region = params
	case final == 'p' && params == "!":
		*m = Modes{Title: m.Title, style: m.style, private: maps.Clone(m.private)}
		for _, mode := range []int{1, 6, 7, 25} {
			delete(m.private, mode)
		}
	case final == 'q' && len(params) <= 2 && strings.HasSuffix(params, " "):
		m.style = strings.TrimSuffix(params, " ")
	}
	return false
}

// plain reports whether parameters are numbers and nothing else.
func plain(params string) bool {
	return len(params) <= 64 && strings.Trim(params, "0123456789;:") == ""
}

func (m *Modes) set(params string, on bool) (cleared bool) {
	for p := range strings.SplitSeq(params, ";") {
		mode, err := strconv.Atoi(p)
		if err != nil || !slices.Contains(remembered, mode) {
			continue
		}
		if m.private == nil {
			m.private = map[int]bool{}
		}
		m.private[mode] = on
		cleared = cleared || on && mode == 1049
	}
	return cleared
}

// paint takes note of SGR parameters: since the last reset they add up.
func (m *Modes) paint(params string) {
	if params == "" || params == "0" || strings.HasPrefix(params, "0;") || len(m.pen) > maxPen {
		m.pen = m.pen[:0]
	}
	if params != "" && params != "0" {
		m.pen = fmt.Appendf(m.pen, "\x1b[%sm", params)
	}
}

func (m *Modes) command(b []byte) {
	number, title, _ := bytes.Cut(b, []byte(";"))
	if string(number) != "0" && string(number) != "2" {
		return
	}
	m.Title = cut(strings.ToValidUTF8(string(title), "\ufffd"), engine.MaxTitle)
}

// cut is at most the first n bytes of s, without half a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// restore are the sequences that set a terminal, which is as it was opened, to
// these modes; before are those that must come before its text is drawn.
func (m *Modes) restore() (before, after string) {
	for _, mode := range alternate {
		if m.is(mode) {
			before = fmt.Sprintf("\x1b[?%dh", mode)
		}
	}
	var b strings.Builder
	if m.region != "" {
		fmt.Fprintf(&b, "\x1b[%sr", m.region)
	}
	for _, mode := range remembered {
		if on := m.is(mode); on != initially[mode] && !slices.Contains(alternate, mode) {
			fmt.Fprintf(&b, "\x1b[?%d%c", mode, map[bool]byte{true: 'h', false: 'l'}[on])
		}
	}
	if m.insert {
		b.WriteString("\x1b[4h")
	}
	if m.keypad {
		b.WriteString("\x1b=")
	}
	if m.style != "" {
		fmt.Fprintf(&b, "\x1b[%s q", m.style)
	}
	for i, set := range m.graphics {
		if set == '0' {
			fmt.Fprintf(&b, "\x1b%c0", "()"[i])
		}
	}
	if m.shifted {
		b.WriteByte(0x0e)
	}
	b.Write(m.pen)
	return before, b.String()
}
