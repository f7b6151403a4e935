package tui

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// files is the fourth tab: the workspace as a tree, and the file that was
// opened. Looking never wakes a sandbox.
type files struct {
	w             *world
	c             *commands
	width, height int
	id            engine.SandboxID

	tree   tree
	cursor string // a path of the tree
	place  int
	top    int
	err    error
	asked  map[string]bool // directories that were asked for
	change map[string]engine.ChangeKind
	good   engine.Checkpoint
	patch  string

	onView bool // the file has the focus
	view   viewed
	edit   *editor
	// unsaved are the tabs of other sandboxes in which something was typed.
	unsaved map[engine.SandboxID]*files
	found   *foundMsg // a search in all files, shown instead of the tree
	hit     int       // of found

	input  textinput.Model
	asking rune // '/' or '&'
}

// viewed is the file that is open.
type viewed struct {
	name    string
	file    engine.File
	lines   []string // nil: not text
	part    bool
	err     error
	loading bool
	top     int
	diff    bool
	goTo    int // a line to show once it is there
}

func newFiles(w *world, c *commands) *files {
	in := textinput.New()
	in.Prompt, in.CharLimit = "", 200
	return &files{w: w, c: c, tree: newTree(), asked: map[string]bool{}, input: in, unsaved: map[engine.SandboxID]*files{}}
}

func (f *files) show(id engine.SandboxID) tea.Cmd {
	if id != f.id {
		fresh := newFiles(f.w, f.c)
		fresh.width, fresh.height, fresh.id, fresh.unsaved = f.width, f.height, id, f.unsaved
		if f.edit != nil && f.edit.dirty() {
			mine := *f
			fresh.unsaved[f.id] = &mine
		}
		if mine := fresh.unsaved[id]; mine != nil { // nothing that was typed is lost by looking elsewhere
			delete(fresh.unsaved, id)
			fresh = mine
			fresh.width, fresh.height = f.width, f.height
		}
		*f = *fresh
	}
	return tea.Batch(f.load(), f.c.changes(f.id))
}

func (f *files) hide() {}

// load asks for the directories that are open and not known.
func (f *files) load() tea.Cmd {
	var cmds []tea.Cmd
	for _, dir := range f.tree.wanted() {
		if !f.asked[dir] {
			f.asked[dir] = true
			cmds = append(cmds, f.c.readDir(f.id, dir))
		}
	}
	return tea.Batch(cmds...)
}

// refresh asks for everything that shows again.
func (f *files) refresh() tea.Cmd {
	var cmds []tea.Cmd
	for dir := range f.tree.open {
		cmds = append(cmds, f.c.readDir(f.id, dir))
	}
	if f.view.name != "" && f.edit == nil {
		cmds = append(cmds, f.c.readFile(f.id, f.view.name, f.view.file.Size))
	}
	return tea.Batch(append(cmds, f.c.changes(f.id))...)
}

// SetSize is the size of the tab.
func (f *files) SetSize(width, height int) { f.width, f.height = width, height }

// Typing reports whether a name, a text or a file is being typed.
func (f *files) Typing() bool { return f.input.Focused() || f.edit != nil && f.edit.typing }

// ShortHelp are the keys of the footer.
func (f *files) ShortHelp() []key.Binding {
	k := f.w.keys
	switch {
	case f.input.Focused():
		return []key.Binding{as(k.Open, "keep"), as(k.Back, "clear")}
	case f.edit != nil && f.edit.typing:
		return []key.Binding{bind("ctrl+s", "save"), as(k.Back, "stop typing")}
	case f.edit != nil:
		return []key.Binding{as(k.SaveFile, "save"), as(k.Type, "type"), as(k.Diff, "diff"), as(k.Back, "leave")}
	}
	return []key.Binding{as(k.Open, "open"), k.EditFile, as(k.Find, "find name"), as(k.Only, "find text"), k.Diff, k.NewFile, k.Rename, k.Delete, as(k.Save, "download"), k.Upload, k.UndoFile}
}

// FullHelp are the keys of the help.
func (f *files) FullHelp() [][]key.Binding { return [][]key.Binding{f.w.keys.ofFiles().keys} }

// Update takes what was read and answers keys.
func (f *files) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case dirMsg:
		return f.dir(msg)
	case fileMsg:
		f.opened(msg)
	case changesMsg:
		f.changed(msg)
	case foundMsg:
		if msg.id == f.id {
			f.found, f.hit, f.onView = &msg, 0, false
		}
	case savedFileMsg:
		return f.saved(msg)
	case tea.PasteMsg:
		switch {
		case f.edit != nil && f.edit.typing:
			f.edit.paste(msg.Content)
		case f.input.Focused():
			f.input, _ = f.input.Update(msg)
		}
	case tea.KeyPressMsg:
		switch {
		case f.input.Focused():
			return f.typed(msg)
		case f.edit != nil:
			return f.edited(msg)
		}
		return f.pressed(msg)
	}
	return nil
}

func (f *files) dir(msg dirMsg) tea.Cmd {
	if msg.id != f.id {
		return nil
	}
	delete(f.asked, msg.dir)
	if msg.err != nil {
		if msg.dir == "" {
			f.err = msg.err
			return nil
		}
		delete(f.tree.open, msg.dir)
		return func() tea.Msg { return notice{themes.Error, msg.err.Error()} }
	}
	if msg.dir == "" {
		f.err = nil
	}
	f.tree.put(msg.dir, msg.list)
	return f.load()
}

