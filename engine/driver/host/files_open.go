//go:build linux

package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"sbx/engine"
	"sbx/engine/driver"
)

// fileTree is the box's workspace as people and scripts handle it.
type fileTree struct{ b *box }

var _ driver.Tree = fileTree{}

// Tree are the files of the box's workspace.
func (b *box) Tree() driver.Tree { return fileTree{b} }

// Open streams a regular file from offset on, or a directory as a tar.
func (t fileTree) Open(ctx context.Context, name string, offset int64) (engine.File, io.ReadCloser, error) {
	name, err := cleanName(name)
	if err != nil {
		return engine.File{}, nil, err
	}
	if offset < 0 {
		return engine.File{}, nil, engine.Errorf(engine.Invalid, "read %q: the offset can't be negative", name)
	}
	r, err := t.b.openWorkspace()
	if err != nil {
		return engine.File{}, nil, err
	}
	defer r.Close()
	st, err := r.Stat(name)
	if err != nil {
		return engine.File{}, nil, fileError("read", name, err)
	}
	got := engine.File{FileInfo: engine.FileInfo{Name: path.Base(name), Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime()}}
	if st.IsDir() {
		body, err := t.openDir(ctx, r, name, offset)
		return got, body, fileError("read", name, err)
	}
	body, err := t.openFile(r, name, offset, &got)
	return got, body, fileError("read", name, err)
}

// openDir is a directory as a tar, written as it is read.
func (t fileTree) openDir(ctx context.Context, r *os.Root, name string, offset int64) (io.ReadCloser, error) {
	if offset != 0 {
		return nil, engine.Errorf(engine.Invalid, "%q is a directory: it is read from its beginning only", name)
	}
	sub, err := r.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	pr, pw := io.Pipe()
	p := &packing{PipeReader: pr, cancel: cancel}
	p.done.Go(func() {
		defer sub.Close()
		_, err := t.b.pack(ctx, sub, pw, false)
		pw.CloseWithError(err)
	})
	return p, nil
}

// packing is a tar that is being written.
type packing struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Close ends the writing, and returns when it has ended.
func (p *packing) Close() error {
	p.cancel()
	err := p.PipeReader.Close()
	p.done.Wait()
	return err
}

// openFile is a regular file. One that can be had in one piece is: its content
// and its version then belong together, whatever is written meanwhile.
func (t fileTree) openFile(r *os.Root, name string, offset int64, got *engine.File) (io.ReadCloser, error) {
	file, st, err := t.b.openRegular(r, name)
	if err != nil {
		return nil, err
	}
	got.Size, got.Mode, got.ModTime = st.Size(), st.Mode(), st.ModTime()
	if st.Size() <= engine.MaxFile {
		defer file.Close()
		if err := readPart(file, got, offset, 0); err != nil {
			return nil, err
		}
		body := newBytes(got.Data)
		got.Data = nil
		return body, nil
	}
	got.Version = versionOfLarge(st)
	rest := max(0, st.Size()-offset)
	return &part{SectionReader: io.NewSectionReader(file, offset, rest), file: file, left: rest}, nil
}

// part is the rest of a large file, as long as it was when it was opened.
type part struct {
	*io.SectionReader
	file *os.File
	left int64
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.SectionReader.Read(b)
	p.left -= int64(n)
	if err == io.EOF && p.left > 0 {
		err = io.ErrUnexpectedEOF // it was cut meanwhile
	}
	return n, err
}

func (p *part) Close() error { return p.file.Close() }

// versionOfLarge names the state of a file that is too large to be read for
// its name.
func versionOfLarge(st fs.FileInfo) engine.Version {
	sys := st.Sys().(*syscall.Stat_t)
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %d", sys.Ino, sys.Size, sys.Mtim.Nano(), sys.Ctim.Nano()))
	return engine.Version("t-" + hex.EncodeToString(sum[:])[:30])
}
