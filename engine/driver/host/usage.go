//go:build linux

package host

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sbx/engine"
	"sbx/engine/shim"
)

// A sample is what Usage saw last.
type sample struct {
	at  time.Time
	cpu time.Duration // in all
}

// clockTick is the kernel's unit of cpu time in /proc, on every architecture.
const clockTick = 10 * time.Millisecond

// Usage is what the box's processes use now. Memory is what is theirs alone:
// resident pages without those of files and shared memory, summed; where the
// kernel accounts a cgroup's memory, its working set. Cpu time is the cgroup's,
// which knows of processes that have ended; else that of those that live.
func (b *box) Usage(ctx context.Context) (engine.Usage, error) {
	if err := ctx.Err(); err != nil {
		return engine.Usage{}, err
	}
	procs, cpu := b.count()
	u := engine.Usage{Processes: len(procs), Disk: b.weigh(lookTime)}
	var counted bool
	if !b.elsewhere() {
		u.Memory, counted = b.host.limits.WorkingSet(string(b.id))
	}
	if !counted {
		for _, pid := range procs {
			u.Memory += privateMemory(pid)
		}
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if past := now.Sub(b.sample.at); !b.sample.at.IsZero() && past > 0 && cpu > b.sample.cpu {
		u.CPU = float64(cpu-b.sample.cpu) / float64(past)
	}
	b.sample = sample{now, cpu}
	return u, nil
}

// count are the pids of the box's live trees and their cpu time.
func (b *box) count() (pids []int, cpu time.Duration) {
	if c := b.host.cgroups; c != nil {
		groups := map[string]bool{filepath.Join(c.root, string(b.id)): true}
		for _, t := range b.trees() {
			pids = append(pids, t.Cgroup.Pids()...)
			groups[filepath.Dir(string(t.Cgroup))] = true
		}
		for dir := range groups {
			cpu += cpuOf(filepath.Join(dir, "cpu.stat"))
		}
		return pids, cpu
	}
	table := b.host.procs.recent()
	for _, t := range b.trees() {
		for _, s := range shim.Descendants(table, t.Root) {
			pids = append(pids, s.PID)
			cpu += time.Duration(s.Ticks) * clockTick
		}
	}
	return pids, cpu
}

// elsewhere reports whether a process of the box lives in a group that an
// engine of another session made.
func (b *box) elsewhere() bool {
	c := b.host.cgroups
	if c == nil {
		return false
	}
	here := filepath.Join(c.root, string(b.id))
	return slices.ContainsFunc(b.trees(), func(t shim.Tree) bool { return t.Cgroup != "" && filepath.Dir(string(t.Cgroup)) != here })
}

// trees are those of the box's processes that have begun: one that is being
// started is there before it has a pid.
func (b *box) trees() []shim.Tree {
	var list []shim.Tree
	for _, p := range b.begun() {
		list = append(list, p.child.Tree())
	}
	return list
}

// begun are those of the live processes that have a pid.
func (b *box) begun() []*proc {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*proc
	for _, p := range b.procs {
		if p.child != nil {
			list = append(list, p)
		}
	}
	return list
}

// standing is the cgroup of a process, which its start may have made already,
// and whether it has a pid.
func (b *box) standing(p *proc) (cg shim.Cgroup, begun bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.cg, p.child != nil
}

// cpuOf reads usage_usec.
func cpuOf(file string) time.Duration {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if v, ok := bytes.CutPrefix(line, []byte("usage_usec ")); ok {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
			return time.Duration(n) * time.Microsecond
		}
	}
	return 0
}

// privateMemory is a process's resident memory less what it shares with files
// and other processes.
func privateMemory(pid int) engine.Size {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	f := bytes.Fields(data)
	if len(f) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(f[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(f[2]), 10, 64)
	return engine.Size(max(0, resident-shared) * int64(os.Getpagesize()))
}
