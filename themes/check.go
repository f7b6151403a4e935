package themes

import "fmt"

// What Check holds a theme to (UX §4).
const (
	LeastTextContrast  = 4.5
	LeastShapeContrast = 3.0
	LeastDistance      = 20.0
)

// Check is what is wrong with a theme; nothing, if all can read it. Colours of
// the terminal's own palette are left out: nobody knows them here.
func Check(t Theme) []error {
	var bad []error
	for _, role := range Roles {
		look, ok := t.Looks[role]
		if !ok {
			bad = append(bad, fmt.Errorf("role %s has no look", role))
			continue
		}
		bad = append(bad, legible(t, role, look)...)
	}
	health := []Role{HealthReady, HealthHealing, HealthBroken, HealthUnknown}
	for i, a := range health {
		for _, b := range health[i+1:] {
			bad = append(bad, distinct(t, a, b)...)
		}
	}
	return append(bad, distinct(t, DiffAdd, DiffDel)...)
}

// legible compares a role's letters with every surface they are drawn on.
func legible(t Theme, role Role, look Look) []error {
	var least float64
	switch kinds[role] {
	case isText:
		least = LeastTextContrast
	case isShape:
		least = LeastShapeContrast
	default:
		return nil
	}
	surfaces := map[string]Color{"background": t.Looks[Background].BG, "selection": t.Looks[Selection].BG}
	if look.BG != "" {
		surfaces = map[string]Color{"its own background": look.BG}
	}
	fg, ok := look.FG.RGB()
	if !ok {
		return nil
	}
	var bad []error
	for _, name := range []string{"background", "selection", "its own background"} {
		bg, ok := surfaces[name].RGB()
		if !ok {
			continue
		}
		if c := Contrast(fg, bg); c < least {
			bad = append(bad, fmt.Errorf("role %s on %s: contrast %.1f, least %.1f", role, name, c, least))
		}
	}
	return bad
}

// distinct asks that two roles differ in more than a colour that some can't see.
func distinct(t Theme, a, b Role) []error {
	la, lb := t.Looks[a], t.Looks[b]
	if attributes(la) != attributes(lb) {
		return nil
	}
	ca, oka := shown(la).RGB()
	cb, okb := shown(lb).RGB()
	if !oka || !okb {
		return nil
	}
	var bad []error
	for _, sight := range []Sight{Deutan, Protan, Tritan} {
		if d := Distance(ca.As(sight), cb.As(sight)); d < LeastDistance {
			bad = append(bad, fmt.Errorf("roles %s and %s: %.0f apart to %s eyes, least %.0f", a, b, d, sight, LeastDistance))
		}
	}
	return bad
}

// attributes are what of a look is seen without its colours.
func attributes(l Look) [6]bool {
	return [6]bool{l.Bold, l.Dim, l.Italic, l.Underline, l.Reverse, l.BG != ""}
}

// shown is the colour that a look is recognised by.
func shown(l Look) Color {
	if l.BG != "" {
		return l.BG
	}
	return l.FG
}
