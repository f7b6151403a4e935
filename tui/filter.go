package tui

import (
	"fmt"
	"strings"

	"sbx/engine"
)

// filter is what the fleet is narrowed to: fields and words, all of which must
// match. "health:broken label:team=web api" is one.
type filter struct {
	text  string
	terms []term
	// hint says what was probably meant.
	hint string
}

type term struct{ field, value string }

// filterFields are the fields, with the values that are known in advance.
var filterFields = []struct {
	name   string
	values []string
}{
	{"health", []string{"ready", "healing", "broken", "unknown", "starting"}},
	{"life", []string{"cold", "warming", "warm", "waiting", "running"}},
	{"owner", nil},
	{"template", nil},
	{"label", nil},
}

func parseFilter(text string) filter {
	f := filter{text: text}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		name, value, ok := strings.Cut(word, ":")
		if !ok {
			f.terms = append(f.terms, term{"", word})
			continue
		}
		f.terms = append(f.terms, term{name, value})
		if f.hint == "" {
			f.hint = meantFilter(name, value)
		}
	}
	return f
}

// meantFilter is what was meant by a field or value that isn't one, or "".
func meantFilter(name, value string) string {
	var names []string
	for _, field := range filterFields {
		names = append(names, field.name)
		if field.name != name {
			continue
		}
		for _, known := range field.values {
			if strings.HasPrefix(known, value) {
				return ""
			}
		}
		return nearest(value, field.values)
	}
	return nearest(name, names)
}

func nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := editDistance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

func (f filter) empty() bool { return len(f.terms) == 0 }

func (f filter) match(sb engine.Sandbox) bool {
	for _, t := range f.terms {
		if !t.match(sb) {
			return false
		}
	}
	return true
}

func (t term) match(sb engine.Sandbox) bool {
	switch t.field {
	case "":
		return fuzzy(strings.ToLower(sb.Name), t.value) || strings.HasPrefix(string(sb.ID), t.value) ||
			strings.Contains(strings.ToLower(sb.Owner), t.value)
	case "health":
		return strings.HasPrefix(string(sb.Health), t.value)
	case "life":
		return strings.HasPrefix(string(sb.State), t.value)
	case "owner":
		return strings.Contains(strings.ToLower(sb.Owner), t.value)
	case "template":
		return strings.Contains(strings.ToLower(sb.Template), t.value)
	case "label":
		return matchLabel(sb.Labels, t.value)
	}
	return false
}

func matchLabel(labels map[string]string, want string) bool {
	key, value, exact := strings.Cut(want, "=")
	for k, v := range labels {
		if !strings.HasPrefix(strings.ToLower(k), key) {
			continue
		}
		if !exact || strings.HasPrefix(strings.ToLower(v), value) {
			return true
		}
	}
	return false
}

// fuzzy reports whether the letters of want come in s in their order.
func fuzzy(s, want string) bool {
	for _, r := range want {
		i := strings.IndexRune(s, r)
		if i < 0 {
			return false
		}
		s = s[i+len(string(r)):]
	}
	return true
}

// none says that nothing matches, and what was probably meant.
func (f filter) none(total int) string {
	s := fmt.Sprintf("0 of %d match `%s`", total, f.text)
	if f.hint != "" {
		s += " — did you mean " + f.hint + "?"
	}
	return s + " Esc clears"
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			swap := 1
			if a[i] == b[j] {
				swap = 0
			}
			last, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, last+swap)
		}
	}
	return row[len(b)]
}
