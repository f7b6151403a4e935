package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/themes"
	"sbx/tui/draw"
)

// chooser is a short menu after a key: the next key picks. It changes nothing
// of a sandbox, so it doesn't ignore keys at first as a dialog does.
type chooser struct {
	w       *world
	title   string
	choices []choice
	// marked says of a choice whether it is on; nil: they aren't switches. The
	// menu of switches stays open.
	marked func(i int) bool
	width  int
	closed bool
}

func newChooser(w *world, title string) *chooser { return &chooser{w: w, title: title} }

func (c *chooser) offer(key, words string, do func() tea.Cmd) {
	c.choices = append(c.choices, choice{key, words, do})
}

func (c *chooser) done() bool { return c.closed }

// SetSize is the size of the screen.
func (c *chooser) SetSize(width, _ int) { c.width = width }

// ShortHelp are the chooser's keys.
func (c *chooser) ShortHelp() []key.Binding {
	list := []key.Binding{bind("Esc", "close")}
	for _, ch := range c.choices {
		list = append(list, bind(ch.key, ch.words))
	}
	return list
}

// FullHelp are the same.
func (c *chooser) FullHelp() [][]key.Binding { return [][]key.Binding{c.ShortHelp()} }

// Update picks, or closes.
func (c *chooser) Update(msg tea.Msg) tea.Cmd {
	press, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	for _, ch := range c.choices {
		if press.String() == ch.key {
			c.closed = c.marked == nil
			return ch.do()
		}
	}
	k := c.w.keys
	c.closed = key.Matches(press, k.Back, k.Open, k.Quit)
	return nil
}

// View is the box, a choice in each line.
func (c *chooser) View() string {
	width := draw.Width(c.title) + 8
	for _, ch := range c.choices {
		width = max(width, draw.Width(ch.words)+14)
	}
	b := newBox(c.w, min(width, c.width-4), c.title)
	for i, ch := range c.choices {
		b.line(func(p *draw.Pen) {
			p.Cell(themes.Key, ch.key, 3)
			if c.marked != nil {
				sign, role := " ", themes.Muted
				if c.marked(i) {
					sign, role = c.w.glyphs.Ready, themes.HealthReady
				}
				p.Cell(role, sign, 2)
			}
			p.Put(themes.Text, ch.words)
		})
	}
	b.line(func(p *draw.Pen) { p.Put(themes.Muted, "Esc closes") })
	return b.close()
}
