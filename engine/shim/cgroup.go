//go:build linux

package shim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroup is the directory of a cgroup of version 2. No controller is needed:
// the kill file and the count of what lives are always there.
type Cgroup string

// open is a descriptor to be born through.
func (g Cgroup) open() (int, error) {
	return unix.Open(string(g), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Pids are the living processes in it, also in cgroups that they made below.
func (g Cgroup) Pids() []int {
	var pids []int
	filepath.WalkDir(string(g), func(path string, d os.DirEntry, err error) error {
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

// Empty reports whether nothing lives in it or below.
func (g Cgroup) Empty() bool {
	data, err := os.ReadFile(filepath.Join(string(g), "cgroup.events"))
	return errors.Is(err, os.ErrNotExist) || bytes.Contains(data, []byte("populated 0"))
}

// Kill kills everything in it, forks under way included, and waits until it
// is empty.
func (g Cgroup) Kill(ctx context.Context) error {
	for wait := time.Millisecond; !g.Empty(); wait = min(2*wait, 20*time.Millisecond) {
		if err := os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0); err != nil {
			for _, pid := range g.Pids() { // a kernel before 5.14
				if s, ok := StatOf(pid); ok {
					SignalOne(s, unix.SIGKILL)
				}
			}
		}
		if err := Pause(ctx, wait); err != nil {
			return fmt.Errorf("kill %s: %w", filepath.Base(string(g)), err)
		}
	}
	return nil
}

// freeze holds everything in it still and returns what lets it go on.
func (g Cgroup) freeze() (thaw func()) {
	file := filepath.Join(string(g), "cgroup.freeze")
	if os.WriteFile(file, []byte("1"), 0) != nil {
		return func() {} // a kernel before 5.2
	}
	for range 100 {
		data, err := os.ReadFile(filepath.Join(string(g), "cgroup.events"))
		if err != nil || bytes.Contains(data, []byte("frozen 1")) {
			break
		}
		_ = Pause(context.Background(), 100*time.Microsecond) // what is in a system call takes its time
	}
	return func() { _ = os.WriteFile(file, []byte("0"), 0) } // it is gone, then
}

// Remove removes an empty cgroup; the box's own stays, it has its accounts.
func (g Cgroup) Remove() error { return RemoveCgroups(string(g)) }

// RemoveCgroups removes a cgroup and those below it.
func RemoveCgroups(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			_ = RemoveCgroups(filepath.Join(dir, e.Name())) // then dir's own removal says so
		}
	}
	return os.Remove(dir)
}

// Pause waits, or says that ctx has ended.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
