package tui

import (
	"context"
	"io"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

// dirMsg is what a directory holds.
type dirMsg struct {
	id   engine.SandboxID
	dir  string
	list []engine.FileInfo
	err  error
}

// fileMsg is a file's content, or its beginning.
type fileMsg struct {
	id   engine.SandboxID
	name string
	file engine.File
	part bool // it is longer
	err  error
}

// changesMsg is what differs from the last good checkpoint.
type changesMsg struct {
	id   engine.SandboxID
	good engine.Checkpoint
	diff engine.Diff
	err  error
}

// foundMsg is what a search in all files found.
type foundMsg struct {
	id   engine.SandboxID
	text string
	list []engine.Found
	err  error
}

// savedFileMsg is how the saving of an edited file ended.
type savedFileMsg struct {
	id      engine.SandboxID
	name    string
	version engine.Version
	data    []byte
	err     error
}

// shownPart is how much of a large file is read to be shown; foundLines how
// many lines a search shows.
const (
	shownPart  = 256 << 10
	foundLines = 500
)

func (c *commands) readDir(id engine.SandboxID, dir string) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		list, err := c.engine.ReadDir(ctx, id, first(dir, "."))
		return dirMsg{id, dir, list, err}
	})
}

// readFile reads a file to be shown: all of it if that can be edited, else its
// beginning.
func (c *commands) readFile(id engine.SandboxID, name string, size int64) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		if size <= 1<<20 {
			f, err := c.engine.ReadFile(ctx, id, name)
			return fileMsg{id: id, name: name, file: f, err: err}
		}
		f, r, err := c.engine.OpenFile(ctx, id, name, 0)
		if err != nil {
			return fileMsg{id: id, name: name, err: err}
		}
		defer r.Close()
		f.Data, err = io.ReadAll(io.LimitReader(r, shownPart))
		return fileMsg{id: id, name: name, file: f, part: true, err: err}
	})
}

func (c *commands) changes(id engine.SandboxID) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		msg := changesMsg{id: id}
		list, err := c.engine.Checkpoints(ctx, id)
		if err != nil {
			msg.err = err
			return msg
		}
		for _, cp := range list {
			if cp.Good && cp.Created.After(msg.good.Created) {
				msg.good = cp
			}
		}
		if msg.good.ID != "" {
			msg.diff, msg.err = c.engine.Diff(ctx, id, msg.good.ID, "")
		}
		return msg
	})
}

func (c *commands) findText(id engine.SandboxID, text string) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		msg := foundMsg{id: id, text: text}
		for f, err := range c.engine.Find(ctx, engine.FindQuery{Sandbox: id, Text: text, Fold: true, Limit: foundLines}) {
			if err != nil {
				msg.err = err
				break
			}
			msg.list = append(msg.list, f)
		}
		return msg
	})
}

// saveFile writes what was edited over the version that it was read as.
func (c *commands) saveFile(id engine.SandboxID, name string, replaces engine.Version, data []byte) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		v, err := engine.Save(ctx, c.engine, id, name, replaces, data)
		return savedFileMsg{id, name, v, data, err}
	})
}

// download copies a file of the sandbox to a new local file; a directory as a
// tar.
func (c *commands) download(id engine.SandboxID, name, to string) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		_, r, err := c.engine.OpenFile(ctx, id, name, 0)
		if err != nil {
			return actionMsg{words: "download " + name, err: err}
		}
		defer r.Close()
		f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return actionMsg{words: "download " + name, err: err}
		}
		_, err = io.Copy(f, r)
		if err2 := f.Close(); err == nil {
			err = err2
		}
		if err != nil {
			_ = os.Remove(to) // half a file is none
			return actionMsg{words: "download " + name, err: err}
		}
		return actionMsg{words: "download " + name, receipt: engine.Receipt{Note: "saved as " + to}}
	})
}

// upload copies a local file into the sandbox; one that is there stays.
func (c *commands) upload(id engine.SandboxID, from, to string) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		words := "upload " + filepath.Base(from)
		f, err := os.Open(from)
		if err != nil {
			return actionMsg{words: words, err: err}
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return actionMsg{words: words, err: engine.Errorf(engine.Invalid, "%s is no regular file", from).WithHint("directories: sbx cp")}
		}
		up, err := c.engine.Upload(ctx, id, f)
		if err != nil {
			return actionMsg{words: words, err: err}
		}
		r, err := c.engine.Do(ctx, engine.NewAction(engine.PlaceFile{Sandbox: id, Name: to, Upload: up}))
		return actionMsg{words: words, receipt: r, err: err}
	})
}
