//go:build linux

package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"sbx/engine"
)

// racy is how young a change may be to be missed: files changed twice within
// a tick of the file system's clock look the same.
const racy = 100 * time.Millisecond

// scan is what a walk of the workspace found worth saving.
type scan struct {
	names []string // regular files and links, as the walk came by
	// closed are what the box's user can't read now. What an earlier save
	// knows of them stays: unreadable is not deleted.
	closed []string
	extra  extra
	// signature tells this state of the workspace from any other; "" while a
	// file is so young that it couldn't.
	signature string
}

// extra is what of a tree git has no place for.
type extra struct {
	// Empty are directories with nothing in them to save.
	Empty []string `json:"empty,omitempty"`
	// Private are files that only their owner may read.
	Private []string `json:"private,omitempty"`
}

// scan walks the workspace. It reads no content.
func (b *box) scan(ctx context.Context) (*scan, error) {
	r, err := b.openWorkspace()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := &scanner{b: b, sum: sha256.New(), limit: time.Now().Add(-racy)}
	w := walk{visit: s.visit, closed: s.close, after: s.after}
	if err := w.dir(ctx, r, ".", 0); err != nil {
		return nil, err
	}
	if !s.young {
		fmt.Fprintf(s.sum, "%q%q", s.found.closed, s.found.extra)
		s.found.signature = hex.EncodeToString(s.sum.Sum(nil))
	}
	return &s.found, nil
}

type scanner struct {
	b     *box
	found scan
	sum   hash.Hash
	line  []byte // what goes to sum, reused
	limit time.Time
	young bool
	// filled is how many names were found when the walk entered each directory
	// that it is in now: one that leaves with the same number is empty.
	filled []int
}

func (s *scanner) visit(_ *os.Root, name string, st fs.FileInfo) error {
	sys := st.Sys().(*syscall.Stat_t)
	switch mode := st.Mode(); {
	case skipped(st.Name()):
		if mode&fs.ModeSymlink != 0 && rebuildable[st.Name()] {
			s.add(name, sys) // a link of that name is somebody's own
			return nil
		}
		return fs.SkipDir
	case mode.IsDir():
		if !s.b.enterable(sys) {
			s.close(name)
			return fs.SkipDir
		}
		s.filled = append(s.filled, len(s.found.names)+len(s.found.closed))
	case st.Name() == ".gitattributes" && !mode.IsRegular() && mode&fs.ModeSymlink == 0:
		return engine.Errorf(engine.Conflict, "%q is a pipe or device: git would wait for it", name).WithHint("delete it")
	case mode&fs.ModeSymlink != 0:
		s.add(name, sys)
	case mode.IsRegular() && !s.b.readable(sys):
		s.close(name)
	case mode.IsRegular():
		if mode.Perm()&0o077 == 0 {
			s.found.extra.Private = append(s.found.extra.Private, name)
		}
		s.add(name, sys)
	}
	return nil
}

func (s *scanner) add(name string, sys *syscall.Stat_t) {
	s.found.names = append(s.found.names, name)
	if changed := time.Unix(sys.Ctim.Unix()); changed.After(s.limit) {
		s.young = true
	}
	s.line = append(append(s.line[:0], name...), 0)
	for _, n := range []uint64{uint64(sys.Mode), uint64(sys.Size), sys.Ino, uint64(sys.Mtim.Nano()), uint64(sys.Ctim.Nano())} {
		s.line = binary.LittleEndian.AppendUint64(s.line, n)
	}
	s.sum.Write(s.line)
}

func (s *scanner) close(name string) {
	s.found.closed = append(s.found.closed, name)
}

func (s *scanner) after(_ *os.Root, name string, _ fs.FileInfo) error {
	last := len(s.filled) - 1
	if s.filled[last] == len(s.found.names)+len(s.found.closed) {
		s.found.extra.Empty = append(s.found.extra.Empty, name)
	}
	s.filled = s.filled[:last]
	return nil
}

// enterable reports whether the box's own user may list a directory and reach
// what is in it.
func (b *box) enterable(st *syscall.Stat_t) bool {
	both := *st
	both.Mode = st.Mode & (st.Mode << 2) // readable's bit stays only where x is set, too
	return b.readable(&both)
}

// covers reports whether name is one of list or lies beneath one.
func covers(list []string, name string) bool {
	for _, l := range list {
		if name == l || strings.HasPrefix(name, l+"/") {
			return true
		}
	}
	return false
}
