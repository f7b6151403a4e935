// Package style turns the roles of a theme into what a terminal understands,
// once. It is the only place between a theme and the screen: nothing else in
// the dashboard knows a colour.
package style

import (
	"strings"

	"charm.land/lipgloss/v2"

	"sbx/themes"
)

// Ground is the surface that text lies on.
type Ground int

// The grounds. Text keeps its role's colour on them if the theme says so.
const (
	Plain Ground = iota
	Selected
	Bar
	Modal
	Added
	Removed
	grounds
)

var groundRoles = [grounds]themes.Role{
	Plain: themes.Background, Selected: themes.Selection, Bar: themes.Bar, Modal: themes.Modal,
	Added: themes.DiffAddBG, Removed: themes.DiffDelBG,
}

// Options are what the terminal can do.
type Options struct {
	// Few: it has 16 colours or fewer.
	Few bool
	// Paint fills the theme's background instead of keeping the terminal's own.
	Paint bool
	// ASCII: no character beyond ASCII may be drawn.
	ASCII bool
}

// Set is every role as it is drawn on this terminal.
type Set struct {
	Theme  string
	ASCII  bool
	Glyphs Glyphs

	theme themes.Theme
	o     Options
	open  [grounds]map[themes.Role]string
	stale *Set
}

// New makes a set of a theme.
func New(t themes.Theme, o Options) *Set {
	s := &Set{Theme: t.Name, ASCII: o.ASCII || t.ASCII, Glyphs: glyphsOf(t), theme: t, o: o}
	for g := range grounds {
		s.open[g] = make(map[themes.Role]string, len(themes.Roles))
		for _, role := range themes.Roles {
			s.open[g][role] = opening(s.Style(role, g))
		}
	}
	s.stale = s.faded()
	return s
}

// Style is the look of a role on a ground.
func (s *Set) Style(role themes.Role, g Ground) lipgloss.Style {
	look := s.look(role)
	under := s.look(groundRoles[g])
	if g != Plain && look.BG == "" && !look.Reverse {
		if !under.KeepFG && (under.Reverse || under.BG != "") {
			under.Bold = under.Bold || look.Bold
			return styleOf(under)
		}
		look.BG = under.BG
	}
	if g == Plain && look.BG == "" && s.o.Paint {
		look.BG = under.BG
	}
	if look.FG == "" && look.BG != "" && g != Plain {
		look.FG = s.look(themes.Text).FG
	}
	return styleOf(look)
}

// Open is the sequence that begins a role on a ground. It ends whatever was
// before it, so that nothing has to be closed but the line.
func (s *Set) Open(role themes.Role, g Ground) string { return s.open[g][role] }

// Stale is the set in which everything but the bars is faded: what was true
// when the engine was last heard.
func (s *Set) Stale() *Set { return s.stale }

func (s *Set) faded() *Set {
	f := *s
	for g := range grounds {
		f.open[g] = make(map[themes.Role]string, len(themes.Roles))
		for _, role := range themes.Roles {
			switch role {
			case themes.BadgeOffline, themes.BadgeNav, themes.BadgeType:
				f.open[g][role] = s.open[g][role]
			default:
				f.open[g][role] = s.open[g][themes.Stale]
			}
		}
	}
	f.stale = &f
	return &f
}

func (s *Set) look(role themes.Role) themes.Look {
	look := s.theme.Looks[role]
	if s.o.Few && look.ANSI != nil {
		return *look.ANSI
	}
	return look
}

func styleOf(l themes.Look) lipgloss.Style {
	st := lipgloss.NewStyle().Bold(l.Bold).Faint(l.Dim).Italic(l.Italic).Underline(l.Underline).Reverse(l.Reverse)
	if c, ok := colorOf(l.FG); ok {
		st = st.Foreground(lipgloss.Color(c))
	}
	if c, ok := colorOf(l.BG); ok {
		st = st.Background(lipgloss.Color(c))
	}
	return st
}

// colorOf is a theme's colour as Lip Gloss writes it; not ok for the terminal's own.
func colorOf(c themes.Color) (string, bool) {
	if c == "" || c == "default" {
		return "", false
	}
	if _, num, ok := strings.Cut(string(c), ":"); ok {
		return num, true
	}
	return string(c), true
}

// opening is what a style writes before its text, with a reset before it.
func opening(st lipgloss.Style) string {
	before, _, _ := strings.Cut(st.Render("x"), "x")
	codes := strings.TrimSuffix(strings.TrimPrefix(before, "\x1b["), "m")
	if codes == "" {
		return "\x1b[0m"
	}
	return "\x1b[0;" + codes + "m"
}
