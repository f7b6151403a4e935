package healer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"sbx/engine"
)

// Bounds of the file tools.
const (
	maxHits     = 200
	maxSearched = 20_000
	maxSearch   = 1 << 20 // of one file
	maxEntries  = 500
)

func (k *kit) read() tool {
	type input struct {
		Path  string `json:"path"`
		From  int    `json:"from"`
		Lines int    `json:"lines"`
	}
	return tool{
		name:  "read",
		about: "Read a text file of the workspace. from is the first line (1 if left out), lines how many.",
		schema: `{"type":"object","properties":{"path":{"type":"string"},"from":{"type":"integer","minimum":1},` +
			`"lines":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			f, err := k.files.ReadFile(ctx, in.Path, 0, 0)
			if err != nil {
				return "", err
			}
			if bytes.IndexByte(f.Data, 0) >= 0 || !utf8.Valid(f.Data) {
				return fmt.Sprintf("%s is no text: %d bytes", in.Path, len(f.Data)), nil
			}
			k.seen[path.Clean(in.Path)] = f.Version
			return excerpt(string(f.Data), in.From, in.Lines), nil
		},
	}
}

// excerpt is lines of text from the line from (1 based), and what is left out.
func excerpt(text string, from, lines int) string {
	if from <= 1 && lines <= 0 {
		if text == "" {
			return "(the file is empty)"
		}
		return text
	}
	all := strings.SplitAfter(text, "\n")
	first := min(max(from, 1)-1, len(all))
	last := len(all)
	if lines > 0 && lines < last-first {
		last = first + lines
	}
	return fmt.Sprintf("(lines %d to %d of %d)\n", first+1, last, len(all)) + strings.Join(all[first:last], "")
}

func (k *kit) write() tool {
	type input struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	return tool{
		name:    "write",
		about:   "Write a whole file, new or existing. An existing one must have been read before.",
		schema:  `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`,
		acts:    true,
		tracked: true,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			if in.Content == nil {
				return "", engine.Errorf(engine.Invalid, "input: content is missing")
			}
			p, err := k.writable(ctx, in.Path)
			if err != nil {
				return "", err
			}
			old, err := k.files.ReadFile(ctx, p, 0, 0)
			if err != nil && engine.AsCode(err) != engine.NotFound {
				return "", err
			}
			text, err := k.replace(ctx, p, old, *in.Content)
			return text, k.noted(planEdit{Path: p, Content: in.Content}, err)
		},
	}
}

// replace writes a file that the model has seen as it is, or that is new.
func (k *kit) replace(ctx context.Context, p string, old engine.File, content string) (string, error) {
	seen, known := k.seen[p]
	switch {
	case old.Version != "" && !known:
		return "", engine.Errorf(engine.Conflict, "%s exists: read it first, so that you know what you replace", p)
	case old.Version != seen:
		return "", changedMeanwhile(p)
	}
	if err := markKept(p, string(old.Data), content); err != nil {
		return "", err
	}
	v, err := k.files.WriteFile(ctx, p, seen, []byte(content))
	if engine.AsCode(err) == engine.Conflict {
		return "", changedMeanwhile(p)
	}
	if err != nil {
		return "", err
	}
	k.seen[p] = v
	k.h.diff = udiff.Unified("a/"+p, "b/"+p, string(old.Data), content)
	return fmt.Sprintf("wrote %s (%d bytes)", p, len(content)), nil
}

func changedMeanwhile(p string) error {
	return engine.Errorf(engine.Conflict, "%s was changed by somebody else since you read it, and is left as they made it: "+
		"read it again and keep their change", p)
}

func (k *kit) edit() tool {
	type input struct {
		Path string  `json:"path"`
		Old  string  `json:"old"`
		New  *string `json:"new"`
		All  bool    `json:"all"`
	}
	return tool{
		name:  "edit",
		about: "Replace old by new in a file. old must occur exactly once, or all must be true.",
		schema: `{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},` +
			`"all":{"type":"boolean"}},"required":["path","old","new"],"additionalProperties":false}`,
		acts:    true,
		tracked: true,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			if in.Old == "" || in.New == nil {
				return "", engine.Errorf(engine.Invalid, "input: old and new are needed, and old must not be empty")
			}
			p, err := k.writable(ctx, in.Path)
			if err != nil {
				return "", err
			}
			f, err := k.files.ReadFile(ctx, p, 0, 0)
			if err != nil {
				return "", err
			}
			switch n := strings.Count(string(f.Data), in.Old); {
			case n == 0:
				return "", engine.Errorf(engine.Invalid, "%s does not contain old: read it and copy the text exactly", p)
			case n > 1 && !in.All:
				return "", engine.Errorf(engine.Invalid, "%s contains old %d times: give more of the text around it, or set all", p, n)
			}
			text, err := k.replace(ctx, p, f, strings.ReplaceAll(string(f.Data), in.Old, *in.New))
			return text, k.noted(planEdit{Path: p, Old: in.Old, New: *in.New}, err)
		},
	}
}

func (k *kit) list() tool {
	type input struct {
		Path string `json:"path"`
	}
	return tool{
		name:   "list",
		about:  `List a directory of the workspace; "." is its root.`,
		schema: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			entries, err := k.files.ReadDir(ctx, orElse(in.Path, "."))
			if err != nil {
				return "", err
			}
			var b strings.Builder
			for i, fi := range entries {
				if i == maxEntries {
					fmt.Fprintf(&b, "… and %d more\n", len(entries)-i)
					break
				}
				b.WriteString(entryLine(fi) + "\n")
			}
			return orElse(b.String(), "(empty)"), nil
		},
	}
}

func entryLine(fi engine.FileInfo) string {
	name := line(fi.Name, maxArgument)
	switch {
	case fi.Mode.IsDir():
		return name + "/"
	case fi.Target != "":
		return name + " -> " + line(fi.Target, maxArgument)
	case fi.Mode&fs.ModeType != 0:
		return name + " (" + fi.Mode.Type().String() + ")"
	}
	return fmt.Sprintf("%s (%d bytes)", name, fi.Size)
}

func (k *kit) search() tool {
	type input struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
	}
	return tool{
		name:  "search",
		about: "Search the workspace's files for a regular expression (RE2), without dependency directories. path narrows it.",
		schema: `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},` +
			`"required":["pattern"],"additionalProperties":false}`,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			if in.Pattern == "" || len(in.Pattern) > 1000 {
				return "", engine.Errorf(engine.Invalid, "input: a pattern of 1 to 1000 characters is needed")
			}
			re, err := regexp.Compile(in.Pattern)
			if err != nil {
				return "", engine.Errorf(engine.Invalid, "pattern: %w", err)
			}
			return k.grep(ctx, re, orElse(in.Path, "."))
		},
	}
}

func (k *kit) grep(ctx context.Context, re *regexp.Regexp, dir string) (string, error) {
	var hits []string
	files := 0
	err := k.files.Walk(ctx, dir, func(name string, fi engine.FileInfo) bool {
		if !fi.Mode.IsRegular() || fi.Size > maxSearch {
			return ctx.Err() != nil
		}
		files++
		f, err := k.files.ReadFile(ctx, name, 0, 0)
		if err != nil || bytes.IndexByte(f.Data, 0) >= 0 {
			return ctx.Err() != nil // gone or unreadable meanwhile, or no text
		}
		n := 0
		for l := range strings.Lines(string(f.Data)) {
			if n++; re.MatchString(l) {
				hits = append(hits, fmt.Sprintf("%s:%d: %s", line(name, maxArgument), n, line(l, maxArgument)))
			}
			if len(hits) >= maxHits {
				return true
			}
		}
		return files >= maxSearched || ctx.Err() != nil
	})
	switch {
	case err != nil:
		return "", err
	case len(hits) == 0:
		return fmt.Sprintf("no match in %d files", files), nil
	case len(hits) >= maxHits:
		hits = append(hits, "… more; narrow the pattern or the path")
	}
	return strings.Join(hits, "\n"), nil
}
