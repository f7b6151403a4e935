package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sbx/engine"
)

var size = engine.TermSize{Cols: 40, Rows: 10}

// shows is what a terminal shows that printed b, and where its cursor is.
func shows(t *testing.T, size engine.TermSize, b []byte) (lines []string, col, row int) {
	t.Helper()
	return draw(Modes{}, []Piece{{Size: size, Output: b}})
}

// picture is the picture of what printed b in pieces of n bytes.
func picture(b []byte, n int) []byte {
	var track Track
	for rest := b; len(rest) > 0; {
		k := min(n, len(rest))
		track.Write(rest[:k])
		rest = rest[k:]
	}
	m := track.Begin()
	return Picture(m.Modes, track.Modes(), []Piece{{Size: size, Output: b[m.Position:]}})
}

func TestAPictureShowsTheScreenThatItIsOf(t *testing.T) {
	long := strings.Repeat("a line that scrolls away \x1b[31mred\x1b[m\r\n", 20_000)
	for name, printed := range map[string]string{
		"text":             "one\r\ntwo\r\n\x1b[1;32mgreen\x1b[m and \x1b[7mturned\x1b[m",
		"cursor":           "\x1b[5;7Hhere\x1b[2;3H",
		"full screen":      "shell$ vi\r\n\x1b[?1049h\x1b[H\x1b[2Jtext\x1b[10;1H\x1b[7mstatus\x1b[m\x1b[3;3H",
		"back from it":     "before\r\n\x1b[?1049h\x1b[2Jvi\x1b[?1049lafter",
		"wide":             "日本語 e\u0301 🦀\r\nx",
		"scroll region":    "\x1b[2;8r\x1b[8;1Ha\r\nb\r\nc\x1b[4;4H",
		"drawing":          "\x1b(0lqqk\x1b(B plain",
		"a long log":       long + "\x1b[32mgreen goes on",
		"a log then clear": long + "\x1b[H\x1b[2Jfresh\r\n",
		"long in colour":   "\x1b[34m" + strings.Repeat("blue for ever\r\n", 30_000),
		"questions":        "\x1b[c\x1b[6n\x1b]11;?\x07answer nobody\x1b[>q\x1b[?u",
	} {
		t.Run(name, func(t *testing.T) {
			want, col, row := shows(t, size, []byte(printed))
			for _, n := range []int{1 << 20, 4096, 7} {
				// On a terminal that showed something else.
				got, c, r := shows(t, size, append([]byte("\x1b[?1049h\x1b[31mold\x1b[4;5r"), picture([]byte(printed), n)...))
				if strings.Join(got, "\n") != strings.Join(want, "\n") || c != col || r != row {
					t.Errorf("in pieces of %d: it shows, cursor at %d %d:\n%s\nwant, at %d %d:\n%s", n, c, r, strings.Join(got, "\n"), col, row, strings.Join(want, "\n"))
				}
			}
		})
	}
}

func TestAPictureBringsTheModes(t *testing.T) {
	b := []byte("\x1b[?1049h\x1b[?1h\x1b=\x1b[?1000;1006h\x1b[?2004h\x1b[?25l\x1b[4h\x1b]2;my title\x07")
	got := string(picture(b, 3))
	for _, want := range []string{"\x1b[?1049h", "\x1b[?1h", "\x1b=", "\x1b[?1000h", "\x1b[?1006h", "\x1b[?2004h", "\x1b[?25l", "\x1b[4h", "my title"} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %q: %q", want, got)
		}
	}
	var track Track
	track.Write(b)
	track.Write([]byte("\x1b[!p\x1b[?1049l\x1b[?1000l"))
	if m := track.Modes(); m.Alternate() || m.is(1) || !m.is(25) || m.insert || m.keypad || m.is(1000) || !m.is(2004) {
		t.Errorf("after a soft reset: %+v", m)
	}
	track.Write([]byte("\x1bc"))
	if m := track.Modes(); m.is(2004) {
		t.Errorf("after a reset: %+v", m)
	}
}

