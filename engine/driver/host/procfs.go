package host

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"
)

// procStat is what /proc/<pid>/stat says about a process. With the pid, Start
// is its identity: pids are used again, start times with them are not.
type procStat struct {
	PID, Parent, Session int
	State                byte
	Threads              int
	Start                uint64 // clock ticks since boot
	Ticks                uint64 // of cpu, user and system
}

// dead: it has exited. A first thread that has ended while others go on, as in
// the middle of an exec from another thread, looks like a zombie and is none.
func (s procStat) dead() bool { return s.State == 'X' || s.State == 'Z' && s.Threads <= 1 }

func statOf(pid int) (procStat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	return parseStat(pid, data)
}

// parseStat reads the line from behind the program's name, which may hold
// anything, parentheses and spaces too.
func parseStat(pid int, data []byte) (procStat, bool) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 || end+2 >= len(data) {
		return procStat{}, false
	}
	f := bytes.Fields(data[end+2:])
	if len(f) < 20 || len(f[0]) != 1 {
		return procStat{}, false
	}
	n := func(i int) uint64 { v, _ := strconv.ParseUint(string(f[i]), 10, 64); return v }
	return procStat{
		PID: pid, State: f[0][0], Parent: int(n(1)), Session: int(n(3)),
		Ticks: n(11) + n(12), Start: n(19), Threads: int(n(17)),
	}, true
}

// allPIDs are the processes that /proc shows.
func allPIDs() []int {
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

// readProcs is one look at every process.
func readProcs() map[int]procStat {
	pids := allPIDs()
	table := make(map[int]procStat, len(pids))
	for _, pid := range pids {
		if s, ok := statOf(pid); ok {
			table[pid] = s
		}
	}
	return table
}

// descendants are the living processes below root and root itself, and those
// of its session, which orphans keep.
func descendants(table map[int]procStat, root procStat) []procStat {
	children := make(map[int][]int, len(table))
	for pid, s := range table {
		children[s.Parent] = append(children[s.Parent], pid)
	}
	seen := map[int]bool{}
	var found []procStat
	var add func(pid int)
	add = func(pid int) {
		s, ok := table[pid]
		if !ok || seen[pid] {
			return
		}
		seen[pid] = true
		if !s.dead() {
			found = append(found, s)
		}
		for _, child := range children[pid] {
			add(child)
		}
	}
	if s, ok := table[root.PID]; ok && s.Start == root.Start {
		add(root.PID)
	}
	for pid, s := range table {
		if s.Session == root.PID && s.Start >= root.Start {
			add(pid)
		}
	}
	return found
}

// environOf is a process's environment as it was when it was executed.
func environOf(pid int) [][]byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return bytes.Split(data, []byte{0})
}

// nameOf is the program's name.
func nameOf(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

// procTable is readProcs for many at once: a fleet's usage is one look.
type procTable struct {
	mu    sync.Mutex
	at    time.Time
	table map[int]procStat
}

// tableAge is how old a look may be that is shared.
const tableAge = 500 * time.Millisecond

func (t *procTable) recent() map[int]procStat {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table == nil || time.Since(t.at) > tableAge {
		t.table, t.at = readProcs(), time.Now()
	}
	return t.table
}
