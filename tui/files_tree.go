package tui

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"sbx/engine"
)

// rebuildable are directories that install makes: shown, never opened by
// themselves.
var rebuildable = []string{"node_modules", ".venv", "__pycache__", ".git", "dist", ".next"}

// tree is a workspace's directories, as far as they were looked into.
type tree struct {
	dirs   map[string][]engine.FileInfo // by path; "" is the workspace
	open   map[string]bool
	hidden bool   // names that begin with a dot show, too
	filter string // only paths with this in them
}

// leaf is a row of the tree.
type leaf struct {
	path  string
	depth int
	info  engine.FileInfo
}

func newTree() tree {
	return tree{dirs: map[string][]engine.FileInfo{}, open: map[string]bool{"": true}, hidden: true}
}

// put takes what a directory holds: directories first, then by name.
func (t *tree) put(dir string, list []engine.FileInfo) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b engine.FileInfo) int {
		if a.Mode.IsDir() != b.Mode.IsDir() {
			if a.Mode.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Name, b.Name))
	})
	t.dirs[dir] = list
}

// rows are what shows, from the top.
func (t *tree) rows() []leaf {
	var list []leaf
	t.walk("", 0, &list)
	if t.filter == "" {
		return list
	}
	want := strings.ToLower(t.filter)
	return slices.DeleteFunc(list, func(l leaf) bool { return !strings.Contains(strings.ToLower(l.path), want) })
}

func (t *tree) walk(dir string, depth int, list *[]leaf) {
	for _, info := range t.dirs[dir] {
		if !t.hidden && strings.HasPrefix(info.Name, ".") {
			continue
		}
		name := path.Join(dir, info.Name)
		*list = append(*list, leaf{name, depth, info})
		if info.Mode.IsDir() && t.open[name] {
			t.walk(name, depth+1, list)
		}
	}
}

// wanted are the open directories that were not looked into yet.
func (t *tree) wanted() []string {
	var list []string
	for dir := range t.open {
		if _, ok := t.dirs[dir]; !ok {
			list = append(list, dir)
		}
	}
	slices.Sort(list)
	return list
}
