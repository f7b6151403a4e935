// Package themes says what each meaning on the screen looks like.
//
// A theme is a TOML file: a palette, a look for each of the 43 roles, and signs.
// Those beside this file are built in; a user's own directory may add to them
// and wins by name. The one rule: a theme that can't be read, or names what
// there isn't, is an error that says where and what was probably meant.
package themes

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Appearance is which background a theme is made for.
type Appearance string

// The appearances.
const (
	Dark  Appearance = "dark"
	Light Appearance = "light"
	Any   Appearance = "any"
)

// Theme is what every role looks like.
type Theme struct {
	Name       string // of the file: "sbx-dark"
	Title      string // for people: "sbx dark"
	Appearance Appearance
	Looks      map[Role]Look
	// ASCII draws signs without characters beyond ASCII; Glyphs replaces
	// single ones, by GlyphNames.
	ASCII  bool
	Glyphs map[string]string
	// Syntax is the name of a highlighting style; "": derived from the roles.
	Syntax string
}

// Look is how one role is drawn.
type Look struct {
	FG, BG                                Color
	Bold, Dim, Italic, Underline, Reverse bool
	// KeepFG: a surface whose text keeps its own colour.
	KeepFG bool
	// ANSI counts instead where the terminal has 16 colours or fewer; nil: the
	// nearest colours.
	ANSI *Look
}

// The themes that "auto" chooses from, and the one without colours.
const (
	Auto         = "auto"
	DefaultDark  = "sbx-dark"
	DefaultLight = "sbx-light"
	Mono         = "mono"
)

//go:embed *.toml
var builtin embed.FS

// For is the name that "auto" or "" stands for on such a background.
func For(name string, dark bool) string {
	switch {
	case name != "" && name != Auto:
		return name
	case dark:
		return DefaultDark
	}
	return DefaultLight
}

// Names are the themes that Load knows, sorted.
func Names(userDir string) []string {
	var names []string
	add := func(list []fs.DirEntry) {
		for _, e := range list {
			if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok && !e.IsDir() {
				names = append(names, name)
			}
		}
	}
	list, _ := builtin.ReadDir(".") // embedded: it is there
	add(list)
	if userDir != "" {
		list, _ := os.ReadDir(userDir) // a user without themes has none
		add(list)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Load reads a theme by name, the user's own first, and what it extends.
func Load(name, userDir string) (Theme, error) {
	return load(name, userDir, nil)
}

func load(name, userDir string, above []string) (Theme, error) {
	if slices.Contains(above, name) {
		return Theme{}, fmt.Errorf("theme %s extends itself: %s", above[0], strings.Join(append(above, name), " → "))
	}
	text, err := read(name, userDir)
	if err != nil {
		return Theme{}, err
	}
	file, err := parse(text)
	if err != nil {
		return Theme{}, fmt.Errorf("theme %s: %w", name, err)
	}
	t := file.theme
	t.Name = name
	if err := inherit(&t, file.extends, userDir, append(above, name)); err != nil {
		return Theme{}, err
	}
	return t, nil
}

// inherit fills in the roles that a theme doesn't say: from the theme it
// extends, then from the default of its appearance.
func inherit(t *Theme, extends, userDir string, above []string) error {
	base := extends
	if base == "" {
		base = For(Auto, t.Appearance != Light)
		if len(t.Looks) == len(Roles) || base == t.Name {
			return nil
		}
	}
	parent, err := load(base, userDir, above)
	if err != nil {
		return err
	}
	for role, look := range parent.Looks {
		if _, ok := t.Looks[role]; !ok {
			t.Looks[role] = look
		}
	}
	return nil
}

func read(name, userDir string) ([]byte, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%q is not a theme's name", name)
	}
	if userDir != "" {
		b, err := os.ReadFile(filepath.Join(userDir, name+".toml"))
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("theme %s: %w", name, err)
		}
	}
	b, err := builtin.ReadFile(name + ".toml")
	if err != nil {
		return nil, fmt.Errorf("no theme %q%s", name, meant(name, Names(userDir)))
	}
	return b, nil
}
