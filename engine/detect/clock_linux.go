package detect

import (
	"syscall"
	"time"
	"unsafe"
)

// The kernel's clocks that no one can set. Both count from the boot; the
// second doesn't count while the host is suspended.
const (
	clockBoottime  = 7
	clockMonotonic = 1
)

// Suspended is how long the host has been suspended since it was booted: what
// CLOCK_BOOTTIME counts and CLOCK_MONOTONIC doesn't. A step of the wall clock
// (NTP, an operator, summer time) moves neither, so it never looks like sleep.
func Suspended() time.Duration {
	mono, err1 := kernelClock(clockMonotonic)
	boot, err2 := kernelClock(clockBoottime)
	if err1 != 0 || err2 != 0 {
		return 0 // a kernel without them: only late ticks tell of sleep
	}
	return boot - mono
}

func kernelClock(id uintptr) (time.Duration, syscall.Errno) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno
}
