//go:build linux

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// A scale weighs what a box has on disk, without looking at all of a big tree
// every time. What a box could have grown by since it was weighed last is what
// its file system has lost since then, whoever took it; until that could carry
// the box over its limit there is no reason to look. Beside that it is weighed
// anew now and then, the more seldom the longer it took.
type scale struct {
	mu    sync.Mutex
	known engine.Size // of the last walk that was finished
	free  uint64      // of the file system when it began
	ended time.Time
	cost  time.Duration // of it, all steps together
	walk  *weighing     // under way
}

// How long one look may take: one in passing, and one at a box that may be
// over its limit.
const (
	lookTime    = 5 * time.Millisecond
	suspectTime = 200 * time.Millisecond
)

// The least time between two walks, and how many times its own cost passes
// between them; of a box that may be over its limit, the latter alone.
const (
	weighAgain  = time.Minute
	restFactor  = 50
	suspectRest = 4
)

// Disk is what the box's files take: those of its workspace, homes and
// temporary directory, files that were deleted while somebody has them open
// included. It may be some moments old. Links are not followed.
func (b *box) Disk(ctx context.Context) (engine.Size, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return b.weigh(suspectTime), nil
}

// weigh looks for as long as there is a reason to, at most for long.
func (b *box) weigh(long time.Duration) engine.Size {
	free, ok := freeOn(b.workspace)
	limit := b.limits().Disk
	s := &b.scale
	s.mu.Lock()
	defer s.mu.Unlock()
	suspect := ok && limit > 0 && s.grown(free) >= limit
	if s.walk == nil && s.due(time.Now(), suspect) {
		s.walk = newWeighing(b, free)
	}
	if s.walk == nil {
		return s.known
	}
	if !suspect {
		long = min(long, lookTime)
	}
	begun := time.Now()
	done := s.walk.step(begun.Add(long))
	s.walk.cost += time.Since(begun)
	if !done {
		return max(s.known, s.walk.total)
	}
	if suspect {
		s.walk.addDeleted(b)
	}
	s.known, s.free, s.cost, s.ended = s.walk.total, s.walk.free, s.walk.cost, time.Now()
	if s.walk.deep { // what is beneath the longest path can't be seen, and is no accident
		s.known = max(s.known, limit+1)
	}
	s.walk = nil
	return s.known
}

// grown is what the box has at most, by what its file system lost.
func (s *scale) grown(free uint64) engine.Size {
	if free >= s.free {
		return s.known
	}
	return s.known + engine.Size(s.free-free)
}

func (s *scale) due(now time.Time, suspect bool) bool {
	since := now.Sub(s.ended)
	if suspect {
		return since > suspectRest*s.cost
	}
	return since > max(weighAgain, restFactor*s.cost)
}

// close lets go of a walk that nobody will finish.
func (s *scale) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.walk != nil {
		s.walk.close()
		s.walk = nil
	}
}

func freeOn(path string) (uint64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return st.Bfree * uint64(st.Bsize), true
}

// A weighing is a walk that can be left and taken up again.
type weighing struct {
	free  uint64
	cost  time.Duration
	total engine.Size
	deep  bool // something lies below the longest path there is

	roots []string // still to be walked
	root  *os.File
	dev   uint64
	dirs  []string // below root, still to be read
	dir   *os.File
	seen  map[fileID]bool // files with several names
}

type fileID struct{ dev, ino uint64 }

func newWeighing(b *box, free uint64) *weighing {
	roots := []string{b.workspace}
	for _, own := range []string{"home", "agent", "tmp"} {
		roots = append(roots, filepath.Join(b.dir, own))
	}
	return &weighing{free: free, roots: roots, seen: map[fileID]bool{}}
}

func (w *weighing) close() {
	for _, f := range []*os.File{w.root, w.dir} {
		if f != nil {
			f.Close()
		}
	}
	w.root, w.dir = nil, nil
}

// step walks until deadline and reports whether it is done.
func (w *weighing) step(deadline time.Time) bool {
	for time.Now().Before(deadline) {
		switch {
		case w.dir != nil:
			w.read()
		case len(w.dirs) > 0:
			w.enter()
		case len(w.roots) > 0:
			w.begin()
		default:
			w.close()
			return true
		}
	}
	return false
}

// begin goes on with the next root; one that isn't there weighs nothing.
func (w *weighing) begin() {
	w.close()
	name := w.roots[0]
	w.roots = w.roots[1:]
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	w.root = os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		w.dev = st.Dev
		w.dirs = append(w.dirs, ".")
	}
}

// enter opens a directory below the root, whoever moves what meanwhile.
func (w *weighing) enter() {
	name := w.dirs[len(w.dirs)-1]
	w.dirs = w.dirs[:len(w.dirs)-1]
	fd, err := unix.Openat2(int(w.root.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NOATIME,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		w.deep = w.deep || errors.Is(err, unix.ENAMETOOLONG)
		return // gone, or closed by its owner
	}
	w.dir = os.NewFile(uintptr(fd), name)
}

// read weighs some of the open directory's entries.
func (w *weighing) read() {
	names, _ := w.dir.Readdirnames(256) // none or an error: it is done
	if len(names) == 0 {
		w.dir.Close()
		w.dir = nil
		return
	}
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(int(w.dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // gone meanwhile
		}
		isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
		if !isDir && st.Nlink > 1 && !w.once(st) {
			continue
		}
		w.total += engine.Size(st.Blocks * 512)
		if isDir {
			w.dirs = append(w.dirs, w.dir.Name()+"/"+name)
		}
	}
}

func (w *weighing) once(st unix.Stat_t) bool {
	id := fileID{st.Dev, st.Ino}
	if w.seen[id] {
		return false
	}
	w.seen[id] = true
	return true
}

// addDeleted adds files that have no name any more and are kept open.
func (w *weighing) addDeleted(b *box) {
	pids, _ := b.count()
	for _, pid := range pids {
		dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
		entries, _ := os.ReadDir(dir) // it has ended meanwhile
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if to, err := os.Readlink(name); err != nil || !strings.HasSuffix(to, " (deleted)") {
				continue
			}
			var st unix.Stat_t
			if unix.Stat(name, &st) == nil && st.Dev == w.dev && st.Nlink == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG && w.once(st) {
				w.total += engine.Size(st.Blocks * 512)
			}
		}
	}
}
