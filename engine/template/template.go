// Package template holds the trees that new workspaces begin with: those in
// the binary and those of the user.
//
// The one rule: a template is regular files with an sbx.toml among them.
package template

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sbx/engine"
)

//go:embed all:_files
var embedded embed.FS

// specFile must be in every template.
const specFile = "sbx.toml"

// What a template may hold at most: it is read whole to know its revision.
const (
	maxFiles = 10_000
	maxBytes = 64 << 20
)

// Template is a tree for new workspaces.
type Template struct {
	Name string
	// Summary is the comment that its sbx.toml begins with.
	Summary string
	// Revision names the content: it changes when a file does.
	Revision string
	Files    fs.FS
}

// List is the templates in the binary, by name.
func List() []Template {
	var list []Template
	for _, name := range embeddedNames() {
		t, err := read(name, inBinary(name))
		if err != nil {
			panic("template: " + err.Error()) // what was built in can be read
		}
		list = append(list, t)
	}
	return list
}

// Open finds a template: the user's own, a directory of its name in userDir,
// before the binary's. userDir may be "" or not exist.
func Open(name, userDir string) (Template, error) {
	if !isName(name) {
		return Template{}, notFound(name, userDir)
	}
	if userDir != "" {
		t, err := openUser(name, filepath.Join(userDir, name))
		if err == nil || !os.IsNotExist(err) {
			return t, err
		}
	}
	if slices.Contains(embeddedNames(), name) {
		return read(name, inBinary(name))
	}
	return Template{}, notFound(name, userDir)
}

// Names are the names of all templates, sorted, the user's among them.
func Names(userDir string) []string {
	names := embeddedNames()
	entries, _ := os.ReadDir(userDir) // what can't be read has no templates
	for _, e := range entries {
		if isName(e.Name()) && isDir(filepath.Join(userDir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func notFound(name, userDir string) error {
	return engine.Errorf(engine.NotFound, "there is no template %q", name).
		WithHint("there are: %s", strings.Join(Names(userDir), ", "))
}

// openUser reads a template of the user's. Nothing outside its directory is
// followed to; the directory itself may be a link.
func openUser(name, dir string) (Template, error) {
	if !isDir(dir) {
		return Template{}, fs.ErrNotExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Template{}, engine.Errorf(engine.Invalid, "template %s: %w", name, err)
	}
	return read(name, root.FS()) // which keeps root open as long as it is used
}

// read looks at all of a template.
func read(name string, files fs.FS) (Template, error) {
	t := Template{Name: name, Files: files}
	spec, err := fs.ReadFile(files, specFile)
	if err != nil {
		return t, engine.Errorf(engine.Invalid, "template %s has no %s: %w", name, specFile, err)
	}
	if t.Revision, err = revision(files); err != nil {
		return t, engine.Errorf(engine.Invalid, "template %s: %w", name, err)
	}
	t.Summary = summary(spec)
	return t, nil
}

// revision is a hash of every path and content.
func revision(files fs.FS) (string, error) {
	sum, count, total := sha256.New(), 0, int64(0)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		count++
		if total += info.Size(); count > maxFiles || total > maxBytes {
			return fmt.Errorf("it is larger than %d files or %d MiB", maxFiles, maxBytes>>20)
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s\x00%d\x00", name, len(data))
		sum.Write(data)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// summary is the first comment of a spec, up to a line that is none.
func summary(spec []byte) string {
	var words []string
	for lines := bufio.NewScanner(bytes.NewReader(spec)); lines.Scan(); {
		line, ok := strings.CutPrefix(lines.Text(), "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(words, " ")
}

func embeddedNames() []string {
	entries, err := embedded.ReadDir("_files")
	if err != nil {
		panic("template: " + err.Error()) // it was built in
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func inBinary(name string) fs.FS {
	sub, err := fs.Sub(embedded, path.Join("_files", name))
	if err != nil {
		panic("template: " + err.Error()) // the name is one of the binary's
	}
	return renamed{sub}
}

func isDir(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.IsDir()
}

func isName(s string) bool {
	for i, c := range s {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return s != "" && len(s) <= engine.MaxName
}
