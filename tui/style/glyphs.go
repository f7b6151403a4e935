package style

import "sbx/themes"

// Glyphs are the signs that carry meaning without colour. Each is one cell.
type Glyphs struct {
	Ready, Healing, Broken, Unknown, None string
	Cold, Warming, Warm, Waiting, Running string
	Done, Todo, Mark, Folded, Unfolded    string
}

// glyphsOf are the signs of a theme: the usual ones, and what it replaces.
func glyphsOf(t themes.Theme) Glyphs {
	g := Glyphs{
		Ready: "✓", Healing: "↻", Broken: "✗", Unknown: "?", None: "·",
		Cold: "○", Warming: "◔", Warm: "◑", Waiting: "◕", Running: "●",
		Done: "▰", Todo: "▱", Mark: "◆", Folded: "▸", Unfolded: "▾",
	}
	for name, field := range map[string]*string{
		"ready": &g.Ready, "healing": &g.Healing, "broken": &g.Broken, "unknown": &g.Unknown, "none": &g.None,
		"cold": &g.Cold, "warming": &g.Warming, "warm": &g.Warm, "waiting": &g.Waiting, "running": &g.Running,
		"done": &g.Done, "todo": &g.Todo, "mark": &g.Mark, "folded": &g.Folded, "unfolded": &g.Unfolded,
	} {
		if own := t.Glyphs[name]; own != "" {
			*field = own
		}
	}
	return g
}

var (
	spinner      = [8]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"}
	asciiSpinner = [4]string{"|", "/", "-", `\`}
	sparks       = [8]string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	asciiSparks  = [8]string{"_", ".", ",", "-", "=", "+", "*", "#"}
)

// Spinner is the sign of what is at work at the n-th quarter of a second.
func (s *Set) Spinner(n int) string {
	if s.ASCII {
		return asciiSpinner[n&3]
	}
	return spinner[n&7]
}

// Spark is a bar of level 0 to 7.
func (s *Set) Spark(level int) string {
	level = min(7, max(0, level))
	if s.ASCII {
		return asciiSparks[level]
	}
	return sparks[level]
}

// ToASCII is the nearest character of ASCII: the dashboard's own signs by
// meaning, others a question mark.
func ToASCII(r rune) rune {
	if r <= '~' {
		return r
	}
	if a, ok := asciiSigns[r]; ok {
		return a
	}
	return '?'
}

var asciiSigns = map[rune]rune{
	'✓': '+', '↻': '~', '✗': 'X', '·': '.',
	'○': '0', '◔': '1', '◑': '2', '◕': '3', '●': '4', '◌': 'o',
	'▰': '#', '▱': '-', '◆': '*', '▸': '>', '▾': 'v', '▶': '>', '▼': 'v', '▲': '^',
	'─': '-', '━': '=', '│': '|', '┃': '#', '▌': '>', '╭': '+', '╮': '+', '╰': '+', '╯': '+',
	'—': '-', '–': '-', '−': '-', '…': '~', '×': 'x', '→': '>', '›': '>', '≥': '>', '◂': '<',
	'░': '.', '█': '#', '“': '"', '”': '"', '’': '\'', '␛': '^', '⠿': '*', '◇': 'o',
	'↑': '^', '↓': 'v', '←': '<',
}
