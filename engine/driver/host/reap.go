//go:build linux

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
	"sbx/engine/shim"
)

// A markedProc is a process with this data directory's marker.
type markedProc struct {
	shim.Stat
	mark string
}

// marked are the living processes of table whose mark is under, or begins with
// it and a slash. "" is all of them.
func (h *Host) marked(table map[int]shim.Stat, under string) []markedProc {
	ours := []byte(h.marker(""))
	var found []markedProc
	for pid, s := range table {
		if s.Dead() {
			continue
		}
		for _, kv := range shim.EnvironOf(pid) {
			if mark, ok := bytes.CutPrefix(kv, ours); ok && (under == "" || within(string(mark), under)) {
				found = append(found, markedProc{s, string(mark)})
				break
			}
		}
	}
	return found
}

// strays are what a box, or with "" every box, runs without a live Proc: its
// cgroups and the marked processes outside of any.
func (h *Host) strays(id engine.SandboxID) (groups []shim.Cgroup, procs []shim.Stat) {
	ours := map[int]bool{}
	live := map[string]bool{} // cgroups and marks
	for _, b := range h.open() {
		if id != "" && b.id != id {
			continue
		}
		for _, p := range append(b.live(), b.endingNested()...) {
			live[p.mark] = true
			cg, begun := b.standing(p)
			if cg != "" {
				live[string(cg)] = true
			}
			if !begun {
				continue
			}
			for _, s := range p.child.Members() {
				ours[s.PID] = true
			}
		}
	}
	if h.cgroups != nil {
		for _, g := range h.cgroups.of(id) {
			if !live[string(g)] {
				groups = append(groups, g)
			}
		}
	}
	for _, m := range h.marked(shim.ReadProcs(), string(id)) {
		if !ours[m.PID] && !live[m.mark] {
			procs = append(procs, m.Stat)
		}
	}
	return groups, procs
}

// endingNested are those whose namespace is being taken down by the kernel.
func (b *box) endingNested() []*proc {
	return slices.DeleteFunc(b.leaving(), func(p *proc) bool { return p.child == nil || !p.child.Tree().Inside })
}

// killStrays kills them until there are none, and says in words what it killed.
func (h *Host) killStrays(ctx context.Context, id engine.SandboxID) ([]string, error) {
	killed := map[procKey]string{}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		groups, procs := h.strays(id)
		for _, g := range groups {
			for _, pid := range g.Pids() {
				if s, ok := shim.StatOf(pid); ok {
					killed[procKey{s.PID, s.Start}] = describe(s)
				}
			}
			if err := g.Kill(ctx); err != nil {
				return words(killed), err
			}
			if err := g.Remove(); err != nil && !errors.Is(err, unix.EBUSY) {
				return words(killed), fmt.Errorf("remove %s: %w", filepath.Base(string(g)), err)
			}
		}
		left := false
		for _, s := range procs {
			text := describe(s)
			if shim.SignalOne(s, unix.SIGKILL) {
				killed[procKey{s.PID, s.Start}], left = text, true
			}
		}
		if !left {
			return words(killed), nil
		}
		if err := shim.Pause(ctx, wait); err != nil {
			return words(killed), fmt.Errorf("wait for %d processes: %w", len(procs), err)
		}
	}
}

// procKey is a process's identity.
type procKey struct {
	pid   int
	start uint64
}

func describe(s shim.Stat) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, shim.NameOf(s.PID))
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
// boxes.
func (h *Host) Reap(ctx context.Context) ([]string, error) {
	killed, err := h.killStrays(ctx, "")
	if err != nil {
		return killed, fmt.Errorf("reap: %w", err)
	}
	if h.cgroups != nil {
		h.cgroups.forgetOlder()
		h.limits.Sweep()
	}
	return killed, nil
}
