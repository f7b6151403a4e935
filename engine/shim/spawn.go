//go:build linux

package shim

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// A spawner starts processes from one locked thread: the kernel sends a
// parent-death signal when the *thread* that forked ends, so an ordinary
// goroutine's children would die with whichever thread it happened to use.
type spawner struct {
	requests chan spawnRequest
	ended    chan struct{}
	within   []Visit // groups that the thread could not leave; its own
}

type spawnRequest struct {
	path   string
	argv   []string
	attr   *syscall.ProcAttr
	visits []Visit
	call   func() // instead of all that: something else to be done on the thread
	reply  chan spawnReply
}

type spawnReply struct {
	pid int
	err error
}

// startSpawner starts the thread. prepare changes it for good; nil: nothing.
func startSpawner(prepare func() error) (*spawner, error) {
	s := newSpawner()
	prepared := make(chan error)
	go s.loop(prepare, prepared)
	return s, <-prepared
}

func (s *spawner) loop(prepare func() error, prepared chan<- error) {
	defer close(s.ended)
	runtime.LockOSThread()
	var err error
	if prepare == nil {
		// Unlocked, the thread goes back to the pool instead of ending; one that
		// was changed must end.
		defer runtime.UnlockOSThread()
	} else {
		err = prepare()
	}
	if prepared <- err; err != nil {
		return
	}
	s.serve()
}

func (s *spawner) serve() {
	for r := range s.requests {
		if r.call != nil {
			r.call()
			r.reply <- spawnReply{}
			continue
		}
		r.reply <- s.fork(r)
	}
}

// here makes the calling goroutine, which holds its thread, the spawner's.
func (s *spawner) here() {
	defer close(s.ended)
	s.serve()
}

func newSpawner() *spawner {
	return &spawner{requests: make(chan spawnRequest), ended: make(chan struct{})}
}

// on runs fn on the spawner's thread.
func (s *spawner) on(fn func()) {
	r := spawnRequest{call: fn, reply: make(chan spawnReply, 1)}
	s.requests <- r
	<-r.reply
}

// fork forks from the groups that the child is to be born in.
func (s *spawner) fork(r spawnRequest) spawnReply {
	s.within = leave(s.within)
	in, err := visit(r.visits)
	defer func() { s.within = leave(append(s.within, in...)) }()
	if err != nil {
		return spawnReply{0, err}
	}
	exposed := expose()
	pid, err := syscall.ForkExec(r.path, r.argv, r.attr)
	exposed()
	return spawnReply{pid, err}
}

// shed makes this thread one whose children can never have a privilege again:
// born as another user, what they execute gives them none. The thread keeps
// its own, to change user by.
func shed() error {
	// Its own, not the process's: the umask below would be everybody's.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("give up the process's umask: %w", err)
	}
	unix.Umask(0o022)
	if err := Renounce(true); err != nil {
		return err
	}
	head := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(head, &held[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	held[0].Inheritable, held[1].Inheritable = 0, 0
	if err := unix.Capset(head, &held[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}

// spawn starts a process. It waits without its caller's context: a process
// that was forked must not be lost.
func (s *spawner) spawn(path string, argv []string, attr *syscall.ProcAttr, visits []Visit) (int, error) {
	r := spawnRequest{path: path, argv: argv, attr: attr, visits: visits, reply: make(chan spawnReply, 1)}
	s.requests <- r
	reply := <-r.reply
	return reply.pid, Shortage(reply.err)
}

func (s *spawner) stop() {
	close(s.requests)
	<-s.ended
}

// Shortage tells what the host is short of from what is wrong.
func Shortage(err error) error {
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

// Renounce gives up what this thread could gain by executing a program; bound
// says that it may.
func Renounce(bound bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // older kernels have none
	if !bound {
		return nil
	}
	for c := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) == nil; c++ {
	}
	return nil
}
