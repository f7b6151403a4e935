//go:build linux

package shim

import (
	"context"
	"os"
	"os/signal"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of whatever its children leave
// behind.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reapOrphans reaps what dies of that, until ctx ends. Roots are left to those
// who wait for them.
func (r *Runner) reapOrphans(ctx context.Context) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	for {
		if r.reapSome() {
			tick.Reset(50 * time.Millisecond) // a root is first in line
		} else {
			tick.Reset(time.Hour)
		}
		select {
		case <-ctx.Done():
			return
		case <-died:
		case <-tick.C:
		}
	}
}

// reapSome reaps orphans until a root is in the way, which it reports, or
// nothing is left.
func (r *Runner) reapSome() (again bool) {
	r.roots.forking.Lock()
	defer r.roots.forking.Unlock()
	for {
		pid := deadChild()
		switch {
		case pid <= 0:
			return false
		case r.roots.has(pid):
			return true
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			return false
		}
	}
}

// deadChild is a child of this process that has died; 0 if none has. It stays
// to be reaped.
func deadChild() int {
	var info [128]byte // a siginfo
	for {
		_, _, e := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, 0, 0)
		switch e {
		case unix.EINTR:
			continue
		case 0:
			at := 12 // of si_pid, behind three ints and, on 64 bits, padding
			if unsafe.Sizeof(uintptr(0)) == 8 {
				at = 16
			}
			return int(*(*int32)(unsafe.Pointer(&info[at])))
		}
		return 0
	}
}
