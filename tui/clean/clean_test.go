package clean

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

func TestWhatWouldActIsShown(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":            {"api-1", "api-1"},
		"escape":           {"\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"},
		"carriage return":  {"100%\rfake", "100%␍fake"},
		"8-bit CSI":        {"\u009b2J", "<U+009B>2J"},
		"raw C1 byte":      {"a\x9bb", "a\ufffdb"},
		"invalid UTF-8":    {"\xff\xfe", "\ufffd\ufffd"},
		"tab":              {"a\tb", "a       b"},
		"bidi override":    {"a\u202eb", "a<U+202E>b"},
		"isolate":          {"\u2066x\u2069", "<U+2066>x<U+2069>"},
		"zero width space": {"a\u200bb", "a<U+200B>b"},
		"joiner":           {"a\u200db", "a<U+200D>b"},
		"tag":              {"a\U000e0041", "a<U+E0041>"},
		"byte order mark":  {"\ufeffa", "<U+FEFF>a"},
		"soft hyphen":      {"a\u00adb", "a<U+00AD>b"},
		"hangul filler":    {"\u3164", "<U+3164>"},
		"line separator":   {"a\u2028b", "a<U+2028>b"},
		"delete":           {"a\x7fb", "a␡b"},
		"nul":              {"a\x00b", "a␀b"},
		"newline":          {"a\nb", "a␊b"},
		"umlaut":           {"Zürich 東京", "Zürich 東京"},
		"heart":            {"❤\ufe0f!", "❤!"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(c.in); got != c.want {
				t.Errorf("Line(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestACellCarriesAtMostEightMarks(t *testing.T) {
	got := Line("a" + strings.Repeat("\u0301", 500) + "b")
	if n := strings.Count(got, "\u0301"); n != Marks {
		t.Errorf("%d marks are left", n)
	}
	if w := ansi.StringWidth(got); w != 2 {
		t.Errorf("it is %d cells wide", w)
	}
	if got := Line("\u0301a"); strings.Contains(got, "\u0301") {
		t.Errorf("a mark without a letter is kept: %q", got)
	}
}

func TestColorsAreWrittenAnewAndEndWithTheLine(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"red":          {"\x1b[31mred", "\x1b[31mred\x1b[0m"},
		"true colour":  {"\x1b[38;2;1;2;3mx", "\x1b[38;2;1;2;3mx\x1b[0m"},
		"colons":       {"\x1b[38:5:9mx", "\x1b[38;5;9mx\x1b[0m"},
		"reset":        {"\x1b[mx", "\x1b[0mx\x1b[0m"},
		"blink, hide":  {"\x1b[5;8mx", "x"},
		"cursor":       {"\x1b[2Jx", "␛[2Jx"},
		"private":      {"\x1b[?25lx", "␛[?25lx"},
		"unfinished":   {"\x1b[31", "␛[31"},
		"cut extended": {"\x1b[38;2;1mx", "x"},
		"link":         {"\x1b]8;;file:///etc\x1b\\x", "␛]8;;file:///etc␛\\x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Colors(c.in); got != c.want {
				t.Errorf("Colors(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestCutReadsNoMoreThanItNeeds(t *testing.T) {
	long := "é" + strings.Repeat("x", 1<<20)
	if got := Cut(long, 10); len(got) > 20 || ansi.StringWidth(got) < 10 {
		t.Errorf("Cut gives %d bytes", len(got))
	}
}

func FuzzNoControlLeaves(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\u202e\u200d👩\u200d👩", "e\u0301", "\xff", "🇩🇪", "क्षि", "👍🏽", "\x1b[38;5;1m\x9b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := Line(s)
		check(t, s, line)
		check(t, s, ansi.Strip(Colors(s)))
		colors := Colors(s)
		for i := strings.IndexByte(colors, 0x1b); i >= 0; i = strings.IndexByte(colors, 0x1b) {
			end := strings.IndexByte(colors[i:], 'm')
			if end < 0 || strings.Trim(colors[i+2:i+end], "0123456789;") != "" {
				t.Fatalf("Colors(%q) has a sequence of its own: %q", s, colors)
			}
			colors = colors[i+end:]
		}
		if a, b := ansi.StringWidth(line), ansi.StringWidthWc(line); a != b {
			t.Errorf("Line(%q) = %q is %d or %d cells wide", s, line, a, b)
		}
	})
}

func check(t *testing.T, in, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%q becomes invalid: %q", in, out)
	}
	for _, r := range out {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			t.Errorf("%q lets %U through: %q", in, r, out)
		}
	}
}

func TestSimpleCharactersAreOneCellEverywhere(t *testing.T) {
	for r := rune(1); r < 0x30000; r++ {
		if !simple(r) {
			continue
		}
		s := string(r)
		if ansi.StringWidth(s) != 1 || ansi.StringWidthWc(s) != 1 || hidden(r) {
			t.Errorf("%U %s is not simple: %d or %d cells", r, s, ansi.StringWidth(s), ansi.StringWidthWc(s))
		}
		if joined := "a" + s + s + "b"; ansi.StringWidth(joined) != 4 {
			t.Errorf("%U joins with its neighbours", r)
		}
	}
}