func TestATrackForgetsAndKeepsLittle(t *testing.T) {
	var track Track
	line := []byte(strings.Repeat("\x1b[3;3Hx\x1b]0;"+strings.Repeat("t", 5000)+"\x07\x1b[38;5;1m", 10))
	for range 400 {
		track.Write(line)
	}
	track.Write([]byte("\x1bP" + strings.Repeat("q", 1<<20)))
	if n := len(track.marks); n > window/stride {
		t.Errorf("it keeps %d marks", n)
	}
	if len(track.modes.pen) > 2*maxPen || len(track.Title()) > engine.MaxTitle || cap(track.scan.buf) > 2*maxSequence {
		t.Errorf("it keeps %d bytes of colours, %d of a title, %d of a sequence", len(track.modes.pen), len(track.Title()), cap(track.scan.buf))
	}
	if begin := track.Begin(); track.Position()-begin.Position > 2*window+2<<20 {
		t.Errorf("it begins %d bytes back", track.Position()-begin.Position)
	}
	end := track.Position()
	track.Skip(end + 1000)
	track.Write([]byte("after"))
	if begin := track.Begin(); begin.Position != end+1000 {
		t.Errorf("after a gap it begins at %d, want %d", begin.Position, end+1000)
	}
}

// TestNothingBreaksAPicture: whatever is printed, it is drawn.
func TestNothingBreaksAPicture(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x07", "?1049h", "?1049l", "2J", "999999999C", "1;1r", "m", ";", "0", "38;2;", "é", "日", "\xff", "\x9b", "\r\n", "\x18", "\x1b", "c", "n", "text", "\x0e", "\x1b(0", "\x1bM", "\x1b[5L", "\x1b[3P", "\x1b7\x1b8"}
	for range 300 {
		var b bytes.Buffer
		for range 200 {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		if len(picture(b.Bytes(), 1+r.IntN(50))) == 0 {
			t.Fatalf("no picture of %q", b.String())
		}
	}
}

func filtered(f *Filter, s string) string { return string(f.Append(nil, []byte(s))) }

func TestDrawingPassesTheFilterUnchanged(t *testing.T) {
	for _, s := range []string{
		"plain\r\n\ttabs \b\a", "日本 é 🦀", "\x1b[1;31mred\x1b[38;5;196mx\x1b[38;2;1;2;3my\x1b[4:3mz\x1b[m",
		"\x1b[?1049h\x1b[H\x1b[2J\x1b[3;4H\x1b[K\x1b[2P\x1b[@\x1b[L\x1b[M\x1b[2;5r\x1bM\x1b7\x1b8",
		"\x1b[?25l\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[?7l\x1b=\x1b>", "\x1b(0lqk\x1b(B", "\x1b[5 q", "\x1bc", "\x1b[!p",
		"\x1b[?2026hsynchronised\x1b[?2026l", "\x1b[>4;2m", "\x1b[?J\x1b[?K", "\x1b#8",
	} {
		if got := filtered(&Filter{}, s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestWhatReachesBeyondTheScreenIsDropped(t *testing.T) {
	for _, s := range []string{
		"\x1b]52;c;aGk=\x07", "\x1b]52;c;?\x1b\\", "\x1b[21t", "\x1b[22;2t", "\x1b[8;10;10t", "\x1b[c", "\x1b[>c", "\x1b[6n", "\x1b[?15n",
		"\x1b]11;?\x07", "\x1b]7;file:///etc\x07", "\x1b]9;boo\x07", "\x1b]777;notify;a;b\x07", "\x1b]1337;File=:AAAA\x07", "\x1bPq#0\x1b\\",
		"\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_Gf=32;AAAA\x1b\\", "\x1b^x\x1b\\", "\x1bXx\x1b\\", "\x1b[5i", "\x1b[4i", "\x1b[2h", "\x1b[?1001h",
		"\x1b[1;1;1;1;1;1T", "\x1b[>q", "\x1b[?u", "\x1b[>1u", "\x1b[?2048h", "\x1b%@", "\x1b F", "\x1bZ", "\x05", "\x00", "\u009b6n", "\x9b6n",
		"\x1b[1;1;1;1;1;1*y", "\x1b[62\"p", "\x1b[\"q", "\x1b[1$w", "\x1b[1'|",
	} {
		if got := filtered(&Filter{}, s); strings.ContainsAny(got, "\x1b\x05\x00\u009b") {
			t.Errorf("%q passed as %q", s, got)
		}
		// Also where it is cut anywhere.
		f, got := &Filter{}, ""
		for i := range len(s) {
			got += filtered(f, s[i:i+1])
		}
		if strings.ContainsAny(got, "\x1b\x05\x00\u009b") {
			t.Errorf("%q passed byte by byte as %q", s, got)
		}
	}
}

func TestWhoMayTypeMayBeAsked(t *testing.T) {
	for _, s := range []string{"\x1b[c", "\x1b[>c", "\x1b[5n", "\x1b[6n", "\x1b[?2026$p"} {
		if got := filtered(&Filter{Ask: true}, s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got := filtered(&Filter{Ask: true}, "\x1b]11;?\x07"); got != "\x1b]11;?\x1b\\" {
		t.Errorf("a question for the background became %q", got)
	}
	for _, s := range []string{"\x1b[21t", "\x1b]52;c;?\x07", "\x1bP$qm\x1b\\", "\x1b[?15n", "\x1b[x"} {
		if got := filtered(&Filter{Ask: true}, s); got != "" {
			t.Errorf("%q passed as %q", s, got)
		}
	}
}

func TestTitlesLinksAndTheClipboardAreBounded(t *testing.T) {
	f := &Filter{}
	if got := filtered(f, "\x1b]0;a\u009btitle\x07"); got != "\x1b]0;atitle\x1b\\" {
		t.Errorf("a title became %q", got)
	}
	if got := filtered(f, "\x1b]2;"+strings.Repeat("é", 1000)+"\x07"); len(got) > engine.MaxTitle+8 {
		t.Errorf("a title of %d bytes passed", len(got))
	}
	if got := filtered(f, "\x1b]8;id=1;https://example.com/\x07x\x1b]8;;\x07"); got != "\x1b]8;id=1;https://example.com/\x1b\\x\x1b]8;;\x1b\\" {
		t.Errorf("a link became %q", got)
	}
	if got := filtered(f, "\x1b]8;;file:///etc/passwd\x07x"); got != "\x1b]8;;\x1b\\x" {
		t.Errorf("a link to a file became %q", got)
	}
	if filtered(f, "\x1b]52;c;aGk=\x07"); f.clip != 1 {
		t.Errorf("%d writes to the clipboard were counted", f.clip)
	}
	f = &Filter{Clipboard: true}
	if got := filtered(f, "\x1b]52;c;aGk=\x07"); got != "\x1b]52;c;aGk=\x1b\\" {
		t.Errorf("an allowed write became %q", got)
	}
	if got := filtered(f, "\x1b]52;c;!!\x07\x1b]52;c;?\x07"); got != "" {
		t.Errorf("what is no write passed as %q", got)
	}
}

// TestUndoPutsATerminalBack runs all that passes through an emulator.
func TestUndoPutsATerminalBack(t *testing.T) {
	f := &Filter{}
	out := f.Append(nil, []byte("\x1b[?1049h\x1b[?1h\x1b=\x1b[?1003;1006h\x1b[?2004h\x1b[?25l\x1b[?7l\x1b[4h\x1b[3;5r\x1b[31m\x1b(0\x1b[3 q\x1b[>4;2m\x1b]11;#123456\x07"))
	var on []string
	var m Modes
	var s scanner
	s.scan(append(out, f.Undo()...), func(tok token, _ int) { m.take(tok) })
	for _, mode := range remembered {
		if m.is(mode) != initially[mode] {
			on = append(on, fmt.Sprint(mode))
		}
	}
	if len(on) > 0 || m.insert || m.keypad || len(m.pen) > 0 || m.region != "" || m.graphics[0] == '0' {
		t.Errorf("left set: %v, %+v", on, m)
	}
	for _, want := range []string{"\x1b[>4m", "\x1b]111"} {
		if !strings.Contains(string(f.Undo()), want) {
			t.Errorf("undoing lacks %q", want)
		}
	}
}
