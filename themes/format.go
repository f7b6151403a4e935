package themes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Format writes a theme as TOML, with nothing left to inherit: reading it gives
// the same theme.
func Format(t Theme) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name = %s\nappearance = %s\n\n[roles]\n", quote(t.Title), quote(string(t.Appearance)))
	for _, role := range Roles {
		if look, ok := t.Looks[role]; ok {
			fmt.Fprintf(&b, "%s = %s\n", quote(string(role)), formatLook(look))
		}
	}
	set := "unicode"
	if t.ASCII {
		set = "ascii"
	}
	fmt.Fprintf(&b, "\n[glyphs]\nset = %s\n", quote(set))
	for _, name := range slices.Sorted(maps.Keys(t.Glyphs)) {
		fmt.Fprintf(&b, "%s = %s\n", quote(name), quote(t.Glyphs[name]))
	}
	if t.Syntax != "" {
		fmt.Fprintf(&b, "\n[syntax]\nstyle = %s\n", quote(t.Syntax))
	}
	return b.String()
}

func formatLook(l Look) string {
	var parts []string
	if l.FG != "" {
		parts = append(parts, "fg = "+quote(string(l.FG)))
	}
	if l.BG != "" {
		parts = append(parts, "bg = "+quote(string(l.BG)))
	}
	for _, flag := range []struct {
		name string
		on   bool
	}{
		{"bold", l.Bold}, {"dim", l.Dim}, {"italic", l.Italic}, {"underline", l.Underline}, {"reverse", l.Reverse}, {"keep_fg", l.KeepFG},
	} {
		if flag.on {
			parts = append(parts, flag.name+" = true")
		}
	}
	if l.ANSI != nil {
		parts = append(parts, "ansi = "+formatLook(*l.ANSI))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// quote is a string of TOML: JSON's escapes are among TOML's.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return string(b)
}
