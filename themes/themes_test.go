package themes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuiltInThemesCanBeReadByEveryone(t *testing.T) {
	names := Names("")
	if len(names) < 15 {
		t.Fatalf("only %d built-in themes: %v", len(names), names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			theme, err := Load(name, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range Check(theme) {
				t.Error(bad)
			}
		})
	}
}

func TestContrastThemesReachSevenToOne(t *testing.T) {
	for _, name := range []string{"contrast-dark", "contrast-light"} {
		theme, err := Load(name, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range Roles {
			if kinds[role] != isText {
				continue
			}
			look := theme.Looks[role]
			under := theme.Looks[Background].BG
			if look.BG != "" {
				under = look.BG
			}
			fg, _ := look.FG.RGB()
			bg, _ := under.RGB()
			if c := Contrast(fg, bg); c < 7 {
				t.Errorf("%s: role %s: contrast %.1f", name, role, c)
			}
		}
	}
}

func TestCheckFindsWhatCannotBeRead(t *testing.T) {
	theme, err := Load(DefaultDark, "")
	if err != nil {
		t.Fatal(err)
	}
	theme.Looks[Text] = Look{FG: "#222222"}
	theme.Looks[HealthReady] = Look{FG: "#ffd75e", Bold: true}
	delete(theme.Looks, Chart)
	var words []string
	for _, err := range Check(theme) {
		words = append(words, err.Error())
	}
	all := strings.Join(words, "\n")
	for _, want := range []string{"role text on background", "health.ready and health.healing", "role chart has no look"} {
		if !strings.Contains(all, want) {
			t.Errorf("Check says nothing of %q; it says:\n%s", want, all)
		}
	}
}

func TestThereAre43Roles(t *testing.T) {
	if len(Roles) != 43 {
		t.Errorf("there are %d roles", len(Roles))
	}
}

func TestWrongThemesSayWhatWasMeant(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"role", "[roles]\n\"text.mutd\" = \"#ffffff\"\n", `did you mean "text.muted"?`},
		{"color", "[palette]\nsnow = \"#ffffff\"\n[roles]\n\"text\" = \"snwo\"\n", `did you mean "snow"?`},
		{"attribute", "[roles]\n\"text\" = { fg = \"#ffffff\", blod = true }\n", `did you mean "bold"?`},
		{"field", "appearence = \"dark\"\n", `did you mean "appearance"?`},
		{"glyph", "[glyphs]\nbrokn = \"x\"\n", `did you mean "broken"?`},
		{"wide", "[glyphs]\nbroken = \"xx\"\n", "is not one character"},
		{"loop", "extends = \"loop\"\n", "extends itself"},
		{"toml", "[roles\n", "line 1"},
		{"appearance", "appearance = \"dim\"\n", "dark, light or any"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, c.name+".toml"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(c.name, dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestUserThemeWinsByNameAndInherits(t *testing.T) {
	dir := t.TempDir()
	text := "name = \"mine\"\nappearance = \"light\"\n[roles]\n\"accent\" = \"#123456\"\n"
	if err := os.WriteFile(filepath.Join(dir, "classic.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	theme, err := Load("classic", dir)
	if err != nil {
		t.Fatal(err)
	}
	light, err := Load(DefaultLight, "")
	if err != nil {
		t.Fatal(err)
	}
	if theme.Looks[Accent].FG != "#123456" || theme.Looks[Text] != light.Looks[Text] && theme.Looks[Text].FG != light.Looks[Text].FG {
		t.Errorf("accent is %v, text is %v", theme.Looks[Accent], theme.Looks[Text])
	}
	if _, err := Load("sbx-drak", dir); err == nil || !strings.Contains(err.Error(), `"sbx-dark"`) {
		t.Errorf("error is %v", err)
	}
	if _, err := Load("../classic", dir); err == nil {
		t.Error("a path was taken for a name")
	}
}

func TestAFormattedThemeReadsBackTheSame(t *testing.T) {
	dir := t.TempDir()
	for _, name := range Names("") {
		want, err := Load(name, "")
		if err != nil {
			t.Fatal(err)
		}
		want.Title += " \"\x1b é"
		if err := os.WriteFile(filepath.Join(dir, "copy.toml"), []byte(Format(want)), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Load("copy", dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got.Name = want.Name
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: it reads back differently (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	for _, name := range Names("") {
		b, _ := builtin.ReadFile(name + ".toml")
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parse(b) // an error is welcome, a panic isn't
	})
}
