package local

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/spec"
	"sbx/engine/template"
	"sbx/store"
)

// found is what an origin turned out to be.
type found struct {
	origin   engine.Origin
	spec     engine.Spec
	template string
	revision string
	base     string // of a made-up name
}

const specFile = "sbx.toml"

// origin looks at where a workspace comes from and reads its spec there, unless
// the request brought one.
func (e *Engine) origin(_ context.Context, b engine.CreateSandbox) (found, error) {
	switch b.Origin.Kind {
	case "", engine.FromTemplate:
		return e.fromTemplate(b)
	case engine.FromCopy, engine.FromAdopted:
		return fromDir(b)
	case engine.FromGit:
		return fromGit(b)
	}
	return found{}, engine.Errorf(engine.Invalid, "no origin %q", b.Origin.Kind).WithHint("use template, from, adopt or git")
}

func (e *Engine) fromTemplate(b engine.CreateSandbox) (found, error) {
	name := b.Origin.Ref
	if name == "" {
		name = "demo"
	}
	t, err := template.Open(name, e.cfg.Templates)
	if err != nil {
		return found{}, err
	}
	f := found{
		origin:   engine.Origin{Kind: engine.FromTemplate, Ref: name},
		template: name, revision: t.Revision, base: name,
	}
	f.spec, err = readSpec(b, func() ([]byte, error) { return fs.ReadFile(t.Files, specFile) }, "template "+name)
	return f, err
}

func fromDir(b engine.CreateSandbox) (found, error) {
	dir := b.Origin.Ref
	if !filepath.IsAbs(dir) {
		return found{}, engine.Errorf(engine.Invalid, "%q is not an absolute path", dir).WithHint("name the directory from the root: /srv/app")
	}
	dir = filepath.Clean(dir)
	switch fi, err := os.Stat(dir); {
	case err != nil:
		return found{}, engine.Errorf(engine.Invalid, "workspace: %w", err).WithHint("the directory must be on the engine's host")
	case !fi.IsDir():
		return found{}, engine.Errorf(engine.Invalid, "%s is not a directory", dir)
	}
	f := found{origin: engine.Origin{Kind: b.Origin.Kind, Ref: dir}, base: filepath.Base(dir)}
	var err error
	f.spec, err = readSpec(b, func() ([]byte, error) { return readSmall(dir, specFile) }, dir)
	return f, err
}

// readSmall reads a file of a directory that may be hostile: no link out of
// it, no device, no endless file.
func readSmall(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular() || fi.Size() > 1<<20:
		return nil, fmt.Errorf("%s is not a regular file of at most 1 MiB", name)
	}
	return root.ReadFile(name)
}

// fromGit can't look into a repository before it is cloned: it needs a spec.
func fromGit(b engine.CreateSandbox) (found, error) {
	f := found{origin: b.Origin, base: strings.TrimSuffix(filepath.Base(b.Origin.Ref), ".git")}
	if b.SpecTOML == "" {
		return f, engine.Errorf(engine.Invalid, "a repository's own %s can't be read before it is cloned", specFile).
			WithHint("pass it with --spec FILE, or clone it yourself and use --from DIR")
	}
	var err error
	f.spec, err = readSpec(b, nil, b.Origin.Ref)
	return f, err
}

func readSpec(b engine.CreateSandbox, own func() ([]byte, error), where string) (engine.Spec, error) {
	if b.SpecTOML != "" {
		file := b.File
		if file == "" {
			file = specFile
		}
		return spec.Parse(file, []byte(b.SpecTOML))
	}
	data, err := own()
	if err != nil {
		return engine.Spec{}, engine.Errorf(engine.Invalid, "no %s in %s: %w", specFile, where, err).
			WithHint("write one, or pass it with --spec FILE; sbx create --template node shows what one looks like")
	}
	return spec.Parse(specFile, data)
}

// unpack is how the pool fills a workspace from a template.
func (e *Engine) unpack(name string) (func(driver.FileWriter) error, error) {
	t, err := template.Open(name, e.cfg.Templates)
	if err != nil {
		return nil, err
	}
	return func(w driver.FileWriter) error {
		return fs.WalkDir(t.Files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(t.Files, path)
			if err != nil {
				return err
			}
			mode := uint32(0o644)
			if strings.HasPrefix(string(data), "#!") {
				mode = 0o755 // an embedded file has lost its executable bit
			}
			return w.WriteFile(path, mode, data)
		})
	}, nil
}

// freeName is the name asked for, if it is free, or one made up from where the
// workspace comes from: node, node-2, node-3.
func freeName(tx *store.Tx, b engine.CreateSandbox, f found) (string, error) {
	if b.Name != "" {
		other, taken, err := tx.SandboxNamed(b.Name)
		if taken {
			return "", engine.Errorf(engine.Conflict, "the name %q is taken by %s", b.Name, other.ID).
				WithHint("choose another name, or remove it: sbx rm %s", other.ID)
		}
		return b.Name, err
	}
	base := f.base
	if engine.CheckName(base) != nil || utf8.RuneCountInString(base) > engine.MaxName-8 {
		base = "sandbox"
	}
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		if _, taken, err := tx.SandboxNamed(name); !taken || err != nil {
			return name, err
		}
	}
}

func checkLabels(labels map[string]string) error {
	if len(labels) > 64 {
		return engine.Errorf(engine.Invalid, "%d labels are too many: 64 is the most", len(labels))
	}
	for k, v := range labels {
		if engine.CheckName(k) != nil || strings.Contains(k, "=") || len(v) > 256 || v != "" && engine.CheckName(v) != nil {
			return engine.Errorf(engine.Invalid, "label %q=%q can't be used", k, v).
				WithHint("keys and values are short visible text: --label team=web")
		}
	}
	return nil
}
