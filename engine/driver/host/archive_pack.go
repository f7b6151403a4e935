//go:build linux

package host

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"sbx/engine/driver"
)

// archives make tars of the box's workspace, and it of them.
type archives struct{ b *box }

var _ driver.Archives = archives{}

// Archives are of the box's workspace.
func (b *box) Archives() driver.Archives { return archives{b} }

// maxListed bounds the lists in driver.Packed.
const maxListed = 100

// smallFile is read whole before its header is written, so that both are of
// one moment.
const smallFile = 1 << 20

// Fingerprint walks the workspace without reading a file.
func (a archives) Fingerprint(ctx context.Context, rebuildable bool) (string, error) {
	r, err := a.b.openWorkspace()
	if err != nil {
		return "", err
	}
	defer r.Close()
	p := &packer{b: a.b, all: rebuildable, print: newPrint()}
	if err := p.walk(ctx, r); err != nil {
		return "", err
	}
	return p.print.text(), nil
}

// Pack writes the workspace as a tar.
func (a archives) Pack(ctx context.Context, w io.Writer, rebuildable bool) (driver.Packed, error) {
	r, err := a.b.openWorkspace()
	if err != nil {
		return driver.Packed{}, err
	}
	defer r.Close()
	return a.b.pack(ctx, r, w, rebuildable)
}

// pack writes a directory of the workspace as a tar.
func (b *box) pack(ctx context.Context, dir *os.Root, w io.Writer, rebuildable bool) (driver.Packed, error) {
	p := &packer{b: b, all: rebuildable, print: newPrint(), tw: tar.NewWriter(w), links: map[inode]string{}}
	st, err := dir.Stat(".")
	if err != nil {
		return p.done, fileError("read", ".", err)
	}
	if err := p.tw.WriteHeader(header("./", st)); err != nil {
		return p.done, err
	}
	if err := p.walk(ctx, dir); err != nil {
		return p.done, err
	}
	p.done.Fingerprint = p.print.text()
	return p.done, p.tw.Close()
}

// inode is a file under all of its names.
type inode struct{ dev, ino uint64 }

// packer writes entries as a walk comes by them. Without tw it only takes the
// fingerprint.
type packer struct {
	b     *box
	all   bool // rebuildable directories too
	print *print
	tw    *tar.Writer
	links map[inode]string // files with several names, by their first
	buf   bytes.Buffer
	done  driver.Packed
}

func (p *packer) walk(ctx context.Context, r *os.Root) error {
	w := walk{visit: p.visit, closed: p.leaveOut}
	return w.dir(ctx, r, ".", 0)
}

func (p *packer) leaveOut(name string) {
	if len(p.done.LeftOut) < maxListed {
		p.done.LeftOut = append(p.done.LeftOut, name)
	}
}

func (p *packer) visit(dir *os.Root, name string, st fs.FileInfo) error {
	sys := st.Sys().(*syscall.Stat_t)
	mode := st.Mode()
	if mode.IsDir() && rebuildable[st.Name()] && !p.all {
		return fs.SkipDir
	}
	if mode.IsDir() && int(sys.Uid) != p.b.uid && !p.b.enterable(sys) {
		p.leaveOut(name)
		return fs.SkipDir
	}
	if !mode.IsDir() && !mode.IsRegular() && mode&fs.ModeSymlink == 0 {
		p.leaveOut(name) // a socket, FIFO or device
		return nil
	}
	p.print.add(name, sys)
	if p.tw == nil {
		return nil
	}
	switch {
	case mode.IsDir():
		return p.tw.WriteHeader(header(name+"/", st))
	case mode&fs.ModeSymlink != 0:
		return p.link(dir, name, st)
	}
	return p.file(dir, name, st)
}

// header is an entry's. Its times are exact: git tells by them that a file has
// not changed.
func header(name string, st fs.FileInfo) *tar.Header {
	h := &tar.Header{Name: name, Mode: int64(st.Mode().Perm()), ModTime: st.ModTime(), Format: tar.FormatPAX}
	switch {
	case st.IsDir():
		h.Typeflag = tar.TypeDir
	case st.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
	default:
		h.Typeflag, h.Size = tar.TypeReg, st.Size()
	}
	return h
}

