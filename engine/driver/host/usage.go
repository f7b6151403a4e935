//go:build linux

package host

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
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
	if u.Memory, counted = b.host.limits.WorkingSet(string(b.id)); !counted {
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
		for _, t := range b.trees() {
			pids = append(pids, t.Cgroup.Pids()...)
		}
		return pids, cpuOf(filepath.Join(c.root, string(b.id), "cpu.stat"))
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
