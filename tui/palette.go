package tui

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sbx/themes"
	"sbx/tui/draw"
)

// paletteRows is how many entries show at once.
const paletteRows = 14

// paletteEntry is something that can be done by its name.
type paletteEntry struct {
	title string
	key   string // that does the same
	why   string // it can't be done now; "": it can
	note  string // what it does or asks, on the last line
	run   func() tea.Cmd
}

// palette finds what can be done by its name.
type palette struct {
	w             *world
	target        string
	all, list     []paletteEntry
	input         textinput.Model
	at, top       int
	width, height int
	closed        bool
}

func newPalette(w *world, target string, all []paletteEntry) *palette {
	p := &palette{w: w, target: target, all: all, list: all, input: textinput.New()}
	p.input.Prompt = ""
	p.input.CharLimit = 100
	p.input.Focus()
	return p
}

func (p *palette) done() bool { return p.closed }

// Typing is always so: a name is looked for.
func (p *palette) Typing() bool { return true }

// SetSize is the size of the screen.
func (p *palette) SetSize(width, height int) { p.width, p.height = width, height }

// ShortHelp are the palette's keys.
func (p *palette) ShortHelp() []key.Binding {
	return []key.Binding{bind("Enter", "do it"), bind("↑ ↓", "choose"), bind("Esc", "close")}
}

// FullHelp are the same.
func (p *palette) FullHelp() [][]key.Binding { return [][]key.Binding{p.ShortHelp()} }

// Update narrows the list, and does what was chosen.
func (p *palette) Update(msg tea.Msg) tea.Cmd {
	press, ok := msg.(tea.KeyPressMsg)
	if ok {
		switch press.String() {
		case "esc":
			p.closed = true
			return nil
		case "up", "ctrl+p":
			p.at = max(0, p.at-1)
			return nil
		case "down", "ctrl+n":
			p.at = min(p.at+1, len(p.list)-1)
			return nil
		case "enter":
			return p.choose()
		}
	}
	p.input, _ = p.input.Update(msg)
	p.narrow()
	return nil
}

// choose does the entry under the cursor. One that can't be done is done all
// the same: it says why.
func (p *palette) choose() tea.Cmd {
	if p.at < 0 || p.at >= len(p.list) {
		return nil
	}
	p.closed = true
	return p.list[p.at].run()
}

// narrow keeps what has the letters typed: first what has the word as it is,
// then what has its letters in their order.
func (p *palette) narrow() {
	want := strings.ToLower(strings.TrimSpace(p.input.Value()))
	var starts, has, close []paletteEntry
	for _, e := range p.all {
		title := strings.ToLower(e.title)
		switch {
		case want == e.key && want != "", strings.HasPrefix(title, want):
			starts = append(starts, e)
		case strings.Contains(title, want):
			has = append(has, e)
		case fuzzy(title, want):
			close = append(close, e)
		}
	}
	p.list = slices.Concat(starts, has, close)
	p.at = max(0, min(p.at, len(p.list)-1))
	if want != "" {
		p.at = 0
	}
}

// View is the box: what is typed, what there is, and what the chosen one does.
func (p *palette) View() string {
	b := newBox(p.w, min(78, p.width-2), "Commands")
	b.line(func(pen *draw.Pen) {
		pen.Put(themes.Accent, "> ")
		drawInput(pen, p.input.Value(), p.input.Position())
		pen.Ends(themes.Muted, "acts on "+first(p.target, "nothing"))
	})
	b.line(func(*draw.Pen) {})
	room := max(3, min(paletteRows, p.height-9))
	p.top = max(0, min(p.top, p.at))
	p.top = max(p.top, p.at-room+1)
	for i := p.top; i < p.top+room; i++ {
		b.line(func(pen *draw.Pen) { p.entry(pen, i) })
	}
	b.line(func(*draw.Pen) {})
	b.line(func(pen *draw.Pen) {
		switch {
		case len(p.list) == 0:
			pen.Put(themes.Warning, "nothing is called that")
		case p.list[p.at].why != "":
			pen.Put(themes.Warning, "not now: "+p.list[p.at].why)
		default:
			pen.Put(themes.Muted, p.list[p.at].note)
		}
	})
	return b.close()
}

func (p *palette) entry(pen *draw.Pen, i int) {
	if i >= len(p.list) {
		return
	}
	e := p.list[i]
	role, keyRole := themes.Text, themes.Key
	if e.why != "" {
		role, keyRole = themes.Stale, themes.Stale
	}
	if i == p.at {
		pen.Put(themes.BorderFocus, "▌")
		if e.why == "" {
			role = themes.Accent
		}
	} else {
		pen.Gap(1)
	}
	pen.Put(role, e.title)
	pen.Ends(keyRole, e.key+" ")
}
