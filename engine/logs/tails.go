package logs

import (
	"os"
	"sync"

	"sbx/engine"
)

// tails remembers the last lines of logs that other processes write. The zero
// value is ready.
type tails struct {
	mu    sync.Mutex
	known map[string]tail // by directory
}

type tail struct {
	base, size int64 // of the segment it is from
	line       string
}

// tailRead is how far from the end a last line is looked for.
const tailRead = 4 << 10

// lastLine looks whether the log has grown, and reads its end if so.
func (t *tails) lastLine(dir string) string {
	t.mu.Lock()
	was, ok := t.known[dir]
	t.mu.Unlock()
	if ok {
		fi, err := os.Stat(segmentPath(dir, engine.Stdout, was.base))
		if err == nil && fi.Size() == was.size && !followed(dir, was) {
			return was.line
		}
	}
	bases, err := segments(dir, engine.Stdout)
	if err != nil || len(bases) == 0 {
		return ""
	}
	now := readTail(dir, bases)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]tail{}
	}
	t.known[dir] = now
	return now.line
}

// followed reports whether there is a segment after this one.
func followed(dir string, t tail) bool {
	_, err := os.Lstat(segmentPath(dir, engine.Stdout, t.base+t.size))
	return t.size > 0 && err == nil
}

// readTail reads the end of a log, over two segments if the last has just begun.
func readTail(dir string, bases []int64) tail {
	var data []byte
	last := tail{base: bases[len(bases)-1]}
	for i := len(bases) - 1; i >= max(0, len(bases)-2) && len(data) < tailRead; i-- {
		f, err := os.Open(segmentPath(dir, engine.Stdout, bases[i]))
		if err != nil {
			break
		}
		if fi, err := f.Stat(); err == nil {
			if bases[i] == last.base {
				last.size = fi.Size()
			}
			part := make([]byte, min(fi.Size(), tailRead))
			n, _ := f.ReadAt(part, fi.Size()-int64(len(part))) // what there is
			data = append(part[:n:n], data...)
		}
		f.Close() // only read
	}
	var l lastLine
	l.write(data)
	last.line = l.String()
	return last
}

func (t *tails) forget(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, dir)
}
