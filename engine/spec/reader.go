package spec

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/engine"
)

// reader turns a document's values into a spec and keeps what is wrong.
type reader struct {
	lines  map[string]int
	faults []fault
}

// fault is one mistake.
type fault struct {
	line int
	key  string
	what string
	// missing: something isn't there, perhaps since its name is misspelt.
	missing bool
}

func (f fault) in(file string) error {
	if f.line > 0 {
		file += ":" + strconv.Itoa(f.line)
	}
	return engine.Errorf(engine.Invalid, "%s: %s: %s", file, f.key, f.what)
}

// first is the mistake that stands first in the file, since people mend from
// the top; what is missing comes last, since another mistake may explain it.
func (r *reader) first() (fault, bool) {
	if len(r.faults) == 0 {
		return fault{}, false
	}
	return slices.MinFunc(r.faults, func(a, b fault) int {
		if a.missing != b.missing {
			if b.missing {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.line, b.line)
	}), true
}

// fail notes a mistake at path, or at the nearest table above that has a line.
func (r *reader) fail(path, format string, args ...any) {
	line, at := r.lines[path], path
	for line == 0 && strings.Contains(at, ".") {
		at = at[:strings.LastIndexByte(at, '.')]
		line = r.lines[at]
	}
	r.faults = append(r.faults, fault{line: line, key: shown(path), what: fmt.Sprintf(format, args...)})
}

// missing notes that there is nothing at path.
func (r *reader) missing(path, what string) {
	r.fail(path, "is missing: %s", what)
	r.faults[len(r.faults)-1].missing = true
}

// shown is a path as people write it: without the numbers of tables.
func shown(path string) string {
	parts := strings.Split(path, ".")
	if len(parts) > 1 && parts[0] == "process" {
		parts = slices.Delete(parts, 1, 2)
	}
	return strings.Join(parts, ".")
}

// table is a value that must be a table with none but the known keys.
func (r *reader) table(path string, v any, known ...string) map[string]any {
	t, ok := v.(map[string]any)
	if !ok && v != nil {
		r.fail(path, "must be a table, not %s", kind(v))
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if !slices.Contains(known, key) {
			r.unknown(join(path, key), key, known)
		}
	}
	return t
}

func (r *reader) unknown(path, key string, known []string) {
	if near := nearest(key, known); near != "" {
		r.fail(path, "no such key; did you mean %s?", near)
		return
	}
	r.fail(path, "no such key; there are: %s", strings.Join(known, ", "))
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// text is a string, or "" where there is none.
func (r *reader) text(path string, v any) string {
	s, ok := v.(string)
	switch {
	case v == nil:
	case !ok:
		r.fail(path, "must be a string in quotes, not %s", kind(v))
	case strings.ContainsRune(s, 0):
		r.fail(path, "has a NUL character")
	}
	return s
}

// number is an integer between least and most.
func (r *reader) number(path string, v any, def, least, most int) int {
	if v == nil {
		return def
	}
	n, ok := v.(int64)
	switch {
	case !ok:
		r.fail(path, "must be a whole number, not %s", kind(v))
	case n < int64(least) || n > int64(most):
		r.fail(path, "%d is out of range: %d to %d", n, least, most)
	}
	return int(n)
}

// maxDuration keeps a slip of the unit from switching something off for good.
const maxDuration = 24 * time.Hour

func (r *reader) duration(path string, v any, def, least time.Duration) engine.Duration {
	var d engine.Duration
	s, ok := v.(string)
	switch {
	case v == nil:
		return engine.Duration(def)
	case !ok:
		r.fail(path, "%s", notA("duration", v, `"90s", "5m" or "1h30m"`))
		return 0
	}
	if err := d.UnmarshalText([]byte(s)); err != nil {
		r.fail(path, "%s", err)
	} else if d.D() < least || d.D() > maxDuration {
		r.fail(path, "%s is out of range: %s to %s", s, least, maxDuration)
	}
	return d
}

// size is a number of bytes; zero, or what it must be at least.
func (r *reader) size(path string, v any, least engine.Size) engine.Size {
	const most = 1024 * engine.TiB
	var n engine.Size
	s, ok := v.(string)
	switch {
	case v == nil:
		return 0
	case !ok:
		r.fail(path, "%s", notA("size", v, `"512MiB" or "2GiB"`))
		return 0
	}
	if err := n.UnmarshalText([]byte(s)); err != nil {
		r.fail(path, "%s", err)
	} else if n != 0 && (n < least || n > most) {
		r.fail(path, "%s is out of range: %s to %s, or 0 for no limit", s, least, most)
	}
	return n
}

func notA(what string, v any, examples string) string {
	return fmt.Sprintf("%v is not a %s: write it as %s", v, what, examples)
}

// cores is a number of processors; zero is no limit.
func (r *reader) cores(path string, v any) float64 {
	const least, most = 0.01, 1024
	var n float64
	switch v := v.(type) {
	case nil:
		return 0
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		r.fail(path, "must be a number, not %s", kind(v))
		return 0
	}
	if n != 0 && (math.IsNaN(n) || n < least || n > most) {
		r.fail(path, "%v is out of range: %v to %v, or 0 for no limit", n, least, most)
	}
	return n
}

// texts is an array of strings.
func (r *reader) texts(path string, v any) []string {
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		r.fail(path, "must be an array of strings, not %s", kind(v))
	}
	var out []string
	for _, e := range list {
		out = append(out, r.text(path, e))
	}
	return out
}

// kind is what TOML calls a value.
func kind(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
