package local

import (
	"bytes"
	"context"
	"iter"
	"path"
	"regexp"
	"strings"

	"sbx/engine"
	"sbx/engine/driver"
)

// maxFoundLine is how much of a line that was found is told.
const maxFoundLine = 400

// Find yields files by name and lines by text, in the order of a walk.
func (e *Engine) Find(ctx context.Context, q engine.FindQuery) iter.Seq2[engine.Found, error] {
	return func(yield func(engine.Found, error) bool) {
		f, err := newFinder(q)
		if err != nil {
			yield(engine.Found{}, err)
			return
		}
		b, err := e.box(ctx, q.Sandbox)
		if err != nil {
			yield(engine.Found{}, err)
			return
		}
		err = b.Files().Walk(ctx, f.dir, func(name string, fi engine.FileInfo) bool {
			if !fi.Mode.IsRegular() || !f.named(name) || later(f.after.Name, name) {
				return false
			}
			for found := range f.in(ctx, b.Files(), name, fi) {
				f.left--
				if !yield(found, nil) {
					f.stopped = true
				}
				if f.stopped || f.left == 0 {
					return true
				}
			}
			return false
		})
		if err != nil && !f.stopped {
			yield(engine.Found{}, err)
		}
	}
}

// finder is a query that was understood.
type finder struct {
	dir, name string
	text      *regexp.Regexp // nil: files are found
	after     engine.FindPosition
	left      int
	stopped   bool
}

func newFinder(q engine.FindQuery) (*finder, error) {
	f := &finder{dir: q.Dir, name: strings.ToLower(q.Name), after: q.After, left: q.Limit}
	if f.dir == "" {
		f.dir = "."
	}
	if f.left <= 0 || f.left > engine.MaxFound {
		f.left = engine.MaxFound
	}
	if _, err := path.Match(f.name, ""); err != nil {
		return nil, engine.Errorf(engine.Invalid, "%.80q is no pattern for names", q.Name).WithHint("an example is *.go")
	}
	if q.Text == "" {
		return f, nil
	}
	expr := q.Text
	if !q.Regexp {
		expr = regexp.QuoteMeta(expr)
	}
	if q.Fold {
		expr = "(?i)" + expr
	}
	var err error
	if f.text, err = regexp.Compile(expr); err != nil {
		return nil, engine.Errorf(engine.Invalid, "%.80q is no regular expression: %w", q.Text, err)
	}
	return f, nil
}

// named reports whether a file's name is one that is looked for.
func (f *finder) named(name string) bool {
	if f.name == "" {
		return true
	}
	name = strings.ToLower(name)
	whole, _ := path.Match(f.name, name) // the pattern was checked
	base, _ := path.Match(f.name, path.Base(name))
	return whole || base || strings.Contains(name, f.name)
}

// later reports whether a walk comes by a after b.
func later(a, b string) bool {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if x != y {
			return x > y
		}
		if !moreA || !moreB {
			return moreA && !moreB
		}
		a, b = restA, restB
	}
}

// in yields what is found in one file. A file that can't be read has nothing:
// somebody is at work on it.
func (f *finder) in(ctx context.Context, files driver.Files, name string, fi engine.FileInfo) iter.Seq[engine.Found] {
	return func(yield func(engine.Found) bool) {
		found := engine.Found{FindPosition: engine.FindPosition{Name: name}, Size: fi.Size}
		if f.text == nil {
			if f.after.Name != name {
				yield(found)
			}
			return
		}
		if fi.Size > engine.MaxFile {
			return
		}
		file, err := files.ReadFile(ctx, name, 0, 0)
		if err != nil || bytes.IndexByte(file.Data[:min(len(file.Data), 8000)], 0) >= 0 {
			return
		}
		for line := range bytes.Lines(file.Data) {
			found.Line++
			line = bytes.TrimRight(line, "\r\n")
			at := f.text.FindIndex(line)
			if at == nil || f.after.Name == name && found.Line <= f.after.Line {
				continue
			}
			found.Text = cutAround(line, at[0])
			if !yield(found) {
				return
			}
		}
	}
}

// cutAround is a line, or the part of a long one that begins soon before at.
func cutAround(line []byte, at int) string {
	if len(line) > maxFoundLine {
		from := max(0, min(at-40, len(line)-maxFoundLine))
		line = line[from : from+maxFoundLine]
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}
