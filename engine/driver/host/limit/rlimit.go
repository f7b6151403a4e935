//go:build linux

package limit

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// An Rlimit is one that a process is started with.
type Rlimit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// Rlimits are what stands in for groups that this host doesn't offer. alone
// says that the kernel counts the sandbox's processes apart from all others: it
// has a user, or a user namespace, of its own.
//
// The memory of each process is limited by itself, and only what it writes:
// programs reserve much more address space than they use. There is no rlimit
// for a share of the cpu.
func (l *Limiter) Rlimits(want engine.Limits, alone bool) []Rlimit {
	var list []Rlimit
	if want.Memory > 0 && !l.memory.in() {
		list = append(list, Rlimit{unix.RLIMIT_DATA, uint64(want.Memory)})
	}
	if want.Processes > 0 && alone && !l.pids.in() {
		list = append(list, Rlimit{unix.RLIMIT_NPROC, uint64(want.Processes + Overhead)})
	}
	return list
}

// Set gives this process the limit, and all that come from it. It does nothing
// else, and so can be the last before an exec. Lowering a limit can't fail.
func (r Rlimit) Set() {
	lim := unix.Rlimit{Cur: r.Value, Max: r.Value}
	_, _, _ = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(r.Resource), uintptr(unsafe.Pointer(&lim)), 0, 0, 0)
}

// Enforced says what holds sandboxes to which limit, and what would make it
// stronger.
func (l *Limiter) Enforced(alone bool) (by engine.Enforcement, stronger []string) {
	if l.memory.in() {
		by.Memory = l.memory.by()
	} else {
		by.Memory = "rlimit, of each process by itself"
	}
	if l.cpu.in() {
		by.CPU = l.cpu.by()
	}
	switch {
	case l.pids.in():
		by.Processes = l.pids.by()
	case alone:
		by.Processes = "rlimit"
	}
	seen := map[string]bool{}
	for _, c := range l.controls() {
		if !c.in() && !seen[c.do] {
			seen[c.do] = true
			stronger = append(stronger, "limits of "+c.what()+": "+c.why+"; "+c.do)
		}
	}
	return by, stronger
}

func (c control) what() string {
	if c.name == "pids" {
		return "processes"
	}
	return c.name
}
