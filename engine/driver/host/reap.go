package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// marked adds to found the living processes of table whose environment has
// this data directory's marker with the given rest, or anything that begins
// with it and a slash. "" is every one of this directory.
func (h *Host) marked(table map[int]procStat, found []procStat, rest string) []procStat {
	want := []byte(markerName + "=" + h.tag + "/" + rest)
	known := map[int]bool{}
	for _, s := range found {
		known[s.PID] = true
	}
	for pid, s := range table {
		if known[pid] || s.dead() {
			continue
		}
		for _, kv := range environOf(pid) {
			after, ok := bytes.CutPrefix(kv, want)
			if ok && (rest == "" || len(after) == 0 || after[0] == '/') {
				found = append(found, s)
				break
			}
		}
	}
	return found
}

// strays are what a box, or with "" every box, runs without a live Proc: its
// cgroups and the marked processes outside of any.
func (h *Host) strays(id engine.SandboxID) (groups []*cgroup, procs []procStat) {
	ours := map[int]bool{}
	live := map[string]bool{}
	for _, b := range h.open() {
		if id != "" && b.id != id {
			continue
		}
		for _, p := range append(b.live(), b.endingNested()...) {
			if p.cg != nil {
				live[p.cg.dir] = true
			}
			for _, s := range p.members() {
				ours[s.PID] = true
			}
		}
	}
	if h.cgroups != nil {
		for _, g := range h.cgroups.of(id) {
			if !live[g.dir] {
				groups = append(groups, g)
			}
		}
	}
	for _, s := range h.marked(readProcs(), nil, string(id)) {
		if !ours[s.PID] {
			procs = append(procs, s)
		}
	}
	return groups, procs
}

// endingNested are those whose namespace is being taken down by the kernel.
func (b *box) endingNested() []*proc {
	return slices.DeleteFunc(b.leaving(), func(p *proc) bool { return !p.nested() })
}

// killStrays kills them until there are none, and says in words what it killed.
func (h *Host) killStrays(ctx context.Context, id engine.SandboxID) ([]string, error) {
	killed := map[procKey]string{}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		groups, procs := h.strays(id)
		for _, g := range groups {
			for _, pid := range g.pids() {
				if s, ok := statOf(pid); ok {
					killed[procKey{s.PID, s.Start}] = describe(s)
				}
			}
			if err := g.kill(ctx); err != nil {
				return words(killed), err
			}
			if err := g.remove(); err != nil && !errors.Is(err, unix.EBUSY) {
				return words(killed), fmt.Errorf("remove %s: %w", filepath.Base(g.dir), err)
			}
		}
		left := false
		for _, s := range procs {
			text := describe(s)
			if signalOne(s, unix.SIGKILL) {
				killed[procKey{s.PID, s.Start}], left = text, true
			}
		}
		if !left {
			return words(killed), nil
		}
		if err := pause(ctx, wait); err != nil {
			return words(killed), fmt.Errorf("wait for %d processes: %w", len(procs), err)
		}
	}
}

func describe(s procStat) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, nameOf(s.PID))
	return fmt.Sprintf("%s (pid %d)", name, s.PID)
}

func words(killed map[procKey]string) []string {
	return slices.Sorted(maps.Values(killed))
}

// KillStrays kills what an earlier start has left in the box.
func (b *box) KillStrays(ctx context.Context) ([]string, error) {
	killed, err := b.host.killStrays(ctx, b.id)
	if err != nil {
		return killed, fmt.Errorf("kill strays of %s: %w", b.id, err)
	}
	return killed, nil
}

// Reap kills what an engine that was killed has left in this data directory's
// boxes, and removes what half-made boxes and it have left on disk.
func (h *Host) Reap(ctx context.Context) ([]string, error) {
	killed, err := h.killStrays(ctx, "")
	if err != nil {
		return killed, fmt.Errorf("reap: %w", err)
	}
	if h.cgroups != nil {
		h.cgroups.forgetOlder()
	}
	return killed, nil
}
