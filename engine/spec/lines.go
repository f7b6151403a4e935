package spec

import (
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines knows on which line each key of a document stands. Keys are paths with
// dots; a table of an array has its number in it: process.0.command.
func lines(data []byte) map[string]int {
	ix := index{lines: map[string]int{}, tables: map[string]int{}}
	ix.parser.Reset(data)
	var prefix []string
	for ix.parser.NextExpression() {
		switch e := ix.parser.Expression(); e.Kind {
		case unstable.Table:
			prefix = ix.key(nil, e)
		case unstable.ArrayTable:
			prefix = ix.key(nil, e)
			name := strings.Join(prefix, ".")
			prefix = append(prefix, strconv.Itoa(ix.tables[name]))
			ix.tables[name]++
			ix.lines[strings.Join(prefix, ".")] = ix.lines[name]
		case unstable.KeyValue:
			ix.value(ix.key(prefix, e), e.Value())
		}
	}
	return ix.lines
}

type index struct {
	parser unstable.Parser
	lines  map[string]int
	tables map[string]int // of each array so far
}

// key notes the line of an expression's key, and returns its path.
func (ix *index) key(prefix []string, e *unstable.Node) []string {
	path := append([]string(nil), prefix...)
	line := 0
	for parts := e.Key(); parts.Next(); {
		n := parts.Node()
		path = append(path, string(n.Data))
		if line == 0 {
			line = ix.parser.Shape(n.Raw).Start.Line
		}
		ix.lines[strings.Join(path, ".")] = line
	}
	return path
}

// value notes the keys inside a value.
func (ix *index) value(path []string, v *unstable.Node) {
	number := 0
	for kids := v.Children(); kids.Next(); {
		switch kid := kids.Node(); {
		case kid.Kind == unstable.KeyValue:
			ix.value(ix.key(path, kid), kid.Value())
		case v.Kind == unstable.Array && kid.Kind == unstable.InlineTable:
			inside := append(append([]string(nil), path...), strconv.Itoa(number))
			ix.lines[strings.Join(inside, ".")] = ix.lines[strings.Join(path, ".")]
			ix.value(inside, kid)
			number++
		}
	}
}
