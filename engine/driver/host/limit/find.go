//go:build linux

package limit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mounts say where this process is in each hierarchy of version 1: the
// directory of its own group, by controller.
type mounts map[string]string

func readMounts() mounts {
	own, _ := os.ReadFile("/proc/self/cgroup") // none: no groups
	info, _ := os.ReadFile("/proc/self/mountinfo")
	return parseMounts(string(own), string(info))
}

// parseMounts reads /proc/self/cgroup and /proc/self/mountinfo. Of a container
// that is shown a part of the host's tree only, what is below that part counts.
func parseMounts(own, info string) mounts {
	paths := map[string]string{} // by controller
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || f[1] == "" {
			continue // version 2
		}
		for name := range strings.SplitSeq(f[1], ",") {
			paths[name] = f[2]
		}
	}
	found := mounts{}
	for line := range strings.Lines(info) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		at, what := strings.Fields(left), strings.Fields(right)
		if !ok || len(at) < 5 || len(what) < 3 || what[0] != "cgroup" {
			continue
		}
		for name := range strings.SplitSeq(what[len(what)-1], ",") {
			path, mine := paths[name]
			if !mine {
				continue
			}
			rel, err := filepath.Rel(at[3], path)
			if err != nil || !filepath.IsLocal(rel) {
				rel = "." // the group's path as the host sees it, of which a part is mounted here
			}
			found[name] = filepath.Join(at[4], rel)
		}
	}
	return found
}

// openControl finds where groups of a controller can be made: in version 2
// where that has it, else in version 1.
func openControl(m mounts, unified, name, tag string) control {
	c := control{name: name}
	err := errNone
	if unified != "" {
		if err = enableAbove(unified, name); err == nil {
			c.version, c.root = 2, unified
			return c
		}
	}
	home, there := m[name]
	if !there {
		c.why, c.do = err.Error(), delegate
		return c
	}
	c.root = filepath.Join(home, tag)
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		c.why = fmt.Sprintf("no group can be made in %s: %v", home, plain(err))
		c.do = "run the engine as root, or let its user write there"
		return c
	}
	if err := unix.Access(filepath.Join(c.root, "tasks"), unix.W_OK); err != nil {
		c.why = fmt.Sprintf("no thread may be put into %s: %v", c.root, err)
		c.do = "run the engine as root"
		return c
	}
	c.version, c.home = 1, home
	c.share()
	return c
}

const delegate = "start the engine in a group of its own that is delegated to it (systemd-run --user --scope -p Delegate=yes sbx serve)"

var errNone = errors.New("this host has no control group for it that the engine may use")

func plain(err error) error {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// enableAbove lets the sandboxes' group of version 2 have a controller, and
// hand it on.
func enableAbove(unified, name string) error {
	own := filepath.Dir(unified)
	if !has(own, "cgroup.controllers", name) {
		return fmt.Errorf("%s has no %s controller", own, name)
	}
	if !has(own, "cgroup.subtree_control", name) {
		if err := enableHere(own, name); err != nil {
			return fmt.Errorf("%s can't hand on its %s controller: %w", own, name, plain(err))
		}
	}
	if err := enable(unified, name); err != nil {
		return fmt.Errorf("%s can't hand on its %s controller: %w", unified, name, plain(err))
	}
	return nil
}

// Leaf is the group that the engine itself goes into, in version 2: a group
// that hands on controllers may have no processes of its own.
const Leaf = "sbx-engine"

func enableHere(own, name string) error {
	err := enable(own, name)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	pids, readErr := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	if readErr != nil {
		return readErr
	}
	self := fmt.Sprint(os.Getpid())
	if others := slices.DeleteFunc(strings.Fields(string(pids)), func(p string) bool { return p == self }); len(others) > 0 {
		return fmt.Errorf("%d other processes are in it", len(others))
	}
	leaf := filepath.Join(own, Leaf)
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(self), 0); err != nil {
		return err
	}
	return enable(own, name)
}
