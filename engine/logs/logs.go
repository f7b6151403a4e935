// Package logs keeps what processes write: byte streams in segment files, with
// positions that stay true for ever.
//
// A stream is a sequence of bytes, numbered from 0. It lies in segment files
// that are named by the number of their first byte, so a position is a
// segment's name plus an offset in it, and nothing has to be remembered to know
// where a log ends: a writer that was killed at any instruction goes on after
// what is on disk. At most Options.Segments segments are kept; what fell off
// the old end keeps its numbers, and a reader that comes late is told how many
// bytes it missed. Beside each segment lies a sparse index of arrival times.
//
//	<dir>/<process>/out-00000000000000000000.log   bytes 0 to 8388607
//	<dir>/<process>/out-00000000000000000000.idx   (offset, unix ms) pairs
//	<dir>/<process>/out-00000000000008388608.log   …
//	<dir>/<process>/out.end                        no more will be written
//	<dir>/<process>/fine                           times are to the millisecond
//
// The one rule: bytes are appended, segments are dropped whole, and nothing is
// ever rewritten. That is what lets readers, in this process and in others, go
// on without a lock. A stream has one writing process at a time.
package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"sbx/engine"
)

// The defaults of [Options]: 64 MiB kept of each stream.
const (
	DefaultSegmentSize = 8 << 20
	DefaultSegments    = 8
)

// Options bound what is kept of each stream. Zero means the default.
type Options struct {
	SegmentSize int64
	Segments    int
}

// Store is a directory of logs.
type Store struct {
	dir     string
	options Options
	watcher watcher
	tails   tails
	closed  chan struct{}

	mu      sync.Mutex
	streams map[key]*stream // those that are written, followed or remembered
	shut    bool
}

type key struct {
	process engine.ProcessID
	stream  engine.Stream
}

// Open makes a Store of dir, which is created if it isn't there.
func Open(dir string, o Options) (*Store, error) {
	if o.SegmentSize <= 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	if o.Segments <= 0 {
		o.Segments = DefaultSegments
	}
	o.Segments = max(o.Segments, 2) // the one that is written is never dropped
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	s := &Store{dir: filepath.Clean(dir), options: o, closed: make(chan struct{}), streams: map[key]*stream{}}
	s.watcher.root, s.watcher.woken = s.dir, s.wakeProcess
	return s, nil
}

// Close ends followers and stops watching. Writers stay usable until they are
// closed themselves: what a process says last is worth keeping.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return nil
	}
	s.shut = true
	close(s.closed)
	s.mu.Unlock()
	return s.watcher.close()
}

// End marks both streams of a process as ended, so that followers end when
// they have read everything. It is for a spawned process whose writers were
// never closed, because the engine that held them died.
func (s *Store) End(id engine.ProcessID) error {
	for _, st := range []engine.Stream{engine.Stdout, engine.Stderr} {
		str, err := s.hold(id, st)
		if err != nil {
			return err
		}
		err = str.end()
		s.release(str)
		if err != nil {
			return fmt.Errorf("end log of %s: %w", id, err)
		}
	}
	return nil
}

// Bounds are the position of the first byte that is still kept and that after
// the last; both are 0 if nothing was ever written.
func (s *Store) Bounds(id engine.ProcessID, st engine.Stream) (first, end engine.LogPosition, err error) {
	dir, err := s.path(id, st)
	if err != nil {
		return 0, 0, err
	}
	f, e, err := bounds(dir, st)
	if err != nil {
		return 0, 0, fmt.Errorf("read log of %s: %w", id, err)
	}
	return engine.LogPosition(f), engine.LogPosition(e), nil
}

// LastLine is the last line that a process wrote to "out", without blank ones,
// at most 200 bytes of it: valid UTF-8, still hostile. Of a process that writes
// through this Store it comes from memory, else from the end of its log, read
// again when that has grown.
func (s *Store) LastLine(id engine.ProcessID) string {
	s.mu.Lock()
	str := s.streams[key{id, engine.Stdout}]
	s.mu.Unlock()
	if str != nil {
		if line, here := str.lastLine(); here {
			return line
		}
	}
	dir, err := s.path(id, engine.Stdout)
	if err != nil {
		return ""
	}
	return s.tails.lastLine(dir)
}

// Remove deletes all logs of a process. Its followers end; what is still
// written to it goes nowhere.
func (s *Store) Remove(id engine.ProcessID) error {
	dir, err := s.path(id, engine.Stdout)
	if err != nil {
		return err
	}
	s.tails.forget(dir)
	for _, str := range s.forget(id) {
		str.remove()
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove log of %s: %w", id, err)
	}
	return nil
}

// forget takes a process's streams out of the Store and returns them.
func (s *Store) forget(id engine.ProcessID) []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []*stream
	for _, st := range []engine.Stream{engine.Stdout, engine.Stderr} {
		if str := s.streams[key{id, st}]; str != nil {
			gone = append(gone, str)
			delete(s.streams, str.key)
		}
	}
	return gone
}

// hold returns the stream of a process and keeps it in memory until release.
func (s *Store) hold(id engine.ProcessID, st engine.Stream) (*stream, error) {
	dir, err := s.path(id, st)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{id, st}
	str := s.streams[k]
	if str == nil {
		str = &stream{key: k, dir: dir, options: s.options}
		s.streams[k] = str
	}
	str.holders++
	return str, nil
}

// release lets go of a stream. One that a process wrote to stays for its last
// line, unless it has ended.
func (s *Store) release(str *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	str.holders--
	if str.holders == 0 && !str.worthKeeping() && s.streams[str.key] == str {
		delete(s.streams, str.key)
	}
}

// wakeProcess wakes the followers of whatever process has its logs in dir; of
// all, if dir is "".
func (s *Store) wakeProcess(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir == "" {
		for _, str := range s.streams {
			str.wake()
		}
		return
	}
	id := engine.ProcessID(filepath.Base(dir))
	for _, st := range []engine.Stream{engine.Stdout, engine.Stderr} {
		if str := s.streams[key{id, st}]; str != nil {
			str.wake()
		}
	}
}

// path is the directory of a process's logs. Ids become file names here, so
// this is where they are checked.
func (s *Store) path(id engine.ProcessID, st engine.Stream) (string, error) {
	if st != engine.Stdout && st != engine.Stderr {
		return "", engine.Errorf(engine.Invalid, "%q is not a stream", st).WithHint(`streams are "out" and "err"`)
	}
	rest, ok := strings.CutPrefix(string(id), engine.ProcessPrefix)
	if !ok || rest == "" || len(rest) > 64 || strings.ContainsAny(rest, "/\\.\x00") {
		return "", engine.Errorf(engine.Invalid, "%q is not a process id", id)
	}
	return filepath.Join(s.dir, string(id)), nil
}

// gone reports whether an error says that a file isn't there.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
