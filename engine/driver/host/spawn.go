package host

import (
	"errors"
	"runtime"
	"syscall"

	"sbx/engine"
)

// A spawner starts processes from one locked thread: the kernel sends a
// parent-death signal when the *thread* that forked ends, so an ordinary
// goroutine's children would die with whichever thread it happened to use.
type spawner struct {
	requests chan spawnRequest
	ended    chan struct{}
}

type spawnRequest struct {
	path  string
	argv  []string
	attr  *syscall.ProcAttr
	reply chan spawnReply
}

type spawnReply struct {
	pid int
	err error
}

func startSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest), ended: make(chan struct{})}
	go s.loop()
	return s
}

func (s *spawner) loop() {
	defer close(s.ended)
	runtime.LockOSThread()
	for r := range s.requests {
		pid, err := syscall.ForkExec(r.path, r.argv, r.attr)
		r.reply <- spawnReply{pid, err}
	}
	// Unlocked, the thread goes back to the pool instead of ending.
	runtime.UnlockOSThread()
}

// spawn starts a process. It waits without its caller's context: a process
// that was forked must not be lost.
func (s *spawner) spawn(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	r := spawnRequest{path, argv, attr, make(chan spawnReply, 1)}
	s.requests <- r
	reply := <-r.reply
	return reply.pid, spawnError(reply.err)
}

func (s *spawner) stop() {
	close(s.requests)
	<-s.ended
}

// spawnError tells what the host is short of from what is wrong.
func spawnError(err error) error {
	var hint string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EAGAIN):
		hint = "too many processes: raise the limit (ulimit -u, pids cgroup) or stop some sandboxes"
	case errors.Is(err, syscall.ENOMEM):
		hint = "the host is out of memory: stop some sandboxes"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		hint = "too many open files: raise the limit (ulimit -n)"
	default:
		return err
	}
	return engine.Errorf(engine.Unavailable, "the host is short of something: %w", err).WithHint("%s", hint)
}
