package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/themes"
	"sbx/tui/draw"
)

// helpBox is every key that holds here, made from the keys themselves.
type helpBox struct {
	w             *world
	places        []place
	title         string
	width, height int
	top           int
	closed        bool
}

func newHelp(w *world, _ Component, here place, width, height int) *helpBox {
	k := w.keys
	places := []place{k.acting(), k.everywhere(), k.moving()}
	if len(here.keys) > 0 {
		places = append([]place{{"Here", here.keys}}, places...)
	}
	return &helpBox{w: w, places: places, title: "Keys · " + here.title, width: width, height: height}
}

func (h *helpBox) done() bool { return h.closed }

// SetSize is the size of the screen.
func (h *helpBox) SetSize(width, height int) { h.width, h.height = width, height }

// ShortHelp are the help's own keys.
func (h *helpBox) ShortHelp() []key.Binding {
	return []key.Binding{bind("j/k", "scroll"), bind("Esc", "close")}
}

// FullHelp are the same.
func (h *helpBox) FullHelp() [][]key.Binding { return [][]key.Binding{h.ShortHelp()} }

// Update scrolls and closes.
func (h *helpBox) Update(msg tea.Msg) tea.Cmd {
	press, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	k := h.w.keys
	switch {
	case key.Matches(press, k.Down):
		h.top++
	case key.Matches(press, k.Up):
		h.top--
	case key.Matches(press, k.HalfDown, k.PageDown):
		h.top += h.room() / 2
	case key.Matches(press, k.HalfUp, k.PageUp):
		h.top -= h.room() / 2
	case key.Matches(press, k.Back, k.Quit, k.Help):
		h.closed = true
	}
	h.top = max(0, min(h.top, len(h.rows())-h.room()))
	return nil
}

func (h *helpBox) boxWidth() int { return min(120, h.width-4) }

// room is how many rows of keys show at once.
func (h *helpBox) room() int { return max(3, h.height-8) }

// helpRow is a row of the help: a cell in each column.
type helpRow []helpCell

type helpCell struct{ key, words string }

// columns are how many keys stand beside each other.
func (h *helpBox) columns() int { return max(1, min(3, (h.boxWidth()-4)/36)) }

// rows deals the places out to the columns, each to the shortest one.
func (h *helpBox) rows() []helpRow {
	n := h.columns()
	cols := make([][]helpCell, n)
	for _, pl := range h.places {
		least := 0
		for i := range cols {
			if len(cols[i]) < len(cols[least]) {
				least = i
			}
		}
		if len(cols[least]) > 0 {
			cols[least] = append(cols[least], helpCell{})
		}
		cols[least] = append(cols[least], helpCell{words: pl.title})
		for _, b := range pl.keys {
			cols[least] = append(cols[least], helpCell{b.Help().Key, b.Help().Desc})
		}
	}
	var rows []helpRow
	for y := 0; ; y++ {
		row, any := make(helpRow, n), false
		for x := range cols {
			if y < len(cols[x]) {
				row[x], any = cols[x][y], true
			}
		}
		if !any {
			return rows
		}
		rows = append(rows, row)
	}
}

// View is the box.
func (h *helpBox) View() string {
	b := newBox(h.w, h.boxWidth(), h.title)
	rows := h.rows()
	width := b.inner() / h.columns()
	h.top = max(0, min(h.top, len(rows)-h.room()))
	for _, row := range rows[h.top:min(len(rows), h.top+h.room())] {
		b.line(func(p *draw.Pen) {
			for _, c := range row {
				if c.key == "" {
					p.Cell(themes.Accent, c.words, width)
					continue
				}
				p.Cell(themes.Key, c.key, 11).Cell(themes.Text, c.words, width-11)
			}
		})
	}
	b.line(func(*draw.Pen) {})
	g := h.w.glyphs
	b.line(func(p *draw.Pen) {
		p.Put(themes.HealthBroken, g.Broken+" broken ").Gap(2).Put(themes.HealthHealing, g.Healing+" healing").Gap(2).
			Put(themes.HealthReady, g.Ready+" ready").Gap(2).Put(themes.Muted, strings.Join([]string{
			g.Cold + " cold", g.Warming + " warming", g.Warm + " warm", g.Waiting + " waiting", g.Running + " running",
		}, "  "))
	})
	b.line(func(p *draw.Pen) { p.Put(themes.Muted, "j/k scroll   Esc close") })
	return b.close()
}
