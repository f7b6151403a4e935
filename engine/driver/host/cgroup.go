//go:build linux

package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"sbx/engine"
	"sbx/engine/driver/host/limit"
	"sbx/engine/shim"
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
	if err := c.try(ctx, h.runner); err != nil {
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
			path, found = strings.TrimSuffix(p, "/"+limit.Leaf), true // an earlier engine's own, whose child this one is
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
func (c *cgroups) try(ctx context.Context, r *shim.Runner) error {
	g, err := c.make("try", "try")
	if err != nil {
		return err
	}
	defer c.removeBox("try")
	p, err := r.Start(ctx, shim.Order{ID: "try", Argv: []string{"/bin/sh", "-c", ":"}, Cgroup: string(g)}, unheard{}, nil, shim.Hooks{})
	if err != nil {
		return err
	}
	<-p.Gone()
	return nil
}

// unheard is for what nobody listens to.
type unheard struct{}

func (unheard) Write(p []byte) (int, error) { return len(p), nil }
func (unheard) Close() error                { return nil }

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
func (c *cgroups) make(box engine.SandboxID, id engine.ProcessID) (shim.Cgroup, error) {
	dir := filepath.Join(c.root, string(box))
	if err := os.MkdirAll(dir, 0o755); err != nil { // somebody may have tidied up
		return "", fmt.Errorf("make cgroup: %w", err)
	}
	for {
		// A start gets one of its own: what an earlier one left behind is in another.
		sub := filepath.Join(dir, fmt.Sprintf("%s.%d", id, c.next.Add(1)))
		err := os.Mkdir(sub, 0o755)
		if err == nil {
			return shim.Cgroup(sub), nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("make cgroup: %w", err)
		}
	}
}

// of are the cgroups of a box, or of all boxes for "".
func (c *cgroups) of(box engine.SandboxID) []shim.Cgroup {
	pattern := string(box)
	if pattern == "" {
		pattern = "*"
	}
	var found []shim.Cgroup
	for _, root := range append([]string{c.root}, c.older...) {
		dirs, _ := filepath.Glob(filepath.Join(root, pattern, engine.ProcessPrefix+"*")) // the pattern is right
		for _, dir := range dirs {
			if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
				found = append(found, shim.Cgroup(dir))
			}
		}
	}
	return found
}

func (c *cgroups) removeBox(box engine.SandboxID) {
	_ = shim.RemoveCgroups(filepath.Join(c.root, string(box)))
}

// close removes the root if nothing is in it.
func (c *cgroups) close() { _ = shim.RemoveCgroups(c.root) }

// forgetOlder forgets the roots of earlier engines that nothing is left in. What
// shims still run there is found there.
func (c *cgroups) forgetOlder() {
	c.older = slices.DeleteFunc(c.older, func(root string) bool {
		err := shim.RemoveCgroups(root)
		return err == nil || errors.Is(err, os.ErrNotExist)
	})
	roots := append(slices.Clone(c.older), c.root)
	_ = os.WriteFile(c.note, []byte(strings.Join(roots, "\n")+"\n"), 0o600) // as in remember
}
