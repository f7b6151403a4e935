package tui

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// deaf is how long a dialog ignores keys, so that none meant for what was there
// before answers it.
const deaf = 300 * time.Millisecond

const dialogWidth = 66

// dialog asks before something is done. Enter and Esc cancel; a name that must
// be typed makes Enter do it.
type dialog struct {
	w             *world
	title         string
	lines         []dialogLine
	choices       []choice
	cancel        string
	opened        time.Time
	closed        bool
	width, height int

	name  string // to be typed; "": nothing
	verb  string
	input textinput.Model
	do    func() tea.Cmd
}

type dialogLine struct {
	role themes.Role
	text string
	sign sign // before the text, if it has one
}

type choice struct {
	key, words string
	do         func() tea.Cmd
}

func newDialog(w *world, title string) *dialog {
	return &dialog{w: w, title: title, opened: w.now, cancel: "Cancel"}
}

func (d *dialog) say(role themes.Role, text string) {
	d.lines = append(d.lines, dialogLine{role: role, text: text})
}

// target names a sandbox that is hit, and what runs in it.
func (d *dialog) target(sb engine.Sandbox) {
	h := healthSign(d.w.glyphs, sb)
	words := sb.Name + "  " + first(sb.Owner, "—") + "  " + string(sb.State)
	if r, ok := d.w.run(sb.ID); ok && r.Open() {
		words += ", healing: this cuts " + attemptName(r.Attempt)
	}
	d.lines = append(d.lines, dialogLine{role: themes.Text, text: words, sign: h})
}

func (d *dialog) offer(key, words string, do func() tea.Cmd) {
	d.choices = append(d.choices, choice{key, words, do})
}

// demand asks for a name to be typed.
func (d *dialog) demand(name, verb string, do func() tea.Cmd) {
	d.name, d.verb, d.do = name, verb, do
	d.input = textinput.New()
	d.input.Prompt = ""
	d.input.CharLimit = engine.MaxName
	d.input.Focus()
}

func (d *dialog) done() bool { return d.closed }

// Typing reports whether a name is asked for.
func (d *dialog) Typing() bool { return d.name != "" }

// SetSize is the size of the screen.
func (d *dialog) SetSize(width, height int) { d.width, d.height = width, height }

// ShortHelp are the dialog's keys.
func (d *dialog) ShortHelp() []key.Binding {
	list := []key.Binding{bind("Esc", strings.ToLower(d.cancel))}
	for _, c := range d.choices {
		list = append(list, bind(c.key, c.words))
	}
	return list
}

// FullHelp are the same.
func (d *dialog) FullHelp() [][]key.Binding { return [][]key.Binding{d.ShortHelp()} }

// Update answers keys, but for the first moment.
func (d *dialog) Update(msg tea.Msg) tea.Cmd {
	if d.w.now.Before(d.hears()) {
		return nil
	}
	switch msg := msg.(type) {
	case tea.PasteMsg:
		if d.name != "" {
			d.input, _ = d.input.Update(msg)
		}
	case tea.KeyPressMsg:
		return d.pressed(msg)
	}
	return nil
}

func (d *dialog) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := d.w.keys
	switch {
	case key.Matches(msg, k.Open) && d.name != "" && d.input.Value() == d.name:
		d.closed = true
		return d.do()
	case key.Matches(msg, k.Back), key.Matches(msg, k.Open) && d.input.Value() == "":
		d.closed = true
	case d.name != "":
		d.input, _ = d.input.Update(msg)
	default:
		for _, c := range d.choices {
			if msg.String() == c.key {
				d.closed = true
				return c.do()
			}
		}
	}
	return nil
}

