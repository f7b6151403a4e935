package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// cgroups are this data directory's part of the cgroup v2 tree: a directory
// per box in it, and in that one per start of a process, which is born there.
// No controller is needed: the kill file, the count of what lives and cpu.stat
// are always there, on hybrid hosts too.
type cgroups struct {
	root  string   // …/sbx-<tag>
	older []string // roots that earlier engines used
	note  string   // the file that remembers them
	next  atomic.Uint64
}

// A cgroup is the tree of one started process.
type cgroup struct{ dir string }

// openCgroups finds where this process may make cgroups; nil if nowhere.
func openCgroups(ctx context.Context, h *Host) *cgroups {
	base, ok := ownCgroup()
	if !ok {
		return nil
	}
	c := &cgroups{root: filepath.Join(base, "sbx-"+h.tag), note: filepath.Join(h.cfg.Dir, "boxes", "cgroups")}
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return nil
	}
	if err := c.try(h.spawner); err != nil {
		os.Remove(c.root)
		h.cfg.Log.DebugContext(ctx, "no cgroups", "err", err)
		return nil
	}
	c.remember()
	return c
}

// ownCgroup is the directory of this process's own cgroup in version 2.
func ownCgroup() (string, bool) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	path, found := "", false
	for line := range strings.Lines(string(own)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path, found = p, true
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || !found {
		return "", false
	}
	for line := range strings.Lines(string(mounts)) {
		left, right, ok := strings.Cut(line, " - ")
		fields := strings.Fields(left)
		if !ok || len(fields) < 5 || !strings.HasPrefix(right, "cgroup2 ") {
			continue
		}
		rel, err := filepath.Rel(fields[3], path) // below the part that is mounted
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		return filepath.Join(fields[4], rel), true
	}
	return "", false
}

// try starts something in a cgroup: being allowed to make one isn't enough.
func (c *cgroups) try(s *spawner) error {
	g, err := c.make("try", "try")
	if err != nil {
		return err
	}
	defer c.removeBox("try")
	fd, err := g.open()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	pid, err := s.spawn("/bin/sh", []string{"sh", "-c", ":"}, &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd},
	})
	if err != nil {
		return err
	}
	var ws syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			return err
		}
	}
}

// remember writes down the root for an engine that is started elsewhere, in
// another session's cgroup, and must find what this one leaves.
func (c *cgroups) remember() {
	if f, err := os.Open(c.note); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			// Only names of ours: the file is no licence to kill elsewhere.
			if p := lines.Text(); filepath.IsAbs(p) && filepath.Base(p) == filepath.Base(c.root) && p != c.root {
				c.older = append(c.older, p)
			}
		}
	}
	roots := append(slices.Clone(c.older), c.root)
	_ = os.WriteFile(c.note, []byte(strings.Join(roots, "\n")+"\n"), 0o600) // without it Reap has the markers
}

// make makes the cgroup that a process is to be born in.
func (c *cgroups) make(box engine.SandboxID, id engine.ProcessID) (*cgroup, error) {
	dir := filepath.Join(c.root, string(box))
	if err := os.MkdirAll(dir, 0o755); err != nil { // somebody may have tidied up
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	for {
		// A start gets one of its own: what an earlier one left behind is in another.
		sub := filepath.Join(dir, fmt.Sprintf("%s.%d", id, c.next.Add(1)))
		err := os.Mkdir(sub, 0o755)
		if err == nil {
			return &cgroup{sub}, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
	}
}

// of are the cgroups of a box, or of all boxes for "".
func (c *cgroups) of(box engine.SandboxID) []*cgroup {
	pattern := string(box)
	if pattern == "" {
		pattern = "*"
	}
	var found []*cgroup
	for _, root := range append([]string{c.root}, c.older...) {
		dirs, _ := filepath.Glob(filepath.Join(root, pattern, engine.ProcessPrefix+"*")) // the pattern is right
		for _, dir := range dirs {
			if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
				found = append(found, &cgroup{dir})
			}
		}
	}
	return found
}

func (c *cgroups) removeBox(box engine.SandboxID) { _ = rmdirs(filepath.Join(c.root, string(box))) }

// close removes the root if nothing is in it.
func (c *cgroups) close() { _ = rmdirs(c.root) }

// open is a descriptor to be born through.
func (g *cgroup) open() (int, error) {
	return unix.Open(g.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// pids are the living processes in it, also in cgroups that they made below.
func (g *cgroup) pids() []int {
	var pids []int
	filepath.WalkDir(g.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // gone meanwhile, or a file
		}
		data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, f := range bytes.Fields(data) {
			if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// empty reports whether nothing lives in it or below.
func (g *cgroup) empty() bool {
	data, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
	return errors.Is(err, os.ErrNotExist) || bytes.Contains(data, []byte("populated 0"))
}

// kill kills everything in it, forks under way included, and waits until it
// is empty.
func (g *cgroup) kill(ctx context.Context) error {
	for wait := time.Millisecond; !g.empty(); wait = min(2*wait, 20*time.Millisecond) {
		if err := os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0); err != nil {
			for _, pid := range g.pids() { // a kernel before 5.14
				if s, ok := statOf(pid); ok {
					signalOne(s, unix.SIGKILL)
				}
			}
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("kill %s: %w", filepath.Base(g.dir), err)
		}
	}
	return nil
}

// freeze holds everything in it still and returns what lets it go on.
func (g *cgroup) freeze() (thaw func()) {
	file := filepath.Join(g.dir, "cgroup.freeze")
	if os.WriteFile(file, []byte("1"), 0) != nil {
		return func() {} // a kernel before 5.2
	}
	for range 100 {
		data, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
		if err != nil || bytes.Contains(data, []byte("frozen 1")) {
			break
		}
		_ = pause(context.Background(), 100*time.Microsecond) // what is in a system call takes its time
	}
	return func() { _ = os.WriteFile(file, []byte("0"), 0) } // it is gone, then
}

// remove removes an empty cgroup; the box's own stays, it has its accounts.
func (g *cgroup) remove() error { return rmdirs(g.dir) }

// rmdirs removes a cgroup and those below it.
func rmdirs(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			_ = rmdirs(filepath.Join(dir, e.Name())) // then dir's own removal says so
		}
	}
	return os.Remove(dir)
}

// pause waits, or says that ctx has ended.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// forgetOlder forgets the roots of earlier engines; nothing is left in them.
func (c *cgroups) forgetOlder() {
	for _, root := range c.older {
		_ = rmdirs(root)
	}
	c.older = nil
	_ = os.WriteFile(c.note, []byte(c.root+"\n"), 0o600) // as in remember
}
