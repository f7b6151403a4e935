//go:build linux

package limit

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"sbx/engine"
)

// WorkingSet is a sandbox's memory less what the kernel could drop at once;
// false where nothing counts it.
func (l *Limiter) WorkingSet(box string) (engine.Size, bool) {
	if !l.memory.in() {
		return 0, false
	}
	if l.memory.version == 1 && !l.limited(box) {
		return 0, false // it is in none
	}
	dir := l.memory.box(box)
	file, cache := "memory.current", "inactive_file"
	if l.memory.version == 1 {
		file, cache = "memory.usage_in_bytes", "total_inactive_file"
	}
	used, ok := number(filepath.Join(dir, file))
	if !ok {
		return 0, false
	}
	inactive, _ := value(filepath.Join(dir, "memory.stat"), cache) // without it all counts
	return engine.Size(max(0, used-inactive)), true
}

func (l *Limiter) limited(box string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set[box].Memory > 0
}

// number is a file that holds one.
func number(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	return n, err == nil
}

// value is the one of a key, in a file of a key and a number a line.
func value(file, key string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		k, v, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if ok && string(k) == key {
			n, err := strconv.ParseInt(string(v), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