// View is the box, as large as it needs to be.
func (d *dialog) View() string {
	b := newBox(d.w, min(dialogWidth, d.width-4), d.title)
	b.line(func(*draw.Pen) {})
	for _, l := range d.lines {
		d.draw(b, l)
	}
	b.line(func(*draw.Pen) {})
	if d.name != "" {
		b.line(func(p *draw.Pen) {
			p.Put(themes.Text, "Type ").Put(themes.Title, d.name).Put(themes.Text, " to "+d.verb+": ")
			drawInput(p, d.input.Value(), d.input.Position())
		})
		note := "Esc cancels. " + d.deafNote()
		if v := d.input.Value(); v == d.name {
			note = "Enter does it. Esc cancels."
		} else if v != "" && !strings.HasPrefix(d.name, v) {
			note = "That is not its name. Esc cancels."
		}
		b.line(func(p *draw.Pen) { p.Put(themes.Muted, note) })
		return b.close()
	}
	one := d.fits(b.inner())
	b.line(func(p *draw.Pen) {
		p.Put(themes.BadgeNav, " "+d.cancel+" ").Put(themes.Key, " Esc").Gap(3)
		for _, c := range d.choices {
			if one {
				p.Put(themes.Key, c.key).Gap(2).Put(themes.Text, c.words).Gap(3)
			}
		}
	})
	for _, c := range d.choices {
		if !one {
			b.line(func(p *draw.Pen) { p.Gap(3).Put(themes.Key, c.key).Gap(2).Put(themes.Text, c.words) })
		}
	}
	b.line(func(p *draw.Pen) {
		p.Put(themes.Muted, "Enter is "+d.cancel+". "+d.deafNote())
	})
	return b.close()
}

// deafNote says that keys don't count yet, while they don't.
func (d *dialog) deafNote() string {
	if d.w.now.Before(d.hears()) {
		return "Keys are ignored for the first 0.3 s."
	}
	return ""
}

// hears is when the dialog begins to take keys.
func (d *dialog) hears() time.Time { return d.opened.Add(deaf) }

// fits reports whether all choices stand on one line.
func (d *dialog) fits(width int) bool {
	need := draw.Width(d.cancel) + 9
	for _, c := range d.choices {
		need += draw.Width(c.key+c.words) + 5
	}
	return need <= width+3
}

func (d *dialog) draw(b *box, l dialogLine) {
	if l.sign.glyph != "" {
		for i, part := range draw.Wrap(l.text, b.inner()-2, 2) {
			b.line(func(p *draw.Pen) {
				if i == 0 {
					p.Put(l.sign.role, l.sign.glyph).Gap(1).Put(l.role, part)
					return
				}
				p.Gap(2).Put(themes.Muted, part)
			})
		}
		return
	}
	if l.text == "" {
		b.line(func(*draw.Pen) {})
	}
	for _, part := range draw.Wrap(l.text, b.inner(), 6) {
		if l.text != "" {
			b.line(func(p *draw.Pen) { p.Put(l.role, part) })
		}
	}
}

// box is a frame with a title, drawn over the screen.
type box struct {
	w     *world
	width int
	lines []string
}

func newBox(w *world, width int, title string) *box {
	b := &box{w: w, width: max(20, width)}
	p := b.pen().Put(themes.Border, "╭─ ").Put(themes.Title, title).Gap(1)
	p.Rule(themes.Border, "─", p.Left()-1).Put(themes.Border, "╮")
	b.lines = append(b.lines, p.String())
	return b
}

func (b *box) pen() *draw.Pen { return draw.On(b.w.bright, style.Modal, b.width) }

// inner is the width of a line's content.
func (b *box) inner() int { return b.width - 4 }

func (b *box) line(fill func(*draw.Pen)) {
	p := draw.On(b.w.bright, style.Modal, b.width-2)
	p.Gap(0).Put(themes.Border, "│").Gap(1)
	fill(p)
	end := draw.On(b.w.bright, style.Modal, 2).Gap(1).Put(themes.Border, "│")
	b.lines = append(b.lines, p.String()+end.String())
}

func (b *box) close() string {
	p := b.pen().Put(themes.Border, "╰").Rule(themes.Border, "─", b.width-2).Put(themes.Border, "╯")
	return strings.Join(append(b.lines, p.String()), "\n")
}
