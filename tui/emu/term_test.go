package emu

import (
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

func screenOf(t *testing.T, cols, rows int, printed string) *Screen {
	t.Helper()
	s := NewScreen(cols, rows)
	t.Cleanup(s.Close)
	s.Write([]byte(printed))
	return s
}

func TestLinesAreExactlyAsWideAsAsked(t *testing.T) {
	s := screenOf(t, 20, 4, "plain\r\n\x1b[31mred\x1b[0m 漢字 é\r\nlast")
	for _, width := range []int{5, 7, 20, 33} {
		for y, line := range s.Lines(width, 4, 0) {
			if got := ansi.StringWidth(line); got != width {
				t.Errorf("line %d is %d cells wide, want %d: %q", y, got, width, line)
			}
		}
	}
	if got := ansi.Strip(s.Lines(20, 4, 0)[1]); strings.TrimRight(got, " ") != "red 漢字 é" {
		t.Errorf("the second line is %q", got)
	}
	if !strings.Contains(s.Lines(20, 4, 0)[1], "\x1b[31m") {
		t.Error("its colour is gone")
	}
}

func TestWhatScrolledAwayIsAbove(t *testing.T) {
	s := screenOf(t, 10, 2, "one\r\ntwo\r\nthree\r\nfour")
	if got := ansi.Strip(strings.Join(s.Lines(6, 2, 2), "|")); got != "one   |two   " {
		t.Errorf("two lines up it is %q", got)
	}
	if got := s.Text(); got != "one\ntwo\nthree\nfour\n" {
		t.Errorf("the text is %q", got)
	}
}

func TestQuestionsAreNotAnsweredAndDontBlock(t *testing.T) {
	s := screenOf(t, 10, 2, strings.Repeat("\x1b[c\x1b[6n\x1b]11;?\x07", 200)+"still here")
	if got := s.Text(); !strings.Contains(got, "still here") {
		t.Errorf("it shows %q", got)
	}
}

// TestHostileOutputIsOnlyCells: whatever is printed, a line holds text and SGR.
func TestHostileOutputIsOnlyCells(t *testing.T) {
	pieces := []string{
		"\x1b]52;c;aGk=\x07", "\x1b]8;;file:///etc\x1b\\link\x1b]8;;\x1b\\", "\x1b]0;title\x07", "\x1bP+q544e\x1b\\", "\x1b_G\x1b\\", "\x9b31m",
		"\u202e", "\u200b", "👩\u200d💻", strings.Repeat("e\u0301", 3) + "x" + strings.Repeat("\u0301", 40), "漢", "\x1b[999;999H", "\x1b[2J", "\x1b[?1049h",
		"\x1b[?25l", "\r\n", "\x00\x07\x08", "\xff\xfe", "\x1b[4h", "\x1b[3;2r", "\x1bM", "\x1b[5L", "\x1b[38;2;1;2;3m", "text ",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s := screenOf(t, 1+r.IntN(40), 1+r.IntN(10), "")
		for range 30 {
			s.Write([]byte(pieces[r.IntN(len(pieces))]))
			if r.IntN(8) == 0 {
				s.Resize(1+r.IntN(60), 1+r.IntN(20))
			}
		}
		width := 1 + r.IntN(50)
		for _, line := range s.Lines(width, 12, r.IntN(5)) {
			if got := ansi.StringWidth(line); got != width || got != ansi.StringWidthWc(line) {
				t.Fatalf("a line is %d cells wide, want %d: %q", got, width, line)
			}
			rest := line
			for rest != "" {
				seq, _, n, _ := ansi.DecodeSequence(rest, ansi.NormalState, nil)
				if seq[0] == 0x1b && !strings.HasSuffix(seq, "m") || seq[0] < 0x1b {
					t.Fatalf("a line holds %q", seq)
				}
				rest = rest[n:]
			}
		}
	}
}

func TestKeysAreSpelledAsXtermDoes(t *testing.T) {
	plain := screenOf(t, 10, 2, "")
	app := screenOf(t, 10, 2, "\x1b[?1h\x1b[?2004h")
	for _, c := range []struct {
		name      string
		key       tea.Key
		want, app string // app "": the same
	}{
		{"a letter", tea.Key{Code: 'a', Text: "a"}, "a", ""},
		{"a capital", tea.Key{Code: 'a', Text: "A", Mod: tea.ModShift, ShiftedCode: 'A'}, "A", ""},
		{"another script", tea.Key{Code: 'ж', Text: "ж"}, "ж", ""},
		{"enter", tea.Key{Code: tea.KeyEnter}, "\r", ""},
		{"space", tea.Key{Code: tea.KeySpace, Text: " "}, " ", ""},
		{"ctrl+space", tea.Key{Code: tea.KeySpace, Mod: tea.ModCtrl}, "\x00", ""},
		{"backspace", tea.Key{Code: tea.KeyBackspace}, "\x7f", ""},
		{"escape", tea.Key{Code: tea.KeyEscape}, "\x1b", ""},
		{"shift+tab", tea.Key{Code: tea.KeyTab, Mod: tea.ModShift}, "\x1b[Z", ""},
		{"ctrl+c", tea.Key{Code: 'c', Mod: tea.ModCtrl}, "\x03", ""},
		{"ctrl+]", tea.Key{Code: ']', Mod: tea.ModCtrl}, "\x1d", ""},
		{"alt+x", tea.Key{Code: 'x', Mod: tea.ModAlt}, "\x1bx", ""},
		{"up", tea.Key{Code: tea.KeyUp}, "\x1b[A", "\x1bOA"},
		{"ctrl+right", tea.Key{Code: tea.KeyRight, Mod: tea.ModCtrl}, "\x1b[1;5C", "\x1b[1;5C"},
		{"delete", tea.Key{Code: tea.KeyDelete}, "\x1b[3~", ""},
		{"shift+pgup", tea.Key{Code: tea.KeyPgUp, Mod: tea.ModShift}, "\x1b[5;2~", ""},
		{"f1", tea.Key{Code: tea.KeyF1}, "\x1bOP", ""},
		{"f12", tea.Key{Code: tea.KeyF12}, "\x1b[24~", ""},
	} {
		if c.app == "" {
			c.app = c.want
		}
		if got := string(plain.Encode(c.key)); got != c.want {
			t.Errorf("%s is %q, want %q", c.name, got, c.want)
		}
		if got := string(app.Encode(c.key)); got != c.app {
			t.Errorf("%s in an application is %q, want %q", c.name, got, c.app)
		}
	}
	if got := string(plain.Paste("a\nb")); got != "a\rb" {
		t.Errorf("pasted plainly it is %q", got)
	}
	if got := string(app.Paste("a\x1b[201~rm\n")); got != "\x1b[200~a[201~rm\r\x1b[201~" {
		t.Errorf("pasted with marks it is %q", got)
	}
}
