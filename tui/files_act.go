package tui

import (
	"path"
	"path/filepath"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// cant is why files can't be changed now, or "".
func (f *files) cant() string {
	if f.w.link.state != live {
		return "waits for the engine"
	}
	return f.w.cfg.ReadOnly
}

// subject is the path that a key is about: the open file, or what is under the
// cursor.
func (f *files) subject() (name string, dir bool) {
	if f.onView || f.found != nil {
		return f.view.name, false
	}
	l, _ := f.at()
	return l.path, l.info.Mode.IsDir()
}

// acted answers the keys that search, edit and change.
func (f *files) acted(msg tea.KeyPressMsg) tea.Cmd {
	k := f.w.keys
	switch {
	case key.Matches(msg, k.Find):
		return f.ask('/', f.tree.filter)
	case key.Matches(msg, k.Only):
		return f.ask('&', "")
	case key.Matches(msg, k.Diff):
		f.view.diff = !f.view.diff
		f.view.top = 0
		return f.c.changes(f.id)
	}
	if !key.Matches(msg, k.EditFile, k.NewFile, k.Rename, k.Delete, k.Upload, k.UndoFile) {
		return nil
	}
	if why := f.cant(); why != "" {
		return func() tea.Msg { return notice{themes.Warning, msg.String() + ": " + why} }
	}
	switch {
	case key.Matches(msg, k.EditFile):
		return f.startEdit()
	case key.Matches(msg, k.NewFile):
		return f.askNew()
	case key.Matches(msg, k.Rename):
		return f.askRename()
	case key.Matches(msg, k.Delete):
		return f.askDelete()
	case key.Matches(msg, k.Upload):
		return f.askUpload()
	}
	return f.askUndo()
}

func (f *files) ask(what rune, text string) tea.Cmd {
	f.asking = what
	f.input.SetValue(text)
	f.input.CursorEnd()
	f.onView = false
	return f.input.Focus()
}

func (f *files) typed(msg tea.KeyPressMsg) tea.Cmd {
	k := f.w.keys
	switch {
	case key.Matches(msg, k.Back):
		f.input.Blur()
		f.tree.filter = ""
	case key.Matches(msg, k.Open):
		f.input.Blur()
		if text := f.input.Value(); f.asking == '&' && text != "" {
			return f.c.findText(f.id, text)
		}
	default:
		f.input, _ = f.input.Update(msg)
		if f.asking == '/' {
			f.tree.filter = f.input.Value()
		}
	}
	return nil
}

// folder is where a new file goes: the directory under the cursor, or that of
// the file.
func (f *files) folder() string {
	name, dir := f.subject()
	if dir || name == "" {
		return name
	}
	if d := path.Dir(name); d != "." {
		return d
	}
	return ""
}

func (f *files) askNew() tea.Cmd {
	at := f.folder()
	if at != "" {
		at += "/"
	}
	return showing(newAsker(f.w, "New file", "Enter makes it; a name that ends in / is a directory.", at, func(name string) tea.Cmd {
		body := engine.ActionBody(engine.WriteFile{Sandbox: f.id, Name: name})
		if strings.HasSuffix(name, "/") {
			body = engine.MakeDir{Sandbox: f.id, Name: strings.TrimSuffix(name, "/")}
		}
		return f.then(f.c.act("make "+name, body))
	}))
}

func (f *files) askRename() tea.Cmd {
	name, _ := f.subject()
	if name == "" {
		return nil
	}
	return showing(newAsker(f.w, "Rename "+name, "Enter renames it. What is there already is not replaced.", name, func(to string) tea.Cmd {
		if to == name {
			return nil
		}
		return f.then(f.c.act("rename "+name, engine.RenameFile{Sandbox: f.id, From: name, To: to}))
	}))
}

func (f *files) askDelete() tea.Cmd {
	name, dir := f.subject()
	if name == "" {
		return nil
	}
	d := newDialog(f.w, "Delete "+name+"?")
	do := func() tea.Cmd {
		return f.then(f.c.act("delete "+name, engine.RemoveFile{Sandbox: f.id, Name: name, Recursive: dir}))
	}
	d.say(themes.Text, f.w.keys.UndoFile.Help().Key+" brings it back, as long as nothing else changes the files.")
	if dir {
		d.say(themes.Warning, "It is a directory: all that is in it goes, too. Type its name.")
		d.demand(path.Base(name), "delete", do)
	} else {
		d.offer("y", "delete it", do)
	}
	return showing(d)
}

func (f *files) askUpload() tea.Cmd {
	at := f.folder()
	return showing(newAsker(f.w, "Upload into /"+at, "A local file. What is there already is not replaced.", "", func(from string) tea.Cmd {
		return f.then(f.c.upload(f.id, from, path.Join(at, filepath.Base(from))))
	}))
}

// askDownload asks for the local name.
func (f *files) askDownload() tea.Cmd {
	name, dir := f.subject()
	if name == "" {
		return nil
	}
	local := fileName(path.Base(name))
	if dir {
		local += ".tar"
	}
	return showing(newAsker(f.w, "Download "+name, "A file that is there is not overwritten.", local, func(to string) tea.Cmd {
		return f.c.download(f.id, name, to)
	}))
}

func (f *files) askUndo() tea.Cmd {
	d := newDialog(f.w, "Undo the last change of files?")
	d.say(themes.Text, "What an operator did last to the files here is taken back: a save, a rename, a deletion, an upload, a rollback. A file that moved on since refuses it.")
	d.offer("y", "undo it", func() tea.Cmd { return f.then(f.c.act("undo", engine.Undo{Sandbox: f.id})) })
	return showing(d)
}

// then reads again once a change was accepted.
func (f *files) then(cmd tea.Cmd) tea.Cmd {
	id := f.id
	return func() tea.Msg {
		msg := cmd()
		if done, ok := msg.(actionMsg); ok {
			return filesChangedMsg{id, done}
		}
		return msg
	}
}

// filesChangedMsg is how an action that changes files was received.
type filesChangedMsg struct {
	id     engine.SandboxID
	action actionMsg
}
