//go:build linux

package shim

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
)

// killTimeout bounds what nobody else bounds.
const killTimeout = 15 * time.Second

// Child is a started process with all its descendants.
type Child struct {
	tree    Tree
	id      string
	alone   bool
	oom     string   // counts what was killed for want of memory; "": nothing does
	in      *os.File // nil: reads end-of-file
	tty     bool     // in is its terminal
	exited  *os.File // the pidfd of root
	pumps   []*pump
	hooks   Hooks
	started time.Time
	done    chan struct{} // closed when exit is set
	exit    engine.Exit
	gone    chan struct{} // closed when nothing is left to be done

	mu     sync.Mutex
	killed bool
	end    *engine.Exit // as soon as it was reaped
}

// Hooks are called at the two ends of a child. Both may be nil.
type Hooks struct {
	// Exited is called before anybody is told of the exit.
	Exited func()
	// Gone is called when nothing of what was set up for it is left.
	Gone func()
}

// PID is what people see as the process.
func (c *Child) PID() int { return c.tree.Main }

// Tree is what the child and its descendants are found by.
func (c *Child) Tree() Tree { return c.tree }

// Started is when it was forked.
func (c *Child) Started() time.Time { return c.started }

// Input is the process's stdin.
func (c *Child) Input() io.WriteCloser {
	if c.in == nil {
		return nil // not an interface holding a nil file
	}
	if c.tty {
		return typist{c.in}
	}
	return c.in
}

// Done is closed when the exit is known.
func (c *Child) Done() <-chan struct{} { return c.done }

// Gone is closed when nothing of what was set up for it is left.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Wait waits for the exit.
func (c *Child) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-c.done:
		return c.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, ctx.Err()
	}
}

// watch reaps the process and tells its exit as soon as what it wrote before
// is handed over, whoever else may hold its output.
func (c *Child) watch(r *Runner) {
	if c.exited != nil { // else it was reaped by the program before this one
		ws, _, err := waitExit(c.exited, c.tree.Root.PID, &r.gate)
		at := time.Now()
		r.roots.drop(c.tree.Root.PID)
		c.reaped(ws, at, err)
		r.gate.RUnlock()
		c.exited.Close()
	}
	var caught sync.WaitGroup
	for _, pump := range c.pumps {
		caught.Go(pump.finish)
	}
	caught.Wait()
	c.settle()
	if c.alone && !c.tree.Inside {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		_ = c.End(ctx) // what can't be killed now is a stray
		cancel()
	}
	if c.hooks.Exited != nil {
		c.hooks.Exited()
	}
	close(c.done)
	for _, pump := range c.pumps {
		<-pump.ended
	}
	if c.in != nil {
		c.in.Close()
	}
	c.cleanUp()
	if c.hooks.Gone != nil {
		c.hooks.Gone()
	}
	close(c.gone)
}

// reaped notes how it ended; that isn't told yet.
func (c *Child) reaped(ws syscall.WaitStatus, at time.Time, err error) {
	exit := exitOf(ws, err)
	exit.At = at.UTC()
	exit.Uptime = engine.Duration(at.Sub(c.started))
	c.mu.Lock()
	c.end = &exit
	c.mu.Unlock()
}

func (c *Child) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exit = *c.end
	c.exit.Killed = c.killed
	// Whether it was the process itself or one that it could not do without.
	c.exit.OOM = !c.killed && c.exit.Code != 0 && c.oom != "" && OOMKills(c.oom) > 0
}

// cleanUp gives back what was set up. A tree that lives on after its main
// process keeps its cgroup, to be found by.
func (c *Child) cleanUp() {
	if c.tree.Inside {
		c.AwaitEmpty()
	}
	if c.tree.Cgroup != "" {
		_ = c.tree.Cgroup.Remove() // not empty: strays
	}
}

// AwaitEmpty waits while the kernel takes down a namespace, or until whoever
// is stuck in it has had long enough.
func (c *Child) AwaitEmpty() {
	t := c.tree
	deadline := time.Now().Add(lingerTime)
	for wait := time.Millisecond; time.Now().Before(deadline); wait = min(2*wait, 20*time.Millisecond) {
		s, ok := StatOf(t.Init.PID)
		gone := !ok || s.Start != t.Init.Start || s.Dead()
		if gone && (t.Cgroup == "" || t.Cgroup.Empty()) {
			return
		}
		_ = Pause(context.Background(), wait)
	}
}

// End kills what is left of the tree and returns when it is empty.
func (c *Child) End(ctx context.Context) error { return c.tree.End(ctx, c.over()) }

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

func (c *Child) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to everything in the tree that is the sandbox's.
func (c *Child) Signal(ctx context.Context, name string) error {
	sig := unix.SignalNum(name)
	if sig == 0 {
		return engine.Errorf(engine.Invalid, "there is no signal %q", name).WithHint("name it as SIGTERM, SIGHUP or SIGUSR1")
	}
	if c.over() {
		return engine.Errorf(engine.Conflict, "%s has exited", c.id)
	}
	if sig == unix.SIGKILL {
		return c.Kill(ctx, 0)
	}
	for _, s := range c.tree.own() {
		SignalOne(s, sig)
	}
	return ctx.Err()
}

// Kill ends the tree: TERM, grace, KILL.
func (c *Child) Kill(ctx context.Context, grace time.Duration) error {
	c.mu.Lock()
	c.killed = true
	c.mu.Unlock()
	for left := grace; left > 0; left -= hangUpAgain {
		part := left
		if c.tty { // an interactive shell ignores TERM, and goes with its terminal
			c.tree.tellAll(unix.SIGHUP)
			part = min(left, hangUpAgain)
		}
		if err := c.tree.askToEnd(ctx, part); err != nil {
			return fmt.Errorf("kill %s: %w", c.id, err)
		}
		if !c.tty || len(c.tree.own()) == 0 {
			break
		}
	}
	if err := c.End(ctx); err != nil {
		return fmt.Errorf("kill %s: %w", c.id, err)
	}
	_, err := c.Wait(ctx)
	return err
}

// hangUpAgain is how soon a terminal is hung up again: a shell that hears of it
// between looking for signals and reading its next line misses it, about once
// in forty times.
const hangUpAgain = 2 * time.Second

// Members are the living processes of its tree.
func (c *Child) Members() []Stat { return c.tree.Members() }

// drain waits until nobody holds its output any more; not for long: somebody
// else may hold the pipe.
func (c *Child) drain() {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	for _, p := range c.pumps {
		select {
		case <-p.ended:
		case <-timer.C:
			return
		}
	}
}

// drainTime is how long the exit of a command waits for the end of its output,
// so that its log is whole when the exit is told.
const drainTime = 50 * time.Millisecond
