//go:build linux

// Package limit holds sandboxes to their limits of memory, cpu and processes:
// by the kernel's control groups of version 2, of version 1, or of both at
// once (the hybrid layout), and by rlimits where a sandbox can have no group.
//
//	<the engine's own group>/sbx-<tag>/<sandbox>          the limits are set here
//	                                  /<sandbox>/<start>  one start's tree: who ran out of memory
//
// The one rule: nothing of a sandbox runs outside of its groups, not for a
// moment. In version 2 it is born in them. In version 1, which has no such
// thing, the thread that forks goes into them before and comes back after.
package limit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"sbx/engine"
	"sbx/engine/shim"
)

// A Limiter sets limits for the sandboxes of one data directory.
type Limiter struct {
	memory, cpu, pids control

	mu    sync.Mutex
	set   map[string]engine.Limits // by sandbox: what is set
	fresh map[string]bool          // groups of starts that nothing is in yet
	under map[string]int           // by sandbox: starts under way
}

// A control is one controller and where its groups are made.
type control struct {
	name    string
	version int    // 0: there is none
	root    string // …/sbx-<tag>
	home    string // in version 1: the group that this process is in
	why     string // there is none
	do      string // what would help
}

func (c control) box(id string) string { return filepath.Join(c.root, id) }

// by is what enforces it, in words.
func (c control) by() string { return "cgroup v" + strconv.Itoa(c.version) }

// A Place is where a process is to be started.
type Place struct {
	// Join are the groups of version 1 that the forking thread visits.
	Join []shim.Visit
	// OOM is the file that counts what the kernel killed in this start's tree
	// for want of memory; "": nothing counts it.
	OOM string

	l          *Limiter
	box, start string
}

// Open finds out where limits can be set. unified is the group of version 2
// that sandboxes are made in, "" for none; tag names this data directory.
func Open(unified, tag string) *Limiter {
	l := &Limiter{set: map[string]engine.Limits{}, fresh: map[string]bool{}, under: map[string]int{}}
	m := readMounts()
	for name, c := range map[string]*control{"memory": &l.memory, "cpu": &l.cpu, "pids": &l.pids} {
		*c = openControl(m, unified, name, "sbx-"+tag)
	}
	return l
}

// None is a Limiter of a host that offers no groups, for the reason given.
func None(why string) *Limiter {
	l := &Limiter{set: map[string]engine.Limits{}, fresh: map[string]bool{}, under: map[string]int{}}
	for name, c := range map[string]*control{"memory": &l.memory, "cpu": &l.cpu, "pids": &l.pids} {
		*c = control{name: name, why: why, do: "let the engine use them"}
	}
	return l
}

// in reports whether groups can be made.
func (c control) in() bool { return c.version > 0 }

// Begin makes the groups of a start of a sandbox and sets the sandbox's limits.
// leaf is the group of version 2 that the start will be born in, "" for none.
// The caller calls [Place.Begun] when it is started or isn't going to be.
func (l *Limiter) Begin(box, start, leaf string, want engine.Limits) (*Place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &Place{l: l, box: box}
	l.renew(box)
	if err := l.hold(box, want); err != nil {
		return nil, err
	}
	l.under[box]++
	if want.Processes > 0 && l.pids.version == 1 {
		p.Join = append(p.Join, l.pids.visit(l.pids.box(box)))
	}
	if want.CPU > 0 && l.cpu.version == 1 {
		p.Join = append(p.Join, l.cpu.visit(l.cpu.box(box)))
	}
	switch {
	case l.memory.version == 2 && leaf != "":
		p.OOM = filepath.Join(leaf, "memory.events")
	case l.memory.version == 1 && want.Memory > 0:
		dir := l.memory.box(box)
		l.removeOld(dir)
		p.start = filepath.Join(dir, start)
		if err := os.Mkdir(p.start, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			l.over(box)
			return nil, fmt.Errorf("make a group of %s: %w", box, err)
		}
		l.fresh[p.start] = true
		p.Join = append(p.Join, l.memory.visit(p.start))
		p.OOM = filepath.Join(p.start, "memory.oom_control")
	}
	return p, nil
}

func (c control) visit(dir string) shim.Visit {
	return shim.Visit{Into: filepath.Join(dir, "tasks"), Back: filepath.Join(c.home, "tasks")}
}

