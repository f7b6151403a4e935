package logs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sbx/engine"
)

// A stream is one log in memory: where its writers meet, and where followers
// wait.
type stream struct {
	key     key
	dir     string
	options Options
	holders int // guarded by Store.mu

	// waiting says that somebody waits, so that a write that nobody waits for
	// costs one load.
	waiting atomic.Bool
	wakeMu  sync.Mutex
	woken   chan struct{} // guarded by wakeMu; closed to wake

	mu      sync.Mutex
	writers int // open Writers; they share what follows
	file    *os.File
	bases   []int64 // of the segments on disk; the last is file's
	size    int64   // of file
	index   indexWriter
	last    lastLine
	written bool // by this Store
	over    bool // ended: followers need not look on disk
	removed bool
}

// waiter is closed at the next wake. Take it before reading, so that nothing
// is written in between unseen.
func (s *stream) waiter() <-chan struct{} {
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	if s.woken == nil {
		s.woken = make(chan struct{})
	}
	s.waiting.Store(true)
	return s.woken
}

func (s *stream) wake() {
	if !s.waiting.Load() {
		return
	}
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	if s.woken != nil {
		close(s.woken)
		s.woken = nil
	}
	s.waiting.Store(false)
}

// open makes the stream ready to append after what is on disk. The caller
// holds mu.
func (s *stream) open() error {
	if s.file != nil {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	bases, err := segments(s.dir, s.key.stream)
	if err != nil {
		return err
	}
	if len(bases) == 0 {
		bases = []int64{0}
	}
	s.bases = bases
	s.index.fine = fine(s.dir)
	return s.openSegment(bases[len(bases)-1])
}

func (s *stream) openSegment(base int64) error {
	f, err := os.OpenFile(segmentPath(s.dir, s.key.stream, base), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close() // nothing was written: its error says nothing
		return err
	}
	s.file, s.size = f, fi.Size()
	s.index.open(indexPath(s.dir, s.key.stream, base), base+s.size)
	return nil
}

// endsInLine reports whether the log ends in the middle of a line. One that
// ends with a segment isn't looked at: rare, and of no weight.
func (s *stream) endsInLine() bool {
	var b [1]byte
	if s.size == 0 {
		return false
	}
	n, _ := s.file.ReadAt(b[:], s.size-1) // unreadable: leave it as it is
	return n == 1 && b[0] != '\n'
}

// position is where the log ends; it stays known when a rotation fails.
func (s *stream) position() int64 {
	if len(s.bases) == 0 {
		return 0
	}
	return s.bases[len(s.bases)-1] + s.size
}

// write appends p, over as many segments as it takes.
func (s *stream) write(p []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return len(p), nil
	}
	now := time.Now()
	for written < len(p) {
		if s.size >= s.options.SegmentSize {
			if err := s.rotate(); err != nil {
				return written, s.failed(err)
			}
		}
		part := p[written:min(len(p), written+int(s.options.SegmentSize-s.size))]
		s.index.note(s.position(), now)
		n, err := s.file.Write(part)
		written += n
		s.size += int64(n)
		if err != nil {
			return written, s.failed(err)
		}
	}
	s.written = true
	s.last.write(p)
	s.wake()
	return written, nil
}

func (s *stream) failed(err error) error {
	return fmt.Errorf("write log of %s: %w", s.key.process, err)
}

// rotate begins the next segment. The oldest is dropped first, so that there
// are never more than Options.Segments.
func (s *stream) rotate() error {
	next := s.position()
	for len(s.bases) >= s.options.Segments {
		oldest := s.bases[0]
		if err := os.Remove(segmentPath(s.dir, s.key.stream, oldest)); err != nil && !gone(err) {
			return err
		}
		os.Remove(indexPath(s.dir, s.key.stream, oldest)) // of no use alone, and ignored
		s.bases = s.bases[1:]
	}
	s.close()
	s.bases = append(s.bases, next)
	if err := s.openSegment(next); err != nil {
		s.bases = s.bases[:len(s.bases)-1]
		return err
	}
	return nil
}

// close lets go of the files. The bytes are the kernel's by now: a Close that
// fails changes nothing for a reader.
func (s *stream) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	s.index.close()
}

// end writes down that nothing more will come.
func (s *stream) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(endPath(s.dir, s.key.stream), os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	// In memory it has ended even if the disk is full: no follower may hang.
	s.over = true
	s.wake()
	return err
}

// remove cuts the stream off from its files, which the caller deletes.
func (s *stream) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = true
	s.close()
	s.wake()
}

// lastLine is the last line; false if nothing was written here.
func (s *stream) lastLine() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.String(), s.written
}

func (s *stream) worthKeeping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written && !s.over && !s.removed
}

// state is what a follower must know beside what is on disk.
func (s *stream) state() (writing, over, removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writers > 0, s.over, s.removed
}

// A Writer appends to one stream of a process. Several may be open at a time
// in one Store: what an earlier start's grandchildren still say goes between
// the lines of the next start.
type Writer struct {
	store  *Store
	stream *stream
	final  bool
	once   sync.Once
	err    error
}

// Writer opens a stream for appending. A log that ends in the middle of a line
// gets its line end first, so that two starts never share one. Closing a final
// writer marks the stream as ended.
func (s *Store) Writer(id engine.ProcessID, st engine.Stream, final bool) (*Writer, error) {
	return s.writer(id, st, final, true)
}

// Resume opens a stream to go on with what another program was writing to it:
// a line that it hasn't ended is gone on with, too.
func (s *Store) Resume(id engine.ProcessID, st engine.Stream, final bool) (*Writer, error) {
	return s.writer(id, st, final, false)
}

func (s *Store) writer(id engine.ProcessID, st engine.Stream, final, anew bool) (*Writer, error) {
	str, err := s.hold(id, st)
	if err != nil {
		return nil, err
	}
	if err := str.join(anew); err != nil {
		s.release(str)
		return nil, fmt.Errorf("open log of %s: %w", id, err)
	}
	return &Writer{store: s, stream: str, final: final}, nil
}

func (s *stream) join(anew bool) error {
	s.mu.Lock()
	if s.removed {
		s.mu.Unlock()
		return errors.New("it was removed")
	}
	if err := s.open(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.writers++
	cut := anew && s.endsInLine()
	s.mu.Unlock()
	s.wake() // followers need no other process's notice from now on
	if cut {
		// Without room for one byte the next writes say so.
		_, _ = s.write([]byte("\n"))
	}
	return nil
}

func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writers--
	if s.writers == 0 {
		s.close()
	}
	s.wake()
}

// Write appends p as it is.
func (w *Writer) Write(p []byte) (int, error) { return w.stream.write(p) }

// Position is where the log ends now.
func (w *Writer) Position() engine.LogPosition {
	w.stream.mu.Lock()
	defer w.stream.mu.Unlock()
	return engine.LogPosition(w.stream.position())
}

// Close lets go of the stream. Closing again does nothing.
func (w *Writer) Close() error {
	w.once.Do(func() {
		w.stream.leave()
		if w.final {
			w.err = w.stream.end()
		}
		w.store.release(w.stream)
	})
	return w.err
}
