package fake

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// tree is the workspace's files, and its archives.
type tree struct{ b *Box }

var (
	_ driver.Tree     = tree{}
	_ driver.Archives = tree{}
)

// Tree are the files in memory.
func (b *Box) Tree() driver.Tree { return tree{b} }

// Archives are tars of the files in memory.
func (b *Box) Archives() driver.Archives { return tree{b} }

// Open streams a file, or a tar of a directory.
func (t tree) Open(ctx context.Context, name string, offset int64) (engine.File, io.ReadCloser, error) {
	c, err := clean(name)
	if err != nil {
		return engine.File{}, nil, err
	}
	if t.b.files.isDir(c) {
		var buf bytes.Buffer
		err := t.pack(&buf, c)
		return engine.File{FileInfo: engine.FileInfo{Name: path.Base(c), Mode: fs.ModeDir | 0o755}}, io.NopCloser(&buf), err
	}
	f, err := t.b.files.ReadFile(ctx, name, offset, 0)
	r := io.NopCloser(bytes.NewReader(f.Data))
	f.Data = nil
	return f, r, err
}

// Stage keeps a body in memory.
func (t tree) Stage(_ context.Context, id engine.UploadID, r io.Reader) error {
	data, err := io.ReadAll(r)
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if t.b.staged == nil {
		t.b.staged = map[engine.UploadID][]byte{}
	}
	t.b.staged[id] = data
	return err
}

// Place puts one at its place.
func (t tree) Place(ctx context.Context, p engine.PlaceFile) (engine.Version, error) {
	t.b.mu.Lock()
	data, ok := t.b.staged[p.Upload]
	delete(t.b.staged, p.Upload)
	t.b.mu.Unlock()
	if !ok {
		return "", engine.Errorf(engine.NotFound, "there is no upload %q", p.Upload)
	}
	if p.Tree {
		return "", t.unpack(bytes.NewReader(data), p.Name)
	}
	if now, err := t.b.files.ReadFile(ctx, p.Name, 0, 0); err == nil && p.Overwrite {
		p.Replaces = now.Version
	}
	return t.b.files.WriteFile(ctx, p.Name, p.Replaces, data)
}

// MakeDir makes nothing: directories are where files are.
func (t tree) MakeDir(_ context.Context, name string) (bool, error) {
	name, err := clean(name)
	return err == nil && !t.b.files.isDir(name), err
}

// Rename moves a file or all that is beneath a directory.
func (t tree) Rename(ctx context.Context, from, to string, overwrite bool) error {
	from, err := clean(from)
	if err != nil {
		return err
	}
	if to, err = clean(to); err != nil {
		return err
	}
	f := &t.b.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.files[to]; taken && !overwrite {
		return engine.Errorf(engine.Conflict, "%q is there already", to)
	}
	moved := false
	for name, x := range maps.Clone(f.files) {
		if rest, beneath := strings.CutPrefix(name+"/", from+"/"); beneath {
			delete(f.files, name)
			f.files[path.Join(to, rest)] = x
			moved = true
		}
	}
	if !moved {
		return engine.Errorf(engine.NotFound, "there is no file %q", from)
	}
	return ctx.Err()
}

// Remove deletes a file or all that is beneath a directory.
func (t tree) Remove(ctx context.Context, name string, recursive bool) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	if t.b.files.isDir(name) && !recursive {
		return engine.Errorf(engine.Conflict, "%q has other files in it", name)
	}
	f := &t.b.files
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.files)
	maps.DeleteFunc(f.files, func(n string, _ file) bool { return strings.HasPrefix(n+"/", name+"/") })
	if len(f.files) == before {
		return engine.Errorf(engine.NotFound, "there is no file %q", name)
	}
	return ctx.Err()
}

func (t tree) pack(w io.Writer, dir string) error {
	t.b.files.mu.Lock()
	all := maps.Clone(t.b.files.files)
	t.b.files.mu.Unlock()
	tw := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rest := name
		if dir != "." {
			var ok bool
			if rest, ok = strings.CutPrefix(name, dir+"/"); !ok {
				continue
			}
		}
		x := all[name]
		if err := tw.WriteHeader(&tar.Header{Name: rest, Mode: int64(x.mode), Size: int64(len(x.data)), ModTime: x.time}); err != nil {
			return err
		}
		if _, err := tw.Write(x.data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// unpack puts a tar's files beneath a directory: all of them or none.
func (t tree) unpack(r io.Reader, dir string) error {
	found := map[string]file{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return engine.Errorf(engine.Invalid, "not a tar: %w", err)
		}
		name, err := clean(h.Name)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return engine.Errorf(engine.Invalid, "not a whole tar: %w", err)
		}
		if h.Typeflag == tar.TypeReg {
			found[path.Join(dir, name)] = file{data, fs.FileMode(h.Mode).Perm(), h.ModTime}
		}
	}
	t.b.files.mu.Lock()
	defer t.b.files.mu.Unlock()
	maps.Copy(t.b.files.files, found)
	return nil
}

// Fingerprint tells contents apart.
func (t tree) Fingerprint(ctx context.Context, _ bool) (string, error) {
	t.b.files.mu.Lock()
	defer t.b.files.mu.Unlock()
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(t.b.files.files)) {
		x := t.b.files.files[name]
		fmt.Fprintf(sum, "%q %o %s %q\n", name, x.mode, x.time.Format(time.RFC3339Nano), x.data)
	}
	return hex.EncodeToString(sum.Sum(nil)), ctx.Err()
}

// Pack writes the files as a tar.
func (t tree) Pack(ctx context.Context, w io.Writer, all bool) (driver.Packed, error) {
	var p driver.Packed
	var err error
	if p.Fingerprint, err = t.Fingerprint(ctx, all); err != nil {
		return p, err
	}
	t.b.files.mu.Lock()
	for _, x := range t.b.files.files {
		p.Files++
		p.Bytes += int64(len(x.data))
	}
	t.b.files.mu.Unlock()
	return p, t.pack(w, ".")
}

// Unpack makes the files those of a tar.
func (t tree) Unpack(_ context.Context, r io.Reader) error {
	fresh := tree{&Box{}}
	fresh.b.files.files = map[string]file{}
	if err := fresh.unpack(r, "."); err != nil {
		return err
	}
	t.b.files.mu.Lock()
	defer t.b.files.mu.Unlock()
	t.b.files.files = fresh.b.files.files
	return nil
}
