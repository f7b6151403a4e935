package tui

import (
	"context"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// editor edits the file that is open. What is saved replaces the version that
// was read; a file that changed meanwhile is not overwritten.
type editor struct {
	name     string
	replaces engine.Version
	was      string
	input    textarea.Model
	typing   bool
	saving   bool
	leaving  bool // unsaved, and asked about
}

// startEdit opens the editor on the file that is open, or under the cursor.
func (f *files) startEdit() tea.Cmd {
	name, dir := f.subject()
	if name == "" || dir {
		return nil
	}
	if f.view.name != name {
		l, _ := f.at()
		return f.look(name, l.info.Size, 0) // then e again
	}
	v := &f.view
	switch {
	case v.loading:
		return nil
	case v.lines == nil || v.part:
		return func() tea.Msg {
			return notice{themes.Warning, "only text of at most 1 MB is edited here: > downloads it"}
		}
	}
	text := string(v.file.Data)
	in := textarea.New()
	in.Prompt, in.ShowLineNumbers, in.CharLimit, in.MaxHeight = "", false, 0, 0
	in.SetWidth(100_000) // lines are not wrapped: what is saved is what was read
	in.SetValue(text)
	in.MoveToBegin()
	for range v.top {
		in.CursorDown()
	}
	if in.Value() != text {
		return func() tea.Msg {
			return notice{themes.Warning, "the editor would change more than you do here (tabs or control characters): sbx files get, edit, sbx files put"}
		}
	}
	f.edit = &editor{name: name, replaces: v.file.Version, was: text, input: in, typing: true}
	f.onView = true
	return f.edit.input.Focus()
}

func (e *editor) paste(text string) { e.input.InsertString(strings.ReplaceAll(text, "\r", "\n")) }

func (e *editor) dirty() bool { return e.input.Value() != e.was }

// edited answers keys while a file is edited.
func (f *files) edited(msg tea.KeyPressMsg) tea.Cmd {
	e, k := f.edit, f.w.keys
	if msg.String() == "ctrl+s" {
		return f.save()
	}
	if e.typing {
		if key.Matches(msg, k.Back) {
			e.typing = false
			e.input.Blur()
			return nil
		}
		e.leaving = false
		e.input, _ = e.input.Update(msg)
		return nil
	}
	switch {
	case key.Matches(msg, k.SaveFile):
		return f.save()
	case key.Matches(msg, k.Type, k.Open):
		e.typing = true
		return e.input.Focus()
	case key.Matches(msg, k.Down):
		e.input.CursorDown()
	case key.Matches(msg, k.Up):
		e.input.CursorUp()
	}
	return nil
}

// leaveEdit closes the editor; unsaved work is asked about.
func (f *files) leaveEdit() tea.Cmd {
	if !f.edit.dirty() {
		f.edit = nil
		return nil
	}
	d := newDialog(f.w, "Leave "+f.edit.name+" unsaved?")
	d.say(themes.Text, "What was typed is lost.")
	d.offer("w", "save it and leave", func() tea.Cmd {
		f.edit.leaving = true
		return f.save()
	})
	d.offer("y", "throw it away", func() tea.Cmd {
		f.edit = nil
		return nil
	})
	return showing(d)
}

func (f *files) save() tea.Cmd {
	e := f.edit
	if why := f.cant(); why != "" {
		return func() tea.Msg { return notice{themes.Warning, "save: " + why} }
	}
	if e.saving {
		return nil
	}
	e.saving = true
	return f.c.saveFile(f.id, e.name, e.replaces, []byte(e.input.Value()))
}

// saved takes the answer. A conflict leaves the text as it was typed, and offers
// to look at the other's.
func (f *files) saved(msg savedFileMsg) tea.Cmd {
	e := f.edit
	if e == nil || msg.id != f.id || msg.name != e.name {
		return nil
	}
	e.saving = false
	if engine.AsCode(msg.err) == engine.Conflict {
		return f.askConflict()
	}
	if msg.err != nil {
		return func() tea.Msg { return notice{themes.Error, "save " + e.name + ": " + msg.err.Error()} }
	}
	e.was, e.replaces = string(msg.data), msg.version
	if e.leaving && !e.dirty() {
		f.edit = nil
	}
	say := func() tea.Msg { return notice{themes.Info, "saved " + msg.name} }
	return tea.Batch(say, f.refresh())
}

func (f *files) askConflict() tea.Cmd {
	e := f.edit
	d := newDialog(f.w, e.name+" changed since you opened it")
	d.say(themes.Text, "Somebody else, or the healer, has written it. Nothing was saved.")
	d.offer("o", "overwrite it with yours", func() tea.Cmd {
		return f.c.do(func(ctx context.Context) tea.Msg {
			file, err := f.c.engine.ReadFile(ctx, f.id, e.name)
			if err != nil {
				return notice{themes.Error, err.Error()}
			}
			return overwriteMsg{e.name, file.Version}
		})
	})
	d.offer("t", "throw yours away and read it again", func() tea.Cmd {
		f.edit = nil
		return f.refresh()
	})
	d.cancel = "go on editing"
	return showing(d)
}

// overwriteMsg says which version is to be overwritten.
type overwriteMsg struct {
	name    string
	version engine.Version
}

// overwrite saves over a version that was read after a conflict.
func (f *files) overwrite(msg overwriteMsg) tea.Cmd {
	if f.edit == nil || f.edit.name != msg.name {
		return nil
	}
	f.edit.replaces = msg.version
	return f.save()
}

// files is the sandbox screen's fourth tab.
func (a *App) files() *files { return a.sandbox.tabs[tabFiles].pane.(*files) }
