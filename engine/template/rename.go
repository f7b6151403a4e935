package template

import (
	"io/fs"
	"strings"
)

// A directory with a go.mod in it is another module, and can't be embedded:
// such a file lies in the binary under a name of its own.
const (
	moduleFile = "go.mod"
	storedFile = "go.mod.txt"
)

// renamed shows files under the names that they should have.
type renamed struct{ files fs.FS }

func (r renamed) Open(name string) (fs.File, error) {
	return r.files.Open(stored(name))
}

func (r renamed) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.files, name)
	for i, e := range entries {
		if e.Name() == storedFile {
			entries[i] = entry{e}
		}
	}
	return entries, err
}

func stored(name string) string {
	if dir, ok := strings.CutSuffix(name, moduleFile); ok && (dir == "" || strings.HasSuffix(dir, "/")) {
		return dir + storedFile
	}
	return name
}

type entry struct{ fs.DirEntry }

func (e entry) Name() string { return moduleFile }
