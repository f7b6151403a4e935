// Package draw writes the rows of the screen. Every text goes through
// [sbx/tui/clean] here, so that no component can forget it, and every row comes
// out exactly as wide as asked.
package draw

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"sbx/themes"
	"sbx/tui/clean"
	"sbx/tui/style"
)

const ellipsis = "…"

// Pen writes one row of a fixed width from left to right. What doesn't fit is
// cut; what is not filled is blank.
type Pen struct {
	set    *style.Set
	ground style.Ground
	width  int
	left   int
	open   string
	b      strings.Builder
}

// New is a pen for a row of width cells.
func New(set *style.Set, width int) *Pen { return On(set, style.Plain, width) }

// On is a pen for a row that lies on a ground.
func On(set *style.Set, g style.Ground, width int) *Pen {
	p := &Pen{set: set, width: max(0, width)}
	return p.Again(g)
}

// Again begins another row of the same width with a pen whose row was taken.
func (p *Pen) Again(g style.Ground) *Pen {
	p.ground, p.left, p.open = g, p.width, ""
	p.b = strings.Builder{}
	p.b.Grow(3*p.width + 128) // its text and its colours
	return p
}

// Bars writes n bars of a chart for a share in per cent.
func (p *Pen) Bars(role themes.Role, n int, percent uint8) *Pen {
	return p.Rule(role, p.set.Spark(int(percent)*8/101), n)
}

// Left is how many cells are free.
func (p *Pen) Left() int { return p.left }

// Put writes text, cut with … where the row ends.
func (p *Pen) Put(role themes.Role, text string) *Pen {
	p.fit(role, text, p.left)
	return p
}

// Cell writes text into n cells, cut with … or filled with blanks.
func (p *Pen) Cell(role themes.Role, text string, n int) *Pen {
	n = min(n, p.left)
	used := p.fit(role, text, n)
	return p.Gap(n - used)
}

// CellRight is Cell with the text at the right.
func (p *Pen) CellRight(role themes.Role, text string, n int) *Pen {
	n = min(n, p.left)
	p.Gap(n - min(n, width(text)))
	p.fit(role, text, min(n, width(text)))
	return p
}

// Gap leaves n cells blank.
func (p *Pen) Gap(n int) *Pen {
	if n = min(n, p.left); n > 0 {
		p.begin(themes.Text)
		p.spaces(n)
	}
	return p
}

// To leaves blanks up to n cells before the end.
func (p *Pen) To(n int) *Pen { return p.Gap(p.left - n) }

// Rule repeats a one-cell sign over n cells.
func (p *Pen) Rule(role themes.Role, sign string, n int) *Pen {
	if n = min(n, p.left); n > 0 {
		p.begin(role)
		sign = p.ascii(sign)
		for range n {
			p.b.WriteString(sign)
		}
		p.left -= n
	}
	return p
}

// Ends writes a text at the right end of the row, and blanks before it; it is
// left out if it doesn't fit.
func (p *Pen) Ends(role themes.Role, text string) *Pen {
	if w := width(text); w <= p.left {
		p.To(w)
		p.Put(role, text)
	}
	return p
}

// Colored writes a text that brings its own colours, as clean.Colors made it.
func (p *Pen) Colored(role themes.Role, text string) *Pen {
	if clean.Plain(text) || p.set.ASCII {
		return p.Put(role, ansi.Strip(text))
	}
	w := ansi.StringWidth(text)
	if w > p.left {
		text = ansi.Truncate(text, p.left, ellipsis)
		w = ansi.StringWidth(text)
	}
	p.begin(role)
	// A reset inside the text goes back to the role, not to the terminal's own.
	p.b.WriteString(strings.ReplaceAll(text, clean.Reset, p.open))
	p.left -= w
	p.open = ""
	return p
}

// String is the row.
func (p *Pen) String() string {
	p.Gap(p.left)
	if p.open != "" && p.open != clean.Reset {
		p.b.WriteString(clean.Reset)
	}
	p.open = ""
	return p.b.String()
}

// fit writes as much of text as fits n cells and says how many it took.
func (p *Pen) fit(role themes.Role, text string, n int) int {
	if n <= 0 || text == "" {
		return 0
	}
	text = p.ascii(clean.Cut(text, n+1))
	w := width(text)
	if w > n {
		text = cut(text, n, p.ascii(ellipsis))
		w = width(text)
	}
	p.begin(role)
	p.b.WriteString(text)
	p.left -= w
	return w
}

func (p *Pen) begin(role themes.Role) {
	if open := p.set.Open(role, p.ground); open != p.open {
		p.b.WriteString(open)
		p.open = open
	}
}

const blanks = "                                                                "

func (p *Pen) spaces(n int) {
	p.left -= n
	for ; n > len(blanks); n -= len(blanks) {
		p.b.WriteString(blanks)
	}
	p.b.WriteString(blanks[:n])
}

// ascii is text without characters beyond ASCII, if the terminal has none.
// A wide character becomes two, so that columns stay.
func (p *Pen) ascii(text string) string {
	if !p.set.ASCII || clean.Plain(text) {
		return text
	}
	return strings.Map(style.ToASCII, text)
}

// width is how many cells a text takes.
func width(text string) int {
	if n, ok := clean.Simple(text); ok {
		return n
	}
	return ansi.StringWidth(text)
}

// Width is how many cells a text takes once it is clean.
func Width(text string) int {
	if n, ok := clean.Simple(text); ok {
		return n
	}
	return ansi.StringWidth(clean.Line(text))
}

func cut(text string, n int, tail string) string {
	if _, ok := clean.Simple(text); ok {
		at := 0
		for i := range text {
			if at == n-1 {
				return text[:i] + tail
			}
			at++
		}
	}
	return ansi.Truncate(text, n, tail)
}

// Wrap breaks a text into lines of at most n cells at spaces, cleaned, at most
// limit of them (0: all).
func Wrap(text string, n, limit int) []string {
	if n <= 0 {
		return nil
	}
	if most := limit * n * 8; limit > 0 && len(text) > most {
		text = text[:most] // a line of a megabyte costs no more than what shows
	}
	var out []string
	for _, line := range clean.Lines(text) {
		for part := range strings.SplitSeq(ansi.Wrap(line, n, ""), "\n") {
			if limit > 0 && len(out) == limit {
				out[limit-1] = ansi.Truncate(strings.TrimRight(out[limit-1], " "), n-1, "") + ellipsis
				return out
			}
			out = append(out, part)
		}
	}
	return out
}
