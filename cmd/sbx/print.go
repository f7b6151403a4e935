package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"sbx/engine"
	"sbx/tui/clean"
)

// cleanLine makes one line of anything that a sandbox, a model or a host said:
// what could move the operator's cursor is shown instead of sent.
func cleanLine(s string) string { return clean.Line(s) }

// printJSON writes one value on one line. What a sandbox wrote is in it, and a
// terminal may be where it goes: what JSON leaves as it is but a terminal may
// obey is written as an escape, which reads back as the same text.
func (c *cli) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := c.out.Write(escapeActing(b.Bytes()))
	return err
}

// escapeActing escapes the C1 controls, DEL and what reorders or hides text
// around it. Outside of strings JSON has none of them.
func escapeActing(text []byte) []byte {
	acts := func(r rune) bool {
		return r >= 0x7f && r <= 0x9f || r > 0x9f && unicode.Is(unicode.Cf, r)
	}
	if !bytes.ContainsFunc(text, acts) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for _, r := range string(text) {
		switch {
		case !acts(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// printTable writes rows in columns; the first is the head.
func (c *cli) printTable(rows [][]string) error {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = cleanLine(cell)
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], ansi.StringWidth(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", width[i]-ansi.StringWidth(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

// age is how long ago something was, in the one unit that says it.
func age(now, t time.Time) string {
	if t.IsZero() {
		return "—"
	}
	switch d := now.Sub(t); {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// took is a duration as people say it.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// healthRank orders a fleet: what needs somebody first.
var healthRank = map[engine.Health]int{
	engine.Broken: 0, engine.Healing: 1, engine.Starting: 2, engine.Unknown: 3, engine.Ready: 4,
}

// attention sorts sandboxes, broken first, then by name.
func attention(s *engine.Snapshot) []engine.Sandbox {
	list := make([]engine.Sandbox, 0, len(s.Sandboxes))
	for _, sb := range s.Sandboxes {
		list = append(list, sb)
	}
	slices.SortFunc(list, func(a, b engine.Sandbox) int {
		if d := healthRank[a.Health] - healthRank[b.Health]; d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}
