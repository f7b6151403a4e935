package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sbx/engine"
)

// segmentPath is the file of the segment whose first byte is base. The digits
// are padded, so that names sort as numbers do.
func segmentPath(dir string, st engine.Stream, base int64) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%020d.log", st, base))
}

// indexPath is the file of a segment's arrival times.
func indexPath(dir string, st engine.Stream, base int64) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%020d.idx", st, base))
}

// endPath is the file that says that a stream has ended.
func endPath(dir string, st engine.Stream) string {
	return filepath.Join(dir, string(st)+".end")
}

// segments are the bases of what is there of a stream, in order. No directory
// means no segments.
func segments(dir string, st engine.Stream) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, e := range entries {
		if base, ok := parseSegment(e.Name(), st); ok {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, nil
}

func parseSegment(name string, st engine.Stream) (int64, bool) {
	digits, ok := strings.CutPrefix(name, string(st)+"-")
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, ".log")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	base, err := strconv.ParseInt(digits, 10, 64)
	return base, err == nil && base >= 0
}

// bounds are the first byte kept of a stream and the end of it.
func bounds(dir string, st engine.Stream) (first, end int64, err error) {
	for {
		bases, err := segments(dir, st)
		if err != nil || len(bases) == 0 {
			return 0, 0, err
		}
		last := bases[len(bases)-1]
		fi, err := os.Stat(segmentPath(dir, st, last))
		if gone(err) {
			continue // all of it was dropped in between; look again
		}
		if err != nil {
			return 0, 0, err
		}
		return bases[0], last + fi.Size(), nil
	}
}

// ended reports whether nothing more will be written to a stream.
func ended(dir string, st engine.Stream) bool {
	_, err := os.Lstat(endPath(dir, st))
	return err == nil
}
