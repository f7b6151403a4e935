package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"sbx/engine"
)

// OpenFile streams a file; a directory as a tar.
func (f *Fake) OpenFile(_ context.Context, id engine.SandboxID, name string, offset int64) (engine.File, io.ReadCloser, error) {
	root, err := f.root(id)
	if err != nil {
		return engine.File{}, nil, err
	}
	defer root.Close()
	if name == "" {
		name = "."
	}
	fi, err := root.Stat(name)
	if err != nil {
		return engine.File{}, nil, fileError(name, err)
	}
	file := engine.File{FileInfo: infoOf(fi)}
	var b []byte
	if fi.IsDir() {
		b, err = tarOf(root, name)
	} else if b, err = root.ReadFile(name); err == nil {
		file.Version = versionOf(b)
		b = b[min(max(0, offset), int64(len(b))):]
	}
	if err != nil {
		return engine.File{}, nil, fileError(name, err)
	}
	return file, io.NopCloser(bytes.NewReader(b)), nil
}

func tarOf(root *os.Root, name string) ([]byte, error) {
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(sub.FS()); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// Find knows the parts of names and texts only.
func (f *Fake) Find(ctx context.Context, q engine.FindQuery) iter.Seq2[engine.Found, error] {
	files, err := f.contents(q.Sandbox)
	if err != nil {
		return func(yield func(engine.Found, error) bool) { yield(engine.Found{}, err) }
	}
	var list []engine.Found
	for _, name := range files.names() {
		if ok, _ := path.Match(q.Name, path.Base(name)); q.Name != "" && !ok && !strings.Contains(name, q.Name) {
			continue
		}
		at := engine.FindPosition{Name: name}
		if q.Text == "" && q.After.Name < name {
			list = append(list, engine.Found{FindPosition: at, Size: int64(len(files[name]))})
			continue
		}
		for i, line := range strings.Split(files[name], "\n") {
			at.Line = i + 1
			if q.Text != "" && strings.Contains(line, q.Text) && (q.After.Name < name || q.After.Name == name && q.After.Line < at.Line) {
				list = append(list, engine.Found{FindPosition: at, Text: line, Size: int64(len(files[name]))})
			}
		}
	}
	if q.Limit > 0 {
		list = list[:min(q.Limit, len(list))]
	}
	return all(ctx, list)
}

// Upload keeps a body in memory.
func (f *Fake) Upload(_ context.Context, id engine.SandboxID, r io.Reader) (engine.UploadID, error) {
	root, err := f.root(id)
	if err != nil {
		return "", err
	}
	root.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	up := engine.UploadID(engine.NewID(engine.UploadPrefix))
	f.uploads[up] = b
	return up, nil
}

// files is a workspace: its regular files by path, directories with a slash.
type files map[string]string

func (fs files) names() []string {
	var list []string
	for name := range fs {
		if !strings.HasSuffix(name, "/") {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func (f *Fake) contents(id engine.SandboxID) (files, error) {
	root, err := f.root(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return read(root)
}

func read(root *os.Root) (files, error) {
	all := files{}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			all[name+"/"] = ""
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		b, err := root.ReadFile(name)
		all[name] = string(b)
		return err
	})
	return all, err
}

// put makes the workspace's regular files what they were in all.
func (all files) put(root *os.Root) error {
	now, err := read(root)
	if err != nil {
		return err
	}
	for name := range now {
		if _, was := all[name]; !was {
			if err := root.RemoveAll(strings.TrimSuffix(name, "/")); err != nil {
				return err
			}
		}
	}
	for name, data := range all {
		dir, isDir := strings.CutSuffix(name, "/")
		if !isDir {
			dir = path.Dir(name)
		}
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if !isDir {
			if err := root.WriteFile(name, []byte(data), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeFiles does an action on files, after a checkpoint. The lock is held.
func (f *Fake) changeFiles(a engine.Action, id engine.SandboxID, r *engine.Receipt) error {
	root, err := os.OpenRoot(f.workspace(id))
	if err != nil {
		return err
	}
	defer root.Close()
	before, err := read(root)
	if err != nil {
		return err
	}
	cp := engine.Checkpoint{
		ID: engine.CheckpointID(engine.NewID(engine.CheckpointPrefix)), Sandbox: id, Created: now(),
		Change: &engine.FileChange{By: a.By, Words: engine.EntryOf(a.Body).Verb},
	}
	if b, ok := a.Body.(engine.SaveCheckpoint); ok {
		cp.Change, cp.Manual, cp.Note = nil, true, b.Note
	} else if err := f.fileAction(root, a.Body, r); err != nil {
		return err
	}
	r.Checkpoint = cp.ID
	f.trees[cp.ID] = before
	f.points = append([]engine.Checkpoint{cp}, f.points...)
	return nil
}

func (f *Fake) fileAction(root *os.Root, body engine.ActionBody, r *engine.Receipt) error {
	switch b := body.(type) {
	case engine.WriteFile:
		return f.writeFile(root, b.Name, b.Replaces, false, b.Data, r)
	case engine.PlaceFile:
		data, ok := f.uploads[b.Upload]
		if !ok {
			return engine.Errorf(engine.NotFound, "no upload %q", b.Upload)
		}
		delete(f.uploads, b.Upload)
		if b.Tree {
			return untar(root, b.Name, data)
		}
		return f.writeFile(root, b.Name, b.Replaces, b.Overwrite, data, r)
	case engine.MakeDir:
		if fi, err := root.Stat(b.Name); err == nil && fi.IsDir() {
			r.Note = "is there already"
			return nil
		}
		return onFile(b.Name, root.MkdirAll(b.Name, 0o755))
	case engine.RenameFile:
		if _, err := root.Lstat(b.To); err == nil && !b.Overwrite {
			return engine.Errorf(engine.Conflict, "%s is there already", b.To)
		}
		return onFile(b.From, root.Rename(b.From, b.To))
	case engine.RemoveFile:
		if _, err := root.Lstat(b.Name); err != nil {
			return onFile(b.Name, err)
		}
		if b.Recursive {
			return onFile(b.Name, root.RemoveAll(b.Name))
		}
		if err := root.Remove(b.Name); err != nil {
			return engine.Errorf(engine.Conflict, "%s has other files in it", b.Name)
		}
		return nil
	case engine.RestoreCheckpoint:
		was, ok := f.trees[b.Checkpoint]
		if !ok {
			return engine.Errorf(engine.NotFound, "no checkpoint %s", b.Checkpoint)
		}
		return was.put(root)
	case engine.Undo:
		for i, cp := range f.points {
			if cp.Change != nil && cp.Sandbox == b.Sandbox && !cp.Change.Undone {
				cp.Change.Undone = true
				f.points[i] = cp
				return f.trees[cp.ID].put(root)
			}
		}
		return engine.Errorf(engine.Conflict, "there is nothing to undo")
	}
	return engine.Errorf(engine.Conflict, "no heal run changed files")
}

func onFile(name string, err error) error {
	if err == nil {
		return nil
	}
	return fileError(name, err)
}

func untar(root *os.Root, dir string, data []byte) error {
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || !fs.ValidPath(path.Clean(h.Name)) {
			return engine.Errorf(engine.Invalid, "not a tar that can be unpacked here")
		}
		name := path.Join(dir, h.Name)
		b, err := io.ReadAll(tr)
		if err == nil && h.Typeflag == tar.TypeDir {
			err = root.MkdirAll(name, 0o755)
		} else if err == nil && h.Typeflag == tar.TypeReg {
			if err = root.MkdirAll(path.Dir(name), 0o755); err == nil {
				err = root.WriteFile(name, b, fs.FileMode(h.Mode).Perm())
			}
		}
		if err != nil {
			return fileError(name, err)
		}
	}
}

// archiveAction is one on archives, which a fake keeps in memory.
func (f *Fake) archiveAction(sb engine.Sandbox, body engine.ActionBody) error {
	if _, ok := body.(engine.SaveArchive); !ok && f.archives[sb.ID].files == nil {
		return engine.Errorf(engine.NotFound, "%s has no archive", sb.Name)
	}
	root, err := os.OpenRoot(f.workspace(sb.ID))
	if err != nil {
		return err
	}
	defer root.Close()
	switch body.(type) {
	case engine.SaveArchive:
		all, err := read(root)
		f.archives[sb.ID] = archive{engine.Archive{
			Sandbox: sb.ID, Name: sb.Name, Saved: now(), Files: int64(len(all)), Size: 1, SHA256: strings.Repeat("0", 64), Local: true,
		}, all}
		return err
	case engine.RestoreArchive:
		if sb.State.Live() {
			return engine.Errorf(engine.Conflict, "%s is %s", sb.Name, sb.State).WithHint("stop it first")
		}
		return f.archives[sb.ID].files.put(root)
	}
	delete(f.archives, sb.ID)
	return nil
}

// archive is one with what is in it.
type archive struct {
	engine.Archive
	files files
}

// Archives are those that were saved.
func (f *Fake) Archives(_ context.Context, id engine.SandboxID) ([]engine.Archive, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []engine.Archive
	for _, a := range f.archives {
		if id == "" || a.Sandbox == id {
			list = append(list, a.Archive)
		}
	}
	if id != "" && len(list) == 0 {
		_, err := f.sandbox(id)
		return nil, err
	}
	return list, nil
}
