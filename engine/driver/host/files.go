//go:build linux

package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"sbx/engine"
	"sbx/engine/driver"
)

// maxDir is how many entries ReadDir lists.
const maxDir = 50_000

// files are those of a box's workspace, reached beneath its directory only
// (os.Root), however the tree changes meanwhile.
type files struct{ b *box }

// Files are those of the box's workspace.
func (b *box) Files() driver.Files { return &files{b} }

// ReadDir lists a directory by name.
func (f *files) ReadDir(ctx context.Context, dir string) ([]engine.FileInfo, error) {
	dir, err := cleanName(dir)
	if err != nil {
		return nil, err
	}
	r, err := f.b.openWorkspace()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	sub, err := r.OpenRoot(dir + "/.")
	if err != nil {
		return nil, fileError("list", dir, err)
	}
	defer sub.Close()
	names, err := entries(sub, maxDir)
	if err != nil {
		return nil, fileError("list", dir, err)
	}
	list := make([]engine.FileInfo, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if fi, err := info(sub, name); err == nil { // else it has just gone
			list = append(list, fi)
		}
	}
	return list, nil
}

// entries are the names in a directory, sorted; Exhausted beyond limit.
func entries(dir *os.Root, limit int) ([]string, error) {
	d, err := dir.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > limit {
		return nil, engine.Errorf(engine.Exhausted, "a directory has more than %d entries", limit)
	}
	slices.Sort(names)
	return names, nil
}

// info describes one entry of a directory.
func info(dir *os.Root, name string) (engine.FileInfo, error) {
	st, err := dir.Lstat(name)
	if err != nil {
		return engine.FileInfo{}, err
	}
	fi := engine.FileInfo{Name: name, Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime()}
	if st.Mode()&fs.ModeSymlink != 0 {
		fi.Target, err = dir.Readlink(name)
	}
	return fi, err
}

// ReadFile reads a regular file, or limit bytes of it from offset. The version
// is that of the whole content; a file larger than [engine.MaxFile] has none.
func (f *files) ReadFile(ctx context.Context, name string, offset, limit int64) (engine.File, error) {
	name, err := cleanName(name)
	if err != nil {
		return engine.File{}, err
	}
	if offset < 0 || limit < 0 {
		return engine.File{}, engine.Errorf(engine.Invalid, "read %q: offset and limit can't be negative", name)
	}
	if err := ctx.Err(); err != nil {
		return engine.File{}, err
	}
	r, err := f.b.openWorkspace()
	if err != nil {
		return engine.File{}, err
	}
	defer r.Close()
	file, st, err := f.b.openRegular(r, name)
	if err != nil {
		return engine.File{}, fileError("read", name, err)
	}
	defer file.Close()
	got := engine.File{FileInfo: engine.FileInfo{
		Name: path.Base(name), Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime(),
	}}
	if err := readPart(file, &got, offset, limit); err != nil {
		return engine.File{}, fileError("read", name, err)
	}
	return got, nil
}

// readPart fills in the data and, where the file isn't too large, the version.
func readPart(file io.ReaderAt, got *engine.File, offset, limit int64) error {
	if got.Size <= engine.MaxFile {
		whole, err := io.ReadAll(io.NewSectionReader(file, 0, engine.MaxFile))
		if err != nil {
			return err
		}
		got.Version, got.Size = versionOf(whole), int64(len(whole))
		from := min(offset, int64(len(whole)))
		got.Data = whole[from:]
		if limit > 0 {
			got.Data = got.Data[:min(limit, int64(len(got.Data)))]
		}
		return nil
	}
	if offset == 0 && limit == 0 {
		return engine.Errorf(engine.Invalid, "file %q has %s, more than can be read at once", got.Name, engine.Size(got.Size)).
			WithHint("read a part of it: give an offset and a limit")
	}
	if limit == 0 || limit > engine.MaxFile {
		limit = engine.MaxFile
	}
	data, err := io.ReadAll(io.NewSectionReader(file, offset, limit))
	got.Data = data
	return err
}

// openRegular opens a regular file that the box's user may read.
func (b *box) openRegular(r *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := file.Stat()
	if err == nil {
		err = b.checkRegular(name, st)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, st, nil
}

func (b *box) checkRegular(name string, st fs.FileInfo) error {
	switch {
	case st.IsDir():
		return engine.Errorf(engine.Invalid, "%q is a directory", name)
	case !st.Mode().IsRegular():
		return engine.Errorf(engine.Invalid, "%q is no regular file", name)
	case !b.readable(st.Sys().(*syscall.Stat_t)):
		return engine.Errorf(engine.Forbidden, "%q can't be read by the sandbox", name)
	}
	return nil
}

// versionOf names a content.
func versionOf(data []byte) engine.Version {
	sum := sha256.Sum256(data)
	return engine.Version(hex.EncodeToString(sum[:])[:32])
}
