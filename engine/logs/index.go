package logs

import (
	"encoding/binary"
	"math"
	"os"
	"sort"
	"time"
)

// The index of a segment says when bytes arrived: records of an offset and a
// time, each true for the bytes from its offset to the next record's. It is
// sparse, and it is a convenience: a record that is torn, missing or senseless
// costs a line its exact time and nothing else.
const (
	recordSize    = 16
	indexInterval = time.Second
	indexBytes    = 64 << 10
)

type record struct {
	offset int64
	milli  int64
}

func (r record) time() time.Time { return time.UnixMilli(r.milli).UTC() }

// indexWriter appends to the index of the segment that is being written.
type indexWriter struct {
	path string
	end  int64 // of the segment when it was opened
	file *os.File
	last record
	fine bool // every write has its own time
}

// open names the index; the file is opened by the first record.
func (w *indexWriter) open(path string, end int64) {
	w.close()
	*w = indexWriter{path: path, end: end, fine: w.fine}
}

// note adds a record for what arrives at offset, if the last one is too old or
// too far away. It goes to disk before the bytes it speaks of, so whoever sees
// those sees their time.
func (w *indexWriter) note(offset int64, now time.Time) {
	r := record{offset, now.UnixMilli()}
	if w.file != nil {
		age := r.milli - w.last.milli
		far := offset-w.last.offset >= indexBytes
		if age == 0 || (age > 0 && age < indexInterval.Milliseconds() && !far && !w.fine) {
			return
		}
	} else if !w.openFile() {
		return
	}
	var b [recordSize]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(r.offset))
	binary.LittleEndian.PutUint64(b[8:], uint64(r.milli))
	if _, err := w.file.Write(b[:]); err == nil { // else these bytes keep the time of those before
		w.last = r
	}
}

// openFile opens the index and cuts off what a crash left: half a record, or
// records of bytes that never came.
func (w *indexWriter) openFile() bool {
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return false
	}
	n := records(f)
	for n > 0 {
		if r, ok := readRecord(f, n-1); ok && r.offset <= w.end {
			break
		}
		n--
	}
	if err := f.Truncate(n * recordSize); err != nil {
		f.Close() // unusable; times come from the file's own
		return false
	}
	w.file = f
	return true
}

func (w *indexWriter) close() {
	if w.file != nil {
		w.file.Close() // records are complete or ignored
		w.file = nil
	}
}

// records is how many whole records an index has.
func records(f *os.File) int64 {
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
	return fi.Size() / recordSize
}

func readRecord(f *os.File, i int64) (record, bool) {
	var b [recordSize]byte
	if n, _ := f.ReadAt(b[:], i*recordSize); n < recordSize {
		return record{}, false
	}
	return record{int64(binary.LittleEndian.Uint64(b[:8])), int64(binary.LittleEndian.Uint64(b[8:]))}, true
}

// search is the number of the first record for which found is true.
func search(f *os.File, found func(record) bool) int64 {
	return int64(sort.Search(int(records(f)), func(i int) bool {
		r, ok := readRecord(f, int64(i))
		return !ok || found(r)
	}))
}

// A clock tells when the bytes of one segment arrived, to a reader that goes
// through it forwards.
type clock struct {
	path string
	file *os.File // nil: no index was found yet
	now  time.Time
	next int64 // number of the record after now's
	// until is the offset of that record. It is looked up when it is unknown,
	// and again after each refresh while it wasn't there.
	until int64
	known bool
}

// openClock opens the index of a segment for a reader at pos. Without one,
// every byte has the time of the segment's last change.
func openClock(path string, segment *os.File, pos int64) clock {
	c := clock{path: path}
	if fi, err := segment.Stat(); err == nil {
		c.now = fi.ModTime().UTC()
	}
	c.open(pos)
	return c
}

func (c *clock) open(pos int64) {
	f, err := os.Open(c.path)
	if err != nil {
		return
	}
	c.file = f
	c.next = search(f, func(r record) bool { return r.offset > pos })
	if r, ok := readRecord(f, max(0, c.next-1)); ok {
		c.now = r.time()
	}
}

// at is when the byte at pos arrived.
func (c *clock) at(pos int64) time.Time {
	for c.file != nil {
		if !c.known {
			r, ok := readRecord(c.file, c.next)
			if !ok {
				r.offset = math.MaxInt64
			}
			c.until, c.known = r.offset, true
		}
		if pos < c.until {
			break
		}
		r, ok := readRecord(c.file, c.next)
		if !ok {
			break
		}
		c.now, c.known = r.time(), false
		c.next++
	}
	return c.now
}

// refresh says that bytes up to pos were read, which may be newer than what
// was seen of the index.
func (c *clock) refresh(pos int64) {
	if c.file == nil {
		c.open(pos)
	}
	if c.until == math.MaxInt64 {
		c.known = false
	}
}

func (c *clock) close() {
	if c.file != nil {
		c.file.Close() // only read
		c.file = nil
	}
}