func (f *files) changed(msg changesMsg) {
	if msg.id != f.id || msg.err != nil {
		return
	}
	f.good, f.patch = msg.good, msg.diff.Patch
	f.change = map[string]engine.ChangeKind{}
	for _, c := range msg.diff.Changes {
		f.change[c.Path] = c.Status
		for dir := path.Dir(c.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			f.change[dir] = engine.Modified
		}
	}
}

// opened takes a file's content.
func (f *files) opened(msg fileMsg) {
	if msg.id != f.id || msg.name != f.view.name {
		return
	}
	v := &f.view
	v.loading, v.file, v.part, v.err, v.lines = false, msg.file, msg.part, msg.err, nil
	data := msg.file.Data
	if msg.err == nil && !bytes.ContainsRune(data[:min(len(data), 8000)], 0) && (msg.part || utf8.Valid(data)) {
		v.lines = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
	if v.goTo > 0 {
		v.top = max(0, v.goTo-1-f.height/3)
		v.goTo = 0
	}
}

// look opens a file, at a line if one is meant.
func (f *files) look(name string, size int64, line int) tea.Cmd {
	top := 0
	if f.view.name == name {
		top = f.view.top
	}
	f.view = viewed{name: name, loading: true, top: top, goTo: line}
	f.onView = true
	return f.c.readFile(f.id, name, size)
}

// at is the row under the cursor.
func (f *files) at() (leaf, bool) {
	rows := f.tree.rows()
	for i, l := range rows {
		if l.path == f.cursor {
			f.place = i
			return l, true
		}
	}
	if len(rows) == 0 {
		return leaf{}, false
	}
	f.place = max(0, min(f.place, len(rows)-1))
	f.cursor = rows[f.place].path
	return rows[f.place], true
}

func (f *files) move(by int) {
	switch {
	case f.onView:
		f.view.top = max(0, f.view.top+by)
	case f.found != nil:
		f.hit = max(0, min(f.hit+by, len(f.found.list)-1))
	default:
		f.at()
		rows := f.tree.rows()
		if len(rows) > 0 {
			f.place = max(0, min(f.place+by, len(rows)-1))
			f.cursor = rows[f.place].path
		}
	}
}

func (f *files) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := f.w.keys
	page := max(1, f.height-3)
	switch {
	case key.Matches(msg, k.Down):
		f.move(1)
	case key.Matches(msg, k.Up):
		f.move(-1)
	case key.Matches(msg, k.HalfDown):
		f.move(page / 2)
	case key.Matches(msg, k.HalfUp):
		f.move(-page / 2)
	case key.Matches(msg, k.PageDown):
		f.move(page)
	case key.Matches(msg, k.PageUp):
		f.move(-page)
	case key.Matches(msg, k.Top):
		f.move(-1 << 30)
	case key.Matches(msg, k.Bottom):
		f.move(f.last())
	case key.Matches(msg, k.NextPane, k.PrevPane):
		f.onView = !f.onView && f.view.name != ""
	case key.Matches(msg, k.Open, k.Right):
		return f.enter()
	case key.Matches(msg, k.Left):
		f.up()
	case key.Matches(msg, k.Hidden):
		f.tree.hidden = !f.tree.hidden
	case key.Matches(msg, k.Retry):
		return f.refresh()
	default:
		return f.acted(msg)
	}
	return nil
}

// last is how far the end is from anywhere.
func (f *files) last() int {
	if f.onView {
		return max(0, len(f.view.lines)-f.view.top-f.height+4)
	}
	return 1 << 30
}

// enter opens what is under the cursor.
func (f *files) enter() tea.Cmd {
	if f.found != nil && !f.onView {
		if len(f.found.list) == 0 {
			return nil
		}
		hit := f.found.list[f.hit]
		return f.look(hit.Name, hit.Size, hit.Line)
	}
	l, ok := f.at()
	switch {
	case !ok || f.onView:
		return nil
	case l.info.Mode.IsDir():
		f.tree.open[l.path] = true
		return f.load()
	}
	return f.look(l.path, l.info.Size, 0)
}

// up folds a directory, or goes to the one above.
func (f *files) up() {
	if f.onView {
		f.onView = false
		return
	}
	l, ok := f.at()
	if !ok {
		return
	}
	if l.info.Mode.IsDir() && f.tree.open[l.path] {
		delete(f.tree.open, l.path)
		return
	}
	if dir := path.Dir(l.path); dir != "." {
		f.cursor = dir
		delete(f.tree.open, dir)
	}
}

// back undoes one thing: the diff, the file, the search, the filter.
func (f *files) back() bool {
	switch {
	case f.edit != nil:
		return true
	case f.view.diff:
		f.view.diff = false
	case f.onView:
		f.onView = false
	case f.found != nil:
		f.found = nil
	case f.tree.filter != "":
		f.tree.filter = ""
	default:
		return false
	}
	return true
}

// retries: r reads again here.
func (f *files) retries() bool { return true }

// texts are the path under the cursor and the file that is open.
func (f *files) texts() (line, all string) {
	l, _ := f.at()
	return l.path, strings.Join(f.view.lines, "\n")
}
