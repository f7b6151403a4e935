package draw

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sbx/themes"
	"sbx/tui/clean"
	"sbx/tui/style"
)

func set(t testing.TB, ascii bool) *style.Set {
	t.Helper()
	theme, err := themes.Load(themes.DefaultDark, "")
	if err != nil {
		t.Fatal(err)
	}
	return style.New(theme, style.Options{ASCII: ascii})
}

func TestRowsAreAsWideAsAsked(t *testing.T) {
	s := set(t, false)
	for want, row := range map[string]*Pen{
		"ab        ": New(s, 10).Put(themes.Text, "ab"),
		"abcdefghi…": New(s, 10).Put(themes.Text, "abcdefghijkl"),
		"a… cd     ": New(s, 10).Cell(themes.Text, "abc", 2).Gap(1).Put(themes.Text, "cd"),
		"   ab     ": New(s, 10).CellRight(themes.Text, "ab", 5),
		"ab      cd": New(s, 10).Put(themes.Text, "ab").Ends(themes.Text, "cd"),
		"abcdefghij": New(s, 10).Put(themes.Text, "abcdefghij").Ends(themes.Text, "too much"),
		"───       ": New(s, 10).Rule(themes.Border, "─", 3),
		"東京…     ":   New(s, 10).Cell(themes.Text, "東京東京", 5),
		"é…        ": New(s, 10).Cell(themes.Text, "éàè", 2),
	} {
		if got := ansi.Strip(row.String()); got != want {
			t.Errorf("row is %q, want %q", got, want)
		}
	}
}

func TestColorsOfALineEndInTheRowsOwn(t *testing.T) {
	s := set(t, false)
	got := New(s, 12).Colored(themes.Error, clean.Colors("\x1b[31mred\x1b[0m end")).String()
	if ansi.Strip(got) != "red end     " || !strings.HasSuffix(got, clean.Reset) {
		t.Errorf("row is %q", got)
	}
	if strings.Count(got, s.Open(themes.Error, style.Plain)) < 2 {
		t.Errorf("after the reset the row's role is lost: %q", got)
	}
}

func TestWrapKeepsToItsWidthAndLimit(t *testing.T) {
	lines := Wrap(strings.Repeat("word\x1b[2J ", 50), 20, 3)
	if len(lines) != 3 || !strings.HasSuffix(lines[2], ellipsis) {
		t.Errorf("lines are %q", lines)
	}
	for _, l := range lines {
		if ansi.StringWidth(l) > 20 {
			t.Errorf("%q is too wide", l)
		}
	}
}

func FuzzRowsNeverTear(f *testing.F) {
	f.Add("plain", 10, false)
	f.Add("\x1b[31m東京\u202e👩\u200d👩", 7, true)
	f.Fuzz(func(t *testing.T, text string, width int, ascii bool) {
		width = 1 + (width%200+200)%200
		s := set(t, ascii)
		rows := []string{
			New(s, width).Put(themes.Text, text).String(),
			On(s, style.Selected, width).Cell(themes.HealthBroken, text, width/2).Put(themes.Muted, text).String(),
			New(s, width).CellRight(themes.Text, text, width/2).String(),
			New(s, width).Colored(themes.Text, clean.Colors(text)).String(),
		}
		for _, l := range Wrap(text, width, 5) {
			rows = append(rows, New(s, width).Put(themes.Text, l).String())
		}
		for _, row := range rows {
			if w := ansi.StringWidth(row); w != width {
				t.Errorf("%q makes a row of %d cells, not %d: %q", text, w, width, row)
			}
			for _, r := range ansi.Strip(row) {
				if r < ' ' || r >= 0x7f && r < 0xa0 || ascii && r > '~' {
					t.Errorf("%q lets %U through", text, r)
				}
			}
		}
	})
}
