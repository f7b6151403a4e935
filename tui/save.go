package tui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
)

// savedMsg is how the saving of a pane ended.
type savedMsg struct {
	path  string
	lines int
	err   error
}

// saver asks for the path of the file that a pane is saved to.
type saver struct {
	w      *world
	what   string
	input  textinput.Model
	width  int
	closed bool
	save   func(path string) tea.Cmd
}

// savePane asks where to save what the pane shows.
func (a *App) savePane() {
	t, ok := a.pane().(texter)
	if !ok {
		a.say(themes.Info, "only logs, the healer's story and incidents can be saved")
		return
	}
	_, text := t.texts()
	if text == "" {
		a.say(themes.Info, "there is nothing to save")
		return
	}
	at := a.w.now.Local().Format("150405")
	what, name := "incidents", "incidents-"+at+".md"
	if a.screen == onSandbox {
		sb, _ := a.w.sandbox(a.sandbox.id)
		what = strings.ToLower(a.sandbox.tabs[a.sandbox.tab].title)
		name = fmt.Sprintf("%s-%s-%s.txt", fileName(first(sb.Name, string(a.sandbox.id))), what, at)
	}
	s := &saver{w: a.w, what: what, input: textinput.New()}
	s.input.Prompt = ""
	s.input.SetValue(name)
	s.input.CursorEnd()
	s.input.Focus()
	s.save = func(path string) tea.Cmd { return a.c.write(path, cleanLines(text)+"\n") }
	a.show(s)
}

// fileName is a name without what means something in a path.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, strings.TrimLeft(name, "."))
}

func (s *saver) done() bool { return s.closed }

// Typing is always so: a path is asked for.
func (s *saver) Typing() bool { return true }

// SetSize is the size of the screen.
func (s *saver) SetSize(width, _ int) { s.width = width }

// ShortHelp are the saver's keys.
func (s *saver) ShortHelp() []key.Binding {
	return []key.Binding{bind("Enter", "save"), bind("Esc", "cancel")}
}

// FullHelp are the same.
func (s *saver) FullHelp() [][]key.Binding { return [][]key.Binding{s.ShortHelp()} }

// Update takes the path.
func (s *saver) Update(msg tea.Msg) tea.Cmd {
	k := s.w.keys
	if press, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(press, k.Back):
			s.closed = true
			return nil
		case key.Matches(press, k.Open):
			path := strings.TrimSpace(s.input.Value())
			if s.closed = path != ""; !s.closed {
				return nil
			}
			return s.save(path)
		}
	}
	s.input, _ = s.input.Update(msg)
	return nil
}

// View is the box.
func (s *saver) View() string {
	b := newBox(s.w, min(dialogWidth, s.width-4), "Save what "+s.what+" shows")
	b.line(func(p *draw.Pen) { drawInput(p, s.input.Value(), s.input.Position()) })
	b.line(func(p *draw.Pen) {
		p.Put(themes.Muted, "Enter saves. A file that is there is not overwritten. Esc cancels.")
	})
	return b.close()
}

// write saves a text to a new file, which only its owner may read.
func (c *commands) write(path, text string) tea.Cmd {
	return c.do(func(context.Context) tea.Msg {
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
			path = filepath.Join(home, path[2:])
		}
		msg := savedMsg{path: path, lines: strings.Count(text, "\n")}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			msg.err = engine.Errorf(engine.Conflict, "%s is there already: > asks for another name", path)
			return msg
		}
		if err != nil {
			msg.err = err
			return msg
		}
		_, err = f.WriteString(text)
		msg.err = errors.Join(err, f.Close())
		return msg
	})
}

func (a *App) saved(msg savedMsg) {
	if msg.err != nil {
		a.say(themes.Error, "save: "+msg.err.Error())
		return
	}
	a.say(themes.Info, fmt.Sprintf("saved %s to %s", plural(msg.lines, "line"), msg.path))
}