func (p *packer) link(dir *os.Root, name string, st fs.FileInfo) error {
	target, err := dir.Readlink(st.Name())
	if err != nil {
		return nil // gone or changed since it was listed
	}
	h := header(name, st)
	h.Linkname = target
	p.done.Files++
	return p.tw.WriteHeader(h)
}

// file writes a regular file's content, read beneath its directory only.
func (p *packer) file(dir *os.Root, name string, was fs.FileInfo) error {
	f, err := dir.OpenFile(was.Name(), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_NOCTTY, 0)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			p.leaveOut(name)
		}
		return unlessFatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	sys := st.Sys().(*syscall.Stat_t)
	if !st.Mode().IsRegular() {
		return nil // it was when it was listed
	}
	if int(sys.Uid) != p.b.uid && !p.b.readable(sys) {
		p.leaveOut(name) // the engine might read it; the sandbox can't
		return nil
	}
	id := inode{sys.Dev, sys.Ino}
	if first, again := p.links[id]; again && sys.Nlink > 1 {
		h := header(name, st)
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		p.done.Files++
		return p.tw.WriteHeader(h)
	}
	if err := p.content(f, name, st); err != nil {
		return err
	}
	if sys.Nlink > 1 {
		p.links[id] = name
	}
	p.done.Files++
	return nil
}

// unlessFatal lets pass what happens to a file that somebody works on: it is
// gone, replaced by something else, or unreadable.
func unlessFatal(err error) error {
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.ELOOP, syscall.ENOTDIR, syscall.ENXIO, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, errno) {
			return nil
		}
	}
	return err
}

// content writes a file with its header. One that shrinks while it is read is
// filled up with zeros, one that grows is cut: the tar stays whole, and the
// name is told.
func (p *packer) content(f *os.File, name string, st fs.FileInfo) error {
	h := header(name, st)
	p.buf.Reset()
	if st.Size() <= smallFile {
		if _, err := p.buf.ReadFrom(io.LimitReader(f, smallFile+1)); err != nil {
			return err
		}
		h.Size = int64(p.buf.Len())
		if h.Size != st.Size() {
			p.unsettled(name)
		}
		if err := p.tw.WriteHeader(h); err != nil {
			return err
		}
		p.done.Bytes += h.Size
		_, err := p.tw.Write(p.buf.Bytes())
		return err
	}
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(struct{ io.Writer }{p.tw}, io.LimitReader(struct{ io.Reader }{f}, h.Size))
	p.done.Bytes += n
	if err != nil {
		return err
	}
	if n < h.Size {
		if _, err := io.CopyN(p.tw, zeros{}, h.Size-n); err != nil {
			return err
		}
	}
	if now, err := f.Stat(); err == nil && (now.Size() != st.Size() || !now.ModTime().Equal(st.ModTime())) {
		p.unsettled(name)
	}
	return nil
}

func (p *packer) unsettled(name string) {
	p.print.young = true // what was written is no state that can come again
	if len(p.done.Unsettled) < maxListed {
		p.done.Unsettled = append(p.done.Unsettled, name)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// print is the fingerprint of a walk.
type print struct {
	sum   hash.Hash
	line  []byte
	limit time.Time
	young bool
}

func newPrint() *print { return &print{sum: sha256.New(), limit: time.Now().Add(-racy)} }

func (p *print) add(name string, sys *syscall.Stat_t) {
	if time.Unix(sys.Ctim.Unix()).After(p.limit) {
		p.young = true
	}
	p.line = append(append(p.line[:0], name...), 0)
	for _, n := range []uint64{uint64(sys.Mode), uint64(sys.Size), sys.Ino, uint64(sys.Mtim.Nano()), uint64(sys.Ctim.Nano())} {
		p.line = binary.LittleEndian.AppendUint64(p.line, n)
	}
	p.sum.Write(p.line)
}

// text is the fingerprint; "" while a file is so young that a change could be
// missed.
func (p *print) text() string {
	if p.young {
		return ""
	}
	return hex.EncodeToString(p.sum.Sum(nil))
}
