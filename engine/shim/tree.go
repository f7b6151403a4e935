//go:build linux

package shim

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"
)

// Tree is what is needed to find and end everything that one start has brought
// forth. It is plain data: whoever has it can do so.
type Tree struct {
	Root   Stat   `json:"root"`             // the starter's child
	Init   Stat   `json:"init,omitzero"`    // of the pid namespace; zero if there is none or it wasn't seen
	Main   int    `json:"main"`             // what people see as the process
	Inside bool   `json:"inside,omitempty"` // it has a pid namespace of its own
	Cgroup Cgroup `json:"cgroup,omitempty"` // "": none
	Mark   string `json:"mark,omitempty"`   // in the environment, this start's alone
}

// Members are the living processes of the tree: from its cgroup, or else by
// descent, session and marker.
func (t *Tree) Members() []Stat {
	if t.Cgroup != "" {
		var found []Stat
		for _, pid := range t.Cgroup.Pids() {
			if s, ok := StatOf(pid); ok && !s.Dead() {
				found = append(found, s)
			}
		}
		return found
	}
	table := ReadProcs()
	found := Descendants(table, t.Root)
	if t.Inside {
		return found // nothing leaves a pid namespace
	}
	for _, s := range found {
		delete(table, s.PID)
	}
	// What was there before the start isn't the tree's: reading the environment
	// of every process of a host takes long.
	maps.DeleteFunc(table, func(_ int, s Stat) bool { return s.Start < t.Root.Start })
	for pid, s := range table {
		if t.Mark != "" && !s.Dead() && marked(pid, t.Mark) {
			found = append(found, s)
		}
	}
	return found
}

// marked reports whether a process has a variable in its environment.
func marked(pid int, mark string) bool {
	for _, kv := range EnvironOf(pid) {
		if string(kv) == mark {
			return true
		}
	}
	return false
}

// own are those members that are the sandbox's: neither bubblewrap's monitor
// nor its pid 1.
func (t *Tree) own() []Stat {
	all := t.Members()
	if !t.Inside {
		return all
	}
	own := all[:0]
	for _, s := range all {
		if s.PID != t.Root.PID && s.PID != t.Init.PID {
			own = append(own, s)
		}
	}
	return own
}

// tellAll sends a signal to everything in the tree, what is being forked at
// this moment included: the tree is held still meanwhile. Not by more than
// that: what forks afterwards, to end well, is left in peace.
func (t *Tree) tellAll(sig unix.Signal) {
	if t.Cgroup != "" {
		defer t.Cgroup.freeze()()
	} else {
		t.stopAll()
	}
	for _, s := range t.own() {
		SignalOne(s, sig)
		SignalOne(s, unix.SIGCONT) // a stopped one hears it, too
	}
}

// stopAll stops what is the sandbox's, until nothing new turns up.
func (t *Tree) stopAll() {
	stopped := map[procKey]bool{}
	for fresh := true; fresh && len(stopped) < maxStopped; {
		fresh = false
		for _, s := range t.own() {
			if key := (procKey{s.PID, s.Start}); !stopped[key] {
				stopped[key], fresh = true, true
				SignalOne(s, unix.SIGSTOP)
			}
		}
	}
}

// askToEnd sends TERM to all and waits until nothing is left or grace is over.
//
// Inside bubblewrap the end of the main process is the end of the namespace:
// were its monitor to go on, a server's children would be cut off in the middle
// of their own shutdown as soon as the shell before them has gone. So the
// monitor is stopped meanwhile.
func (t *Tree) askToEnd(ctx context.Context, grace time.Duration) error {
	if t.Inside {
		SignalOne(t.Root, unix.SIGSTOP)
		defer SignalOne(t.Root, unix.SIGCONT)
	}
	t.tellAll(unix.SIGTERM)
	deadline := time.Now().Add(grace)
	for wait := time.Millisecond; len(t.own()) > 0 && time.Now().Before(deadline); wait = min(2*wait, 25*time.Millisecond) {
		if err := Pause(ctx, min(wait, time.Until(deadline))); err != nil {
			return err
		}
	}
	return nil
}

// End kills the tree and returns when it is empty. over: its root was reaped.
func (t *Tree) End(ctx context.Context, over bool) error {
	switch {
	case t.Inside && !over && len(t.own()) == 0:
		// It ended by itself: the monitor has the exit code and is about to tell it.
		return t.endNested(ctx)
	case t.Cgroup != "":
		return t.Cgroup.Kill(ctx)
	case t.Inside:
		SignalOne(t.Init, unix.SIGKILL)
		return t.endNested(ctx)
	}
	return t.endWalk(ctx)
}

// endNested waits until the namespace's pid 1 has gone, and everything with it.
func (t *Tree) endNested(ctx context.Context) error {
	begun := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if s, ok := StatOf(t.Init.PID); !ok || s.Start != t.Init.Start || s.Dead() {
			return nil
		}
		if time.Since(begun) > catchUpTime { // it had its time
			SignalOne(t.Init, unix.SIGKILL)
			SignalOne(t.Root, unix.SIGKILL)
		}
		if err := Pause(ctx, wait); err != nil {
			return fmt.Errorf("wait for its namespace: %w", err)
		}
	}
}

// endWalk kills what it finds until it finds nothing. All are stopped before
// any is killed: a child whose parent has gone is harder to find, and what is
// stopped can't fork.
func (t *Tree) endWalk(ctx context.Context) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		t.stopAll()
		found := t.Members()
		if len(found) == 0 {
			return nil
		}
		for _, s := range found {
			SignalOne(s, unix.SIGKILL)
		}
		if err := Pause(ctx, wait); err != nil {
			return fmt.Errorf("wait for %d processes: %w", len(found), err)
		}
	}
}

// procKey is a process's identity.
type procKey struct {
	pid   int
	start uint64
}

// maxStopped ends the stopping of a tree that grows faster than it is found.
const maxStopped = 4096
