//go:build linux

package shim

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitFile turns the pidfd of a child into a file that the runtime's poller
// watches, so that waiting for a thousand children takes no thread each.
func exitFile(pidfd int) *os.File {
	unix.SetNonblock(pidfd, true)
	return os.NewFile(uintptr(pidfd), "pidfd")
}

// waitExit parks until the child has exited, then reaps it. Until it is reaped
// its pid can't be anyone else's. On return gate is held for reading.
func waitExit(f *os.File, pid int, gate *sync.RWMutex) (syscall.WaitStatus, syscall.Rusage, error) {
	var (
		ws     syscall.WaitStatus
		usage  syscall.Rusage
		reaped int
		failed error
	)
	rc, err := f.SyscallConn()
	if err != nil {
		gate.RLock()
		return ws, usage, err
	}
	held := false
	err = rc.Read(func(uintptr) bool {
		gate.RLock()
		for {
			reaped, failed = syscall.Wait4(pid, &ws, syscall.WNOHANG, &usage)
			if failed == syscall.EINTR {
				continue
			}
			if held = failed != nil || reaped == pid; !held {
				gate.RUnlock()
			}
			return held
		}
	})
	if !held {
		gate.RLock()
	}
	if err == nil {
		err = failed
	}
	return ws, usage, err
}

// SignalOne signals a process if it still is the one that was seen.
func SignalOne(s Stat, sig unix.Signal) bool {
	fd, err := unix.PidfdOpen(s.PID, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// The descriptor pins whoever has the pid now; its start time says who.
	if now, ok := StatOf(s.PID); !ok || now.Start != s.Start {
		return false
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}
