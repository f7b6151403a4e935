package host

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/driver"
)

// killTimeout bounds what nobody else bounds.
const killTimeout = 15 * time.Second

// A proc is a started process:
//
//	engine ── root ── init ── main ── …     bubblewrap: its monitor, its pid 1
//	engine ── root = main ── …              else
type proc struct {
	box    *box
	id     engine.ProcessID
	mark   string   // in the environment, this start's alone
	agent  bool     // nothing of it may live on after its exit
	inside bool     // it has a pid namespace of its own
	root   procStat // our child
	init   procStat // of the pid namespace; zero if there is none or it wasn't seen
	main   int      // what people see as the process
	cg     *cgroup  // nil: none
	in     *os.File // nil: reads end-of-file

	exited  *os.File // the pidfd of root
	pumps   []*pump
	release func() // of what was set up for it
	started time.Time
	done    chan struct{} // closed when exit is set
	exit    engine.Exit
	gone    chan struct{} // closed when nothing is left to be done

	mu     sync.Mutex
	killed bool
}

var _ driver.Proc = (*proc)(nil)

// PID is the process's id on this host.
func (p *proc) PID() int { return p.main }

// Input is the process's stdin.
func (p *proc) Input() io.WriteCloser {
	if p.in == nil {
		return nil // not an interface holding a nil file
	}
	return p.in
}

// Wait waits for the exit.
func (p *proc) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, ctx.Err()
	}
}

// watch reaps the process and tells its exit as soon as what it wrote before
// is handed over, whoever else may hold its output.
func (p *proc) watch() {
	ws, _, err := waitExit(p.exited, p.root.PID)
	at := time.Now()
	p.exited.Close()
	var caught sync.WaitGroup
	for _, pump := range p.pumps {
		caught.Go(pump.finish)
	}
	caught.Wait()
	p.settle(ws, at, err)
	if p.agent && !p.nested() {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		_ = p.end(ctx) // what can't be killed now is a stray
		cancel()
	}
	if p.release != nil {
		// Stand-ins are gone when the exit is told, but not before their user is.
		p.awaitEmpty()
		p.release()
		p.release = nil
	}
	p.box.exitOf(p)
	close(p.done)
	for _, pump := range p.pumps {
		<-pump.ended
	}
	if p.in != nil {
		p.in.Close()
	}
	p.cleanUp()
	p.box.goneOf(p)
	close(p.gone)
}

func (p *proc) settle(ws syscall.WaitStatus, at time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = exitOf(ws, err)
	p.exit.Killed = p.killed
	p.exit.At = at.UTC()
	p.exit.Uptime = engine.Duration(at.Sub(p.started))
}

// cleanUp gives back what was set up. A tree that lives on after its main
// process keeps its cgroup, for KillStrays to find.
func (p *proc) cleanUp() {
	if p.nested() {
		p.awaitEmpty()
	}
	if p.cg != nil {
		_ = p.cg.remove() // not empty: strays
	}
	if p.release != nil {
		p.release()
	}
}

// awaitEmpty waits while the kernel takes down a namespace, or until whoever
// is stuck in it has had long enough.
func (p *proc) awaitEmpty() {
	deadline := time.Now().Add(lingerTime)
	for wait := time.Millisecond; time.Now().Before(deadline); wait = min(2*wait, 20*time.Millisecond) {
		s, ok := statOf(p.init.PID)
		gone := !ok || s.Start != p.init.Start || s.dead()
		if gone && (p.cg == nil || p.cg.empty()) {
			return
		}
		_ = pause(context.Background(), wait)
	}
}

// exitOf is an exit as a shell tells it. Inside bubblewrap and behind a shell a
// signal arrives as a code over 128; it is named all the same.
func exitOf(ws syscall.WaitStatus, err error) engine.Exit {
	switch {
	case err != nil:
		return engine.Exit{Code: engine.ExitSignalBase, Error: "its exit can't be read: " + err.Error()}
	case ws.Signaled():
		return engine.Exit{Code: engine.ExitSignalBase + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	}
	e := engine.Exit{Code: ws.ExitStatus()}
	if sig := syscall.Signal(e.Code - engine.ExitSignalBase); deadly(sig) {
		e.Signal = unix.SignalName(sig)
	}
	return e
}

// deadly are the signals that end a process which doesn't handle them and
// that a program's own exit code is rarely mistaken for.
func deadly(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE,
		unix.SIGKILL, unix.SIGSEGV, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGSYS:
		return true
	}
	return false
}

func (p *proc) nested() bool { return p.inside }

func (p *proc) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to everything in the tree that is the sandbox's.
func (p *proc) Signal(ctx context.Context, name string) error {
	sig := unix.SignalNum(name)
	if sig == 0 {
		return engine.Errorf(engine.Invalid, "there is no signal %q", name).WithHint("name it as SIGTERM, SIGHUP or SIGUSR1")
	}
	if p.over() {
		return engine.Errorf(engine.Conflict, "%s has exited", p.id)
	}
	if sig == unix.SIGKILL {
		return p.Kill(ctx, 0)
	}
	for _, s := range p.own() {
		signalOne(s, sig)
	}
	return ctx.Err()
}

// Kill ends the tree: TERM, grace, KILL.
func (p *proc) Kill(ctx context.Context, grace time.Duration) error {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	if grace > 0 {
		if err := p.askToEnd(ctx, grace); err != nil {
			return fmt.Errorf("kill %s: %w", p.id, err)
		}
	}
	if err := p.end(ctx); err != nil {
		return fmt.Errorf("kill %s: %w", p.id, err)
	}
	_, err := p.Wait(ctx)
	return err
}

// askToEnd sends TERM to all and waits until nothing is left or grace is over.
//
// Inside bubblewrap the end of the main process is the end of the namespace:
// were its monitor to go on, a server's children would be cut off in the middle
// of their own shutdown as soon as the shell before them has gone. So the
// monitor is stopped meanwhile.
func (p *proc) askToEnd(ctx context.Context, grace time.Duration) error {
	if p.nested() {
		signalOne(p.root, unix.SIGSTOP)
		defer signalOne(p.root, unix.SIGCONT)
	}
	p.tellAll(unix.SIGTERM)
	deadline := time.Now().Add(grace)
	for wait := time.Millisecond; len(p.own()) > 0 && time.Now().Before(deadline); wait = min(2*wait, 25*time.Millisecond) {
		if err := pause(ctx, min(wait, time.Until(deadline))); err != nil {
			return err
		}
	}
	return nil
}

// Resize gives its terminal a size.
func (p *proc) Resize(context.Context, engine.TermSize) error {
	return engine.Errorf(engine.Conflict, "%s has no terminal", p.id)
}
