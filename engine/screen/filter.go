package screen

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sbx/engine"
)

// A Filter lets through what a program in a sandbox may do to the terminal of
// the person who sits at it: draw, in full. What reaches beyond the screen is
// dropped (THREATS X2):
//
//   - the clipboard (OSC 52), to be read always, to be written unless allowed;
//   - questions whose answers the program could choose the text of, or that
//     tell of more than the screen: titles, palettes of others, settings
//     (DECRQSS), checksums, windows. The plain ones that editors and shells ask
//     for (what are you, where is the cursor, which colours) pass if this
//     viewer may type: their answers are typed into the program;
//   - titles over a bound, links to other than the web, notifications,
//     downloads, printing, other character sets, the locked keyboard, device
//     strings (DCS, APC, PM, SOS), and all that isn't known.
//
// The zero value is for a viewer that only watches.
type Filter struct {
	Ask       bool // plain questions pass
	Clipboard bool // writes to it pass, of at most maxClip bytes

	scan    scanner
	partial []byte // the beginning of a character
	modes   Modes  // as they passed
	keys    bool   // modifyOtherKeys was set
	palette bool   // colours were set
	dropped int
	clip    int // writes to the clipboard that were dropped
}

const maxClip = 100 << 10

// Dropped is how many sequences didn't pass, and how many of them wanted to
// write to the clipboard.
func (f *Filter) Dropped() (all, clipboard int) { return f.dropped, f.clip }

// Append appends to dst what of p may pass.
func (f *Filter) Append(dst, p []byte) []byte {
	f.scan.scan(p, func(t token, _ int) {
		n := len(dst)
		if t.kind == text {
			dst = f.text(dst, t.raw)
		} else {
			f.partial = f.partial[:0] // a character that a sequence cuts is none
			dst = f.sequence(dst, t)
		}
		if t.kind != text && len(dst) == n {
			f.dropped++
			return
		}
		f.modes.take(t)
	})
	return dst
}

// text passes characters, and those control characters that move the cursor.
func (f *Filter) text(dst, p []byte) []byte {
	if len(f.partial) > 0 {
		p = append(f.partial, p...)
	}
	f.partial = nil
	for len(p) > 0 {
		n := 0
		for n < len(p) && (p[n] >= 0x20 && p[n] < 0x7f || p[n] >= 0x07 && p[n] <= 0x0f) {
			n++
		}
		dst = append(dst, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			break
		}
		if p[0] < utf8.RuneSelf {
			p = p[1:] // a control character that asks, or does nothing good
			continue
		}
		if !utf8.FullRune(p) {
			f.partial = bytes.Clone(p)
			break
		}
		r, size := utf8.DecodeRune(p)
		if r >= 0xa0 {
			dst = utf8.AppendRune(dst, r) // what is no character becomes the one that says so
		}
		p = p[size:]
	}
	return dst
}

func (f *Filter) sequence(dst []byte, t token) []byte {
	switch t.kind {
	case escape:
		if escapePasses(t.body) {
			return append(dst, t.raw...)
		}
	case control:
		return f.control(dst, t)
	case command:
		return f.command(dst, t)
	}
	return dst
}

// escapePasses: cursor, character sets of seven bits, keypad, reset.
func escapePasses(b []byte) bool {
	if len(b) == 1 {
		return bytes.ContainsAny(b, "78=>DEHMcNO69no|}~")
	}
	return len(b) == 2 && (bytes.ContainsAny(b[:1], "()*+") && bytes.ContainsAny(b[1:], "0AB") || string(b) == "#8")
}

// settable are the private modes that pass.
var settable = []int{
	1, 4, 5, 6, 7, 8, 12, 25, 45, 47, 66, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016,
	1034, 1047, 1048, 1049, 2004, 2026,
}

