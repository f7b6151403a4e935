//go:build linux

package shim

import (
	"sync"
)

// roots are the children that somebody waits for by name. Whatever else is
// reaped here is an orphan of theirs.
type roots struct {
	forking sync.RWMutex // held for reading from a fork until its pid is in pids

	mu   sync.Mutex
	pids map[int]bool
}

func (r *roots) add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids == nil {
		r.pids = map[int]bool{}
	}
	r.pids[pid] = true
}

func (r *roots) drop(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pids, pid)
}

func (r *roots) has(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pids[pid]
}
