package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// Program is what a command runs. Its result is its exit code. ctx ends when
// it is asked to end or killed; one that goes on after that is one that
// ignores TERM, and is waited for no longer than the grace.
type Program func(ctx context.Context, p *Process) int

// Process is what a program has to do with.
type Process struct {
	Args   []string // the first is the program's name
	Env    map[string]string
	Dir    string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Files  driver.Files
	proc   *proc
}

// Listen makes the box answer on a port until the listener is closed or the
// process has ended.
func (p *Process) Listen(port int) (net.Listener, error) { return p.proc.box.listen(p.proc, port) }

var errRefused = errors.New("connection refused")

// A proc is a goroutine that runs a command.
type proc struct {
	box    *Box
	id     engine.ProcessID
	pid    int
	name   string
	in     *io.PipeWriter
	tty    bool
	done   chan struct{}
	exit   engine.Exit
	cancel context.CancelCauseFunc
	ended  sync.Once

	mu     sync.Mutex
	killed bool
	sig    string
}

var _ driver.Proc = (*proc)(nil)

// signals are those that it knows, with their numbers.
var signals = map[string]int{"SIGHUP": 1, "SIGINT": 2, "SIGKILL": 9, "SIGUSR1": 10, "SIGUSR2": 12, "SIGTERM": 15}

// lastPID is that of the newest process, of any driver in this test binary.
var lastPID atomic.Int64

// Start runs a command.
func (b *Box) Start(_ context.Context, id engine.ProcessID, cmd driver.Command, out, errs io.WriteCloser) (driver.Proc, error) {
	if err := b.check(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", id, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &proc{box: b, id: id, pid: int(lastPID.Add(1)), done: make(chan struct{}), cancel: cancel}
	p.name, _, _ = strings.Cut(strings.TrimSpace(cmd.Shell), " ")
	b.mu.Lock()
	if b.procs[id] != nil {
		b.mu.Unlock()
		cancel(nil)
		return nil, engine.Errorf(engine.Conflict, "start %s: it is running already", id)
	}
	b.procs[id] = p
	b.mu.Unlock()
	program := &Process{Env: cmd.Env, Dir: cmd.Dir, Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Files: &b.files, proc: p}
	if errs != nil {
		program.Stderr = errs
	}
	p.tty = cmd.Terminal != nil
	if cmd.Stdin || p.tty {
		program.Stdin, p.in = io.Pipe()
	}
	go func() {
		started := time.Now()
		code := b.driver.run(ctx, program, cmd.Shell)
		out.Close()
		if errs != nil {
			errs.Close()
		}
		p.finish(code, started)
	}()
	return p, nil
}

func (b *Box) check(cmd driver.Command) error {
	switch {
	case strings.TrimSpace(cmd.Shell) == "" || strings.ContainsRune(cmd.Shell, 0):
		return engine.Errorf(engine.Invalid, "the command is empty or has a NUL character in it")
	case cmd.Timeout < 0:
		return engine.Errorf(engine.Invalid, "timeout %s is negative", cmd.Timeout)
	case cmd.Profile != driver.ProfileApp && cmd.Profile != driver.ProfileAgent:
		return engine.Errorf(engine.Invalid, "there is no profile %q", cmd.Profile)
	case cmd.Dir != "" && !b.files.isDir(path.Clean(cmd.Dir)):
		return engine.Errorf(engine.Invalid, "working directory %q is not in the workspace", cmd.Dir)
	}
	for name, value := range cmd.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return engine.Errorf(engine.Invalid, "environment variable %q can't be", name)
		}
	}
	return nil
}

// finish tells the exit, once.
func (p *proc) finish(code int, started time.Time) {
	p.ended.Do(func() {
		b := p.box
		b.mu.Lock()
		delete(b.procs, p.id)
		for port, l := range b.ports {
			if l.proc == p {
				delete(b.ports, port)
				close(l.closed)
			}
		}
		b.mu.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exit = engine.Exit{Code: code, Killed: p.killed, At: time.Now().UTC(), Uptime: engine.Duration(time.Since(started))}
		if p.sig != "" {
			p.exit.Code, p.exit.Signal = engine.ExitSignalBase+signals[p.sig], p.sig
		}
		p.cancel(nil)
		if p.in != nil {
			p.in.CloseWithError(errors.New("the process has exited"))
		}
		close(p.done)
	})
}

// PID is a number that no other process of this test binary has.
func (p *proc) PID() int { return p.pid }

// Wait waits for the exit.
func (p *proc) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	default:
	}
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, ctx.Err()
	}
}

// Signal ends the process with every signal that it knows.
func (p *proc) Signal(_ context.Context, name string) error {
	if signals[name] == 0 {
		return engine.Errorf(engine.Invalid, "there is no signal %q", name)
	}
	select {
	case <-p.done:
		return engine.Errorf(engine.Conflict, "%s has exited", p.id)
	default:
	}
	p.stop(name, false)
	return nil
}

func (p *proc) stop(sig string, killed bool) {
	p.mu.Lock()
	p.sig, p.killed = sig, p.killed || killed
	p.mu.Unlock()
	p.cancel(errors.New(sig))
}

// Kill ends the process. A program that doesn't end is left to itself, its
// exit told all the same.
func (p *proc) Kill(ctx context.Context, grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	started := time.Now()
	if grace > 0 {
		p.stop("SIGTERM", true)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return nil
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.stop("SIGKILL", true)
	p.finish(0, started)
	return nil
}

// Input is its stdin.
func (p *proc) Input() io.WriteCloser {
	if p.in == nil {
		return nil
	}
	return p.in
}

// Resize gives a terminal a size, which nothing here shows.
func (p *proc) Resize(ctx context.Context, size engine.TermSize) error {
	if !p.tty {
		return engine.Errorf(engine.Conflict, "%s has no terminal", p.id)
	}
	return errors.Join(size.Check(), ctx.Err())
}
