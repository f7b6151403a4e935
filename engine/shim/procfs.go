//go:build linux

package shim

import (
	"bytes"
	"os"
	"strconv"
)

// Stat is what /proc/<pid>/stat says about a process. With the pid, Start
// is its identity: pids are used again, start times with them are not.
type Stat struct {
	PID     int    `json:"pid,omitempty"`
	Start   uint64 `json:"start,omitempty"` // clock ticks since boot
	Parent  int    `json:"parent,omitempty"`
	Session int    `json:"session,omitempty"`
	State   byte   `json:"state,omitempty"`
	Threads int    `json:"threads,omitempty"`
	Ticks   uint64 `json:"ticks,omitempty"` // of cpu, user and system
}

// Dead: it has exited. A first thread that has ended while others go on, as in
// the middle of an exec from another thread, looks like a zombie and is none.
func (s Stat) Dead() bool { return s.State == 'X' || s.State == 'Z' && s.Threads <= 1 }

// StatOf looks at one process; false if there is none.
func StatOf(pid int) (Stat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, false
	}
	return ParseStat(pid, data)
}

// ParseStat reads the line from behind the program's name, which may hold
// anything, parentheses and spaces too.
func ParseStat(pid int, data []byte) (Stat, bool) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 || end+2 >= len(data) {
		return Stat{}, false
	}
	f := bytes.Fields(data[end+2:])
	if len(f) < 20 || len(f[0]) != 1 {
		return Stat{}, false
	}
	n := func(i int) uint64 { v, _ := strconv.ParseUint(string(f[i]), 10, 64); return v }
	return Stat{
		PID: pid, State: f[0][0], Parent: int(n(1)), Session: int(n(3)),
		Ticks: n(11) + n(12), Start: n(19), Threads: int(n(17)),
	}, true
}

// AllPIDs are the processes that /proc shows.
func AllPIDs() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read counts
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ReadProcs is one look at every process.
func ReadProcs() map[int]Stat {
	pids := AllPIDs()
	table := make(map[int]Stat, len(pids))
	for _, pid := range pids {
		if s, ok := StatOf(pid); ok {
			table[pid] = s
		}
	}
	return table
}

// Descendants are the living processes below root and root itself, and those
// of its session, which orphans keep. Where root's pid has gone to another
// process, the session is that one's.
func Descendants(table map[int]Stat, root Stat) []Stat {
	if root.PID <= 0 {
		return nil
	}
	children := make(map[int][]int, len(table))
	for pid, s := range table {
		children[s.Parent] = append(children[s.Parent], pid)
	}
	seen := map[int]bool{}
	var found []Stat
	var add func(pid int)
	add = func(pid int) {
		s, ok := table[pid]
		if !ok || seen[pid] {
			return
		}
		seen[pid] = true
		if !s.Dead() {
			found = append(found, s)
		}
		for _, child := range children[pid] {
			add(child)
		}
	}
	if s, ok := table[root.PID]; ok && s.Start != root.Start {
		return nil
	}
	add(root.PID)
	for pid, s := range table {
		if s.Session == root.PID && s.Start >= root.Start {
			add(pid)
		}
	}
	return found
}

// EnvironOf is a process's environment as it was when it was executed.
func EnvironOf(pid int) [][]byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return bytes.Split(data, []byte{0})
}

// NameOf is the program's name.
func NameOf(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}
