package style

import (
	"strings"
	"testing"

	"sbx/themes"
)

func newSet(t *testing.T, name string, o Options) *Set {
	t.Helper()
	theme, err := themes.Load(name, "")
	if err != nil {
		t.Fatal(err)
	}
	return New(theme, o)
}

func TestEveryRoleBeginsWithAReset(t *testing.T) {
	for _, name := range themes.Names("") {
		for _, o := range []Options{{}, {Few: true}, {Paint: true}} {
			s := newSet(t, name, o)
			for g := range grounds {
				for _, role := range themes.Roles {
					open := s.Open(role, g)
					if !strings.HasPrefix(open, "\x1b[0") || !strings.HasSuffix(open, "m") {
						t.Fatalf("%s: %s on %d opens with %q", name, role, g, open)
					}
				}
			}
		}
	}
}

func TestMonoHasNoColors(t *testing.T) {
	s := newSet(t, themes.Mono, Options{})
	for g := range grounds {
		for _, role := range themes.Roles {
			if open := s.Open(role, g); strings.Contains(open, ";3") && !strings.HasSuffix(open, ";3m") || strings.Contains(open, "38;") || strings.Contains(open, "48;") {
				t.Errorf("%s on %d is coloured: %q", role, g, open)
			}
		}
	}
}

func TestSelectionKeepsTheColorsOfItsText(t *testing.T) {
	s := newSet(t, themes.DefaultDark, Options{})
	open := s.Open(themes.HealthHealing, Selected)
	if !strings.Contains(open, "38;2;255;215;94") || !strings.Contains(open, "48;2;42;52;70") {
		t.Errorf("healing on the selection is %q", open)
	}
	few := newSet(t, themes.DefaultDark, Options{Few: true})
	if open := few.Open(themes.HealthHealing, Selected); !strings.Contains(open, ";7") {
		t.Errorf("with 16 colours the selection is %q, not reversed", open)
	}
}

func TestStaleScreensHaveOneColor(t *testing.T) {
	s := newSet(t, themes.DefaultDark, Options{}).Stale()
	if s.Open(themes.HealthBroken, Plain) != s.Open(themes.Text, Plain) {
		t.Error("what is broken still stands out when the engine is away")
	}
	if s.Open(themes.BadgeOffline, Plain) == s.Open(themes.Text, Plain) {
		t.Error("the badge that says so is faded itself")
	}
}

func TestThemesMayReplaceSigns(t *testing.T) {
	theme, err := themes.Load(themes.DefaultDark, "")
	if err != nil {
		t.Fatal(err)
	}
	theme.Glyphs = map[string]string{"ready": "o"}
	if g := New(theme, Options{}).Glyphs; g.Ready != "o" || g.Broken != "✗" {
		t.Errorf("the signs are %+v", g)
	}
}