// Begun says that the start has happened: its groups stay while it has
// processes.
func (p *Place) Begun() {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	delete(p.l.fresh, p.start)
	p.l.over(p.box)
}

func (l *Limiter) over(box string) {
	if l.under[box]--; l.under[box] <= 0 {
		delete(l.under, box)
	}
}

// renew takes away a group that nothing lives in, to be made anew: its dead
// count until somebody has reaped them, which the init of a container may take
// seconds for, and a start would be refused meanwhile.
func (l *Limiter) renew(box string) {
	if l.pids.version == 1 && l.under[box] == 0 {
		_ = os.Remove(l.pids.box(box)) // refused while something lives in it
	}
}

// removeOld removes the groups of starts that nothing is left of.
func (l *Limiter) removeOld(dir string) {
	entries, _ := os.ReadDir(dir) // none: nothing to remove
	for _, e := range entries {
		if sub := filepath.Join(dir, e.Name()); e.IsDir() && !l.fresh[sub] {
			_ = os.Remove(sub) // refused while something lives in it
		}
	}
}

// Hold makes the groups of a sandbox that runs already and sets its limits.
func (l *Limiter) Hold(box string, want engine.Limits) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold(box, want)
}

// hold makes the sandbox's groups and sets its limits, where they are not as
// they should be.
func (l *Limiter) hold(box string, want engine.Limits) error {
	was, known := l.set[box]
	for _, c := range []struct {
		*control
		now, before bool // limited
		same        bool
	}{
		{&l.memory, want.Memory > 0, was.Memory > 0, want.Memory == was.Memory},
		{&l.cpu, want.CPU > 0, was.CPU > 0, want.CPU == was.CPU},
		{&l.pids, want.Processes > 0, was.Processes > 0, want.Processes == was.Processes},
	} {
		if !c.in() || c.version == 1 && !c.now && !c.before {
			continue
		}
		made, err := c.make(box)
		if err != nil {
			return fmt.Errorf("make a group of %s: %w", box, err)
		}
		if known && c.same && !made {
			continue
		}
		if err := c.limit(c.box(box), want); err != nil {
			return fmt.Errorf("limit the %s of %s: %w", c.name, box, err)
		}
	}
	l.set[box] = want
	return nil
}

// make makes a sandbox's group, in version 2 with the controllers for those of
// its starts.
func (c control) make(box string) (made bool, err error) {
	dir := c.box(box)
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return false, err
	}
	err = os.Mkdir(dir, 0o755)
	switch {
	case err == nil:
		made = true
	case !errors.Is(err, fs.ErrExist):
		return false, err
	}
	if c.version == 2 && !has(dir, "cgroup.subtree_control", c.name) {
		made = true
		err = enable(dir, c.name)
	} else {
		err = nil
	}
	return made, err
}

// Remove removes a sandbox's groups of version 1; nothing is left in them.
func (l *Limiter) Remove(box string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.set, box)
	for _, c := range l.controls() {
		if c.version == 1 {
			removeGroups(c.box(box))
		}
	}
}

// Sweep removes what engines that were killed have left of version 1's groups,
// as far as nothing is in them.
func (l *Limiter) Sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.controls() {
		if c.version != 1 {
			continue
		}
		entries, _ := os.ReadDir(c.root)
		for _, e := range entries {
			if _, ours := l.set[e.Name()]; e.IsDir() && !ours {
				removeGroups(c.box(e.Name()))
			}
		}
	}
}

// Close removes what is empty.
func (l *Limiter) Close() {
	for _, c := range l.controls() {
		if c.version == 1 {
			removeGroups(c.root)
		}
	}
}

func (l *Limiter) controls() []control { return []control{l.memory, l.cpu, l.pids} }

// removeGroups removes a group and those below it, as far as they are empty.
func removeGroups(dir string) {
	entries, _ := os.ReadDir(dir) // it may be gone
	for _, e := range entries {
		if e.IsDir() {
			removeGroups(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir) // not empty: somebody lives there
}

// has reports whether a file of controllers names one.
func has(dir, file, name string) bool {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return false
	}
	for _, f := range strings.Fields(string(data)) {
		if f == name {
			return true
		}
	}
	return false
}

// enable lets the groups below dir have a controller.
func enable(dir, name string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0)
}
