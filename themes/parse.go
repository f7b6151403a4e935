package themes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// themeFile is a theme as it stands in its file, before inheritance.
type themeFile struct {
	theme   Theme
	extends string
}

// reader turns the decoded TOML into a theme and keeps the first error.
type reader struct {
	palette map[string]Color
	err     error
}

func parse(text []byte) (themeFile, error) {
	var raw struct {
		Name       string         `toml:"name"`
		Appearance string         `toml:"appearance"`
		Extends    string         `toml:"extends"`
		Palette    map[string]any `toml:"palette"`
		Roles      map[string]any `toml:"roles"`
		Glyphs     map[string]any `toml:"glyphs"`
		Syntax     struct {
			Style string `toml:"style"`
		} `toml:"syntax"`
	}
	if err := toml.NewDecoder(strings.NewReader(string(text))).DisallowUnknownFields().Decode(&raw); err != nil {
		return themeFile{}, explain(err)
	}
	r := reader{palette: map[string]Color{}}
	f := themeFile{extends: raw.Extends, theme: Theme{
		Title: raw.Name, Appearance: Appearance(raw.Appearance), Syntax: raw.Syntax.Style,
		Looks: map[Role]Look{}, Glyphs: map[string]string{},
	}}
	r.appearance(&f.theme)
	for _, name := range slices.Sorted(maps.Keys(raw.Palette)) {
		r.palette[name] = r.color("palette "+name, raw.Palette[name])
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Roles)) {
		r.role(f.theme.Looks, name, raw.Roles[name])
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Glyphs)) {
		r.glyph(&f.theme, name, raw.Glyphs[name])
	}
	return f, r.err
}

// explain gives a decoding error its place and what is there.
func explain(err error) error {
	switch e := err.(type) {
	case *toml.StrictMissingError:
		if len(e.Errors) > 0 {
			key := strings.Join(e.Errors[0].Key(), ".")
			line, _ := e.Errors[0].Position()
			return fmt.Errorf("line %d: unknown field %q%s", line, key,
				meant(key, []string{"name", "appearance", "extends", "palette", "roles", "glyphs", "syntax", "syntax.style"}))
		}
	case *toml.DecodeError:
		line, col := e.Position()
		return fmt.Errorf("line %d, column %d: %w", line, col, err)
	}
	return err
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) appearance(t *Theme) {
	switch t.Appearance {
	case Dark, Light, Any:
	case "":
		t.Appearance = Any
	default:
		r.fail("appearance %q: write dark, light or any", string(t.Appearance))
	}
}

func (r *reader) color(where string, v any) Color {
	s, ok := v.(string)
	if !ok {
		r.fail("%s: a colour is a string such as \"#66b3cc\"", where)
		return ""
	}
	if c, ok := r.palette[s]; ok {
		return c
	}
	c, ok := ParseColor(s)
	if !ok {
		r.fail("%s: %q is neither a colour (#rrggbb, ansi:0…15, idx:0…255, default) nor in the palette%s",
			where, s, meant(s, slices.Sorted(maps.Keys(r.palette))))
	}
	return c
}

func (r *reader) role(looks map[Role]Look, name string, v any) {
	if !slices.Contains(Roles, Role(name)) {
		known := make([]string, len(Roles))
		for i, role := range Roles {
			known[i] = string(role)
		}
		r.fail("unknown role %q%s", name, meant(name, known))
		return
	}
	looks[Role(name)] = r.look(name, v, true)
}

// look reads a string, which is a foreground, or a table.
func (r *reader) look(where string, v any, outer bool) Look {
	table, ok := v.(map[string]any)
	if !ok {
		return Look{FG: r.color("role "+where, v)}
	}
	var l Look
	flags := map[string]*bool{
		"bold": &l.Bold, "dim": &l.Dim, "italic": &l.Italic, "underline": &l.Underline,
		"reverse": &l.Reverse, "keep_fg": &l.KeepFG,
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		switch flag := flags[key]; {
		case flag != nil:
			on, ok := table[key].(bool)
			if !ok {
				r.fail("role %s: %s is true or false", where, key)
			}
			*flag = on
		case key == "fg":
			l.FG = r.color("role "+where, table[key])
		case key == "bg":
			l.BG = r.color("role "+where, table[key])
		case key == "ansi" && outer:
			under := r.look(where+" ansi", table[key], false)
			l.ANSI = &under
		default:
			r.fail("role %s: unknown %q%s", where, key, meant(key,
				[]string{"fg", "bg", "bold", "dim", "italic", "underline", "reverse", "keep_fg", "ansi"}))
		}
	}
	return l
}

func (r *reader) glyph(t *Theme, name string, v any) {
	s, ok := v.(string)
	switch {
	case !ok:
		r.fail("glyph %s: write a string", name)
	case name == "set" && (s == "unicode" || s == "ascii"):
		t.ASCII = s == "ascii"
	case name == "set":
		r.fail("glyphs: set %q: write unicode or ascii", s)
	case !slices.Contains(GlyphNames, name):
		r.fail("unknown glyph %q%s", name, meant(name, GlyphNames))
	case len([]rune(s)) != 1:
		r.fail("glyph %s: %q is not one character", name, s)
	default:
		t.Glyphs[name] = s
	}
}

// meant is ": did you mean x?" for the nearest of known, or "".
func meant(name string, known []string) string {
	best, least := "", 4
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance is how many letters differ (Levenshtein), for words that people type.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			last, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, last+cost)
		}
	}
	return row[len(b)]
}
