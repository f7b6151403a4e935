package host

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"
)

// members are the living processes of the tree: from its cgroup, or else by
// descent, session and marker.
func (p *proc) members() []procStat {
	if p.cg != nil {
		var found []procStat
		for _, pid := range p.cg.pids() {
			if s, ok := statOf(pid); ok && !s.dead() {
				found = append(found, s)
			}
		}
		return found
	}
	table := readProcs()
	found := descendants(table, p.root)
	if p.nested() {
		return found // nothing leaves a pid namespace
	}
	for _, s := range found {
		delete(table, s.PID)
	}
	// What was there before the start isn't the tree's: reading the environment
	// of every process of a host takes long.
	maps.DeleteFunc(table, func(_ int, s procStat) bool { return s.Start < p.root.Start })
	for _, m := range p.box.host.marked(table, p.mark) {
		found = append(found, m.procStat)
	}
	return found
}

// own are those members that are the sandbox's: neither bubblewrap's monitor
// nor its pid 1.
func (p *proc) own() []procStat {
	all := p.members()
	if !p.nested() {
		return all
	}
	own := all[:0]
	for _, s := range all {
		if s.PID != p.root.PID && s.PID != p.init.PID {
			own = append(own, s)
		}
	}
	return own
}

// tellAll sends a signal to everything in the tree, what is being forked at
// this moment included: the tree is held still meanwhile. Not by more than
// that: what forks afterwards, to end well, is left in peace.
func (p *proc) tellAll(sig unix.Signal) {
	if p.cg != nil {
		defer p.cg.freeze()()
	} else {
		p.stopAll()
	}
	for _, s := range p.own() {
		signalOne(s, sig)
		signalOne(s, unix.SIGCONT) // a stopped one hears it, too
	}
}

// stopAll stops what is the sandbox's, until nothing new turns up.
func (p *proc) stopAll() {
	stopped := map[procKey]bool{}
	for fresh := true; fresh && len(stopped) < maxStopped; {
		fresh = false
		for _, s := range p.own() {
			if key := (procKey{s.PID, s.Start}); !stopped[key] {
				stopped[key], fresh = true, true
				signalOne(s, unix.SIGSTOP)
			}
		}
	}
}

// end kills the tree and returns when it is empty.
func (p *proc) end(ctx context.Context) error {
	switch {
	case p.nested() && !p.over() && len(p.own()) == 0:
		// It ended by itself: the monitor has the exit code and is about to tell it.
		return p.endNested(ctx)
	case p.cg != nil:
		return p.cg.kill(ctx)
	case p.nested():
		signalOne(p.init, unix.SIGKILL)
		return p.endNested(ctx)
	}
	return p.endWalk(ctx)
}

// endNested waits until the namespace's pid 1 has gone, and everything with it.
func (p *proc) endNested(ctx context.Context) error {
	begun := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if s, ok := statOf(p.init.PID); !ok || s.Start != p.init.Start || s.dead() {
			return nil
		}
		if time.Since(begun) > catchUpTime { // it had its time
			signalOne(p.init, unix.SIGKILL)
			signalOne(p.root, unix.SIGKILL)
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("wait for its namespace: %w", err)
		}
	}
}

// endWalk kills what it finds until it finds nothing. All are stopped before
// any is killed: a child whose parent has gone is harder to find, and what is
// stopped can't fork.
func (p *proc) endWalk(ctx context.Context) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		p.stopAll()
		found := p.members()
		if len(found) == 0 {
			return nil
		}
		for _, s := range found {
			signalOne(s, unix.SIGKILL)
		}
		if err := pause(ctx, wait); err != nil {
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