func (f *Filter) control(dst []byte, t token) []byte {
	final, params := t.body[len(t.body)-1], string(t.body[:len(t.body)-1])
	simple := plain(params)
	pass := false
	switch final {
	case 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'P', 'S', 'X', 'Z',
		'@', '`', 'a', 'b', 'd', 'e', 'f', 'g', 'r', 's', 'u':
		pass = simple || (final == 'J' || final == 'K') && strings.HasPrefix(params, "?") && plain(params[1:])
	case 'T': // with more parameters it is a way to track the mouse that hangs
		pass = simple && !strings.Contains(params, ";")
	case 'm':
		keys := strings.HasPrefix(params, ">4") && plain(params[1:])
		f.keys = f.keys || keys
		pass = simple || keys
	case 'q':
		pass = strings.HasSuffix(params, " ") && plain(params[:len(params)-1])
	case 'p':
		pass = params == "!" || f.Ask && strings.HasSuffix(params, "$") && plain(strings.TrimPrefix(params[:len(params)-1], "?"))
	case 'h', 'l':
		return f.set(dst, params, final)
	case 'c':
		pass = f.Ask && (params == "" || params == "0" || params == ">" || params == ">0")
	case 'n':
		pass = f.Ask && (params == "5" || params == "6" || params == "?6")
	}
	if pass {
		return append(dst, t.raw...)
	}
	return dst
}

// set passes those of the modes that may be set.
func (f *Filter) set(dst []byte, params string, final byte) []byte {
	rest, private := strings.CutPrefix(params, "?")
	var pass []string
	for p := range strings.SplitSeq(rest, ";") {
		mode, err := strconv.Atoi(p)
		if err == nil && (private && slices.Contains(settable, mode) || !private && mode == 4) {
			pass = append(pass, p)
		}
	}
	if len(pass) == 0 {
		return dst
	}
	mark := ""
	if private {
		mark = "?"
	}
	return fmt.Appendf(dst, "\x1b[%s%s%c", mark, strings.Join(pass, ";"), final)
}

// command passes titles, links to the web, colours, and the clipboard if that
// is allowed.
func (f *Filter) command(dst []byte, t token) []byte {
	number, rest, _ := strings.Cut(string(t.body), ";")
	switch number {
	case "0", "1", "2":
		title := printable(cut(strings.ToValidUTF8(rest, "\ufffd"), engine.MaxTitle))
		return fmt.Appendf(dst, "\x1b]%s;%s\x1b\\", number, title)
	case "8":
		params, uri, _ := strings.Cut(rest, ";")
		if !web(uri) || len(params) > 64 || printable(params) != params {
			params, uri = "", "" // its text stands, without a link
		}
		return fmt.Appendf(dst, "\x1b]8;%s;%s\x1b\\", params, uri)
	case "4", "10", "11", "12", "17", "19", "104", "110", "111", "112", "117", "119":
		if len(rest) > 256 || strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ;:/#.?") != "" {
			return dst
		}
		if strings.Contains(rest, "?") {
			if !f.Ask {
				return dst
			}
		} else {
			f.palette = true
		}
		if rest != "" {
			number += ";"
		}
		return fmt.Appendf(dst, "\x1b]%s%s\x1b\\", number, rest)
	case "52":
		return f.clipboard(dst, rest)
	}
	return dst
}

// web reports whether a link leads to the web, or is the end of one.
func web(uri string) bool {
	return len(uri) <= 2048 && printable(uri) == uri && utf8.ValidString(uri) &&
		(uri == "" || strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://"))
}

func (f *Filter) clipboard(dst []byte, rest string) []byte {
	_, data, _ := strings.Cut(rest, ";")
	if data == "?" {
		return dst
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if !f.Clipboard || err != nil || len(raw) > maxClip {
		f.clip++
		return dst
	}
	return fmt.Appendf(dst, "\x1b]52;c;%s\x1b\\", data)
}

// Undo is what puts a terminal back that all of this passed to: screen, modes,
// colours and keys.
func (f *Filter) Undo() []byte {
	var b bytes.Buffer
	m := &f.modes
	for _, mode := range remembered {
		if on := m.is(mode); on != initially[mode] {
			fmt.Fprintf(&b, "\x1b[?%d%c", mode, map[bool]byte{true: 'l', false: 'h'}[on])
		}
	}
	if m.region != "" {
		b.WriteString("\x1b7\x1b[r\x1b8") // it moves the cursor
	}
	if m.insert {
		b.WriteString("\x1b[4l")
	}
	if m.keypad {
		b.WriteString("\x1b>")
	}
	if m.style != "" {
		b.WriteString("\x1b[0 q")
	}
	if f.keys {
		b.WriteString("\x1b[>4m")
	}
	if f.palette {
		b.WriteString("\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\")
	}
	b.WriteString("\x1b(B\x1b)B\x0f\x1b]8;;\x1b\\\x1b[m")
	return b.Bytes()
}
