//go:build linux

package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sbx/engine"
)

// keepUpload is how long an upload waits to be put at its place.
const keepUpload = 24 * time.Hour

// uploads is where they wait: in the box's own directory, which no sandbox can
// reach.
func (b *box) uploads() string { return filepath.Join(b.dir, "uploads") }

// uploadFile is where one waits; its id is a plain name.
func (b *box) uploadFile(id engine.UploadID) (string, error) {
	rest, ok := strings.CutPrefix(string(id), engine.UploadPrefix)
	if !ok || rest == "" || len(rest) > 32 || strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "", engine.Errorf(engine.Invalid, "%.80q is no upload", string(id))
	}
	return filepath.Join(b.uploads(), string(id)), nil
}

// Stage keeps what r has until Place takes it.
func (t fileTree) Stage(ctx context.Context, id engine.UploadID, r io.Reader) (err error) {
	name, err := t.b.uploadFile(id)
	if err != nil {
		return err
	}
	if err := os.Mkdir(t.b.uploads(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fileError("keep", string(id), err)
	}
	t.b.dropUploads(time.Now().Add(-keepUpload))
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fileError("keep", string(id), err)
	}
	_, err = io.Copy(f, reading{ctx, r})
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name) // else it is deleted in a day
	}
	return fileError("keep", string(id), err)
}

// reading ends with ctx.
type reading struct {
	ctx context.Context
	r   io.Reader
}

func (r reading) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}

// dropUploads deletes those that nothing took.
func (b *box) dropUploads(before time.Time) {
	list, _ := os.ReadDir(b.uploads()) // none: nothing to delete
	for _, e := range list {
		if fi, err := e.Info(); err == nil && fi.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(b.uploads(), e.Name())) // the next one tries again
		}
	}
}

// upload is one that is being taken.
type upload struct {
	*os.File
	name string
}

func (b *box) openUpload(id engine.UploadID) (*upload, error) {
	name, err := b.uploadFile(id)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, engine.Errorf(engine.NotFound, "no upload %s is waiting", id).WithHint("upload it again")
	}
	if err != nil {
		return nil, fileError("take", string(id), err)
	}
	return &upload{f, name}, nil
}

func (u *upload) remove() error { return os.Remove(u.name) }
