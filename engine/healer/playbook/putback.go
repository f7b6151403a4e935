package playbook

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// putBack writes a file again that git or the last good checkpoint has, that
// is missing, and that the log names.
type putBack struct{}

func (putBack) Name() string { return "put back" }
func (putBack) Edits() bool  { return true }

func (putBack) Applies(ev Evidence) (string, bool) {
	named := namedMissing(ev)
	if len(named) == 0 {
		return "", false
	}
	m := named[0]
	why := fmt.Sprintf("the log names %s, which is missing; %s has it", m.Path, m.Source())
	if more := len(named) - 1; more > 0 {
		why += fmt.Sprintf(" (and %d more)", more)
	}
	return why, true
}

func (putBack) Apply(ctx context.Context, ev Evidence, w Workbench) error {
	var errs []error
	for _, m := range namedMissing(ev) {
		if err := w.PutBack(ctx, m); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return w.Restart(ctx)
}

func namedMissing(ev Evidence) []Missing {
	var named []Missing
	for _, m := range ev.Missing {
		if Names(ev.Log, m.Path) {
			named = append(named, m)
		}
	}
	return named
}

// Names reports whether a log speaks of a file: by its path, its base name, as
// an import without its extension, or as a dotted Python module.
func Names(log, file string) bool {
	base := path.Base(file)
	if hasWord(log, file) || hasWord(log, base) {
		return true
	}
	ext := path.Ext(base)
	bare := strings.TrimSuffix(file, ext)
	if stem := path.Base(bare); ext != "" && len(stem) > 1 && hasWord(log, "/"+stem) {
		return true // './routes' for routes.js
	}
	return ext == ".py" && (hasWord(log, "'"+strings.ReplaceAll(bare, "/", ".")+"'") ||
		hasWord(log, "'"+strings.ReplaceAll(strings.TrimSuffix(bare, "/__init__"), "/", ".")+"'"))
}

// hasWord finds word where no letter, digit or dash goes on before or after it.
func hasWord(s, word string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		before := i == 0 || !wordByte(s[i-1]) || !wordByte(word[0])
		after := end == len(s) || !wordByte(s[end]) && !dotted(s[end:])
		if before && after {
			return true
		}
		from = i + 1
	}
}

func wordByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// dotted reports whether a name goes on: ".bak", but not the full stop of a
// sentence.
func dotted(rest string) bool { return len(rest) > 1 && rest[0] == '.' && wordByte(rest[1]) }
