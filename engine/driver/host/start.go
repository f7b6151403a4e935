//go:build linux

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/host/limit"
	"sbx/engine/shim"
)

// killTimeout bounds what nobody else bounds.
const killTimeout = 15 * time.Second

// A proc is a process of a box, from before its start until nothing is left
// to be done for it.
type proc struct {
	box     *box
	id      engine.ProcessID
	mark    string        // in the environment, this start's alone
	cg      shim.Cgroup   // "": none
	place   *limit.Place  // where its limits are; nil: not placed
	release func()        // takes away what was set up for it; may be called again
	child   child         // nil until it runs; guarded by box.mu until then
	begun   chan struct{} // closed when it runs, or never will
	gone    chan struct{}
}

var _ driver.Proc = (*proc)(nil)

// child is a started process, of ours or of a shim.
type child interface {
	PID() int
	Tree() shim.Tree
	Members() []shim.Stat
	Input() io.WriteCloser
	Done() <-chan struct{}
	Wait(ctx context.Context) (engine.Exit, error)
	Signal(ctx context.Context, name string) error
	Kill(ctx context.Context, grace time.Duration) error
	Resize(ctx context.Context, size shim.TTY) error
	End(ctx context.Context) error
	AwaitEmpty()
}

// PID is the process's id on this host.
func (p *proc) PID() int { return p.child.PID() }

// Input is the process's stdin.
func (p *proc) Input() io.WriteCloser { return p.child.Input() }

// Wait waits for the exit.
func (p *proc) Wait(ctx context.Context) (engine.Exit, error) { return p.child.Wait(ctx) }

// Signal sends a signal to everything in the tree that is the sandbox's.
func (p *proc) Signal(ctx context.Context, name string) error { return p.child.Signal(ctx, name) }

// Kill ends the tree: TERM, grace, KILL. One that is being started is waited
// for.
func (p *proc) Kill(ctx context.Context, grace time.Duration) error {
	select {
	case <-p.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.child == nil {
		return nil // its start failed
	}
	return p.child.Kill(ctx, grace)
}

// Resize gives its terminal a size.
func (p *proc) Resize(ctx context.Context, size engine.TermSize) error {
	if err := size.Check(); err != nil || size.Zero() {
		return engine.Errorf(engine.Invalid, "a terminal can't have that size")
	}
	return p.child.Resize(ctx, shim.TTY(size))
}

// start launches a process and returns when its program runs. It ends with the
// engine. On an error out and errs are left open.
func (b *box) start(ctx context.Context, id engine.ProcessID, l launch, stdin bool, out, errs io.WriteCloser) (*proc, error) {
	return b.launch(id, l, func(p *proc, o shim.Order) (child, error) {
		o.Stdin, o.Split = stdin, errs != nil
		c, err := b.host.runner.Start(ctx, o, out, errs, p.hooks())
		if err != nil {
			return nil, err
		}
		return c, nil
	}, os.Getpid())
}

// launch sets up what a process needs and has it started by parent, who is the
// process of that pid.
func (b *box) launch(id engine.ProcessID, l launch, start func(*proc, shim.Order) (child, error), parent int) (*proc, error) {
	dir, err := b.checkDir(l.Dir)
	if err != nil {
		return nil, err
	}
	p := &proc{box: b, id: id, mark: newMark(b.id, id), begun: make(chan struct{}), gone: make(chan struct{})}
	if err := b.admit(p); err != nil {
		return nil, err
	}
	o, err := p.order(l, dir, parent)
	var c child
	if err == nil {
		c, err = start(p, o)
	}
	if err != nil {
		p.placed()
		b.exitOf(p)
		if p.release != nil {
			p.release()
		}
		b.goneOf(p)
		close(p.begun)
		close(p.gone)
		return nil, err
	}
	b.mu.Lock()
	p.child = c
	b.mu.Unlock()
	p.placed()
	close(p.begun)
	return p, nil
}

// hooks wait until its child is known: one may end before its start returns.
func (p *proc) hooks() shim.Hooks {
	return shim.Hooks{
		Exited: func() {
			if <-p.begun; p.box != nil { // it was taken over by one
				p.exited()
			}
		},
		Gone: func() {
			if p.box != nil {
				p.box.goneOf(p)
			}
			close(p.gone)
		},
	}
}

// order is how a launch is carried out. What it sets up is p's to give back,
// also when it fails.
func (p *proc) order(l launch, dir string, parent int) (o shim.Order, err error) {
	b, h := p.box, p.box.host
	release, err := b.placeMasks(l)
	if err != nil {
		return o, err
	}
	if release != nil {
		p.release = sync.OnceFunc(release)
	}
	cmd, err := h.confine.command(b, l, dir)
	if err != nil {
		return o, err
	}
	marker := h.marker(p.mark)
	o = shim.Order{
		ID: string(p.id), Mark: marker, Argv: cmd.argv, Env: append(cmd.env, marker), Dir: cmd.dir, User: cmd.user,
		Alone: l.Profile == driver.ProfileAgent,
	}
	if h.root {
		o.Owner = &shim.User{UID: b.uid, GID: b.gid}
	}
	if l.Terminal != nil {
		tty := shim.TTY(l.Terminal.Size)
		o.TTY = &tty
	}
	if plan := cmd.plan; plan != nil {
		plan.TTY = o.TTY != nil
		if plan.Parent != 0 {
			plan.Parent = parent
		}
		if !h.confine.hides() {
			plan.Env = append(plan.Env, marker) // the tree has nothing else to be found by
		}
		if o.Plan, err = json.Marshal(plan); err != nil {
			return o, fmt.Errorf("write the launcher's plan: %w", err)
		}
	}
	if h.cgroups != nil {
		cg, err := h.cgroups.make(b.id, p.id)
		if err != nil {
			return o, shim.Shortage(err)
		}
		b.mu.Lock()
		p.cg = cg
		b.mu.Unlock()
		o.Cgroup = string(cg)
	}
	if p.place, err = h.limits.Begin(string(b.id), p.mark[strings.LastIndexByte(p.mark, '/')+1:], o.Cgroup, b.limits()); err != nil {
		return o, shim.Shortage(err)
	}
	o.Visits, o.OOM = p.place.Join, p.place.OOM
	return o, nil
}

// isKept reports whether a shim runs it.
func (p *proc) isKept() bool {
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	_, ok := p.child.(*shim.Remote)
	return ok
}

// isOver reports whether it has exited.
func (p *proc) isOver() bool {
	select {
	case <-p.child.Done():
		return true
	default:
		return false
	}
}

// exited: stand-ins are gone when the exit is told, but not before their user
// is.
func (p *proc) exited() {
	if p.release != nil {
		p.child.AwaitEmpty()
		p.release()
	}
	p.box.exitOf(p)
}

// admit takes an id for a process; one that lives has it alone.
func (b *box) admit(p *proc) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.procs[p.id] != nil {
		return engine.Errorf(engine.Conflict, "%s is running already", p.id)
	}
	b.procs[p.id] = p
	return nil
}

// exitOf and goneOf are the two ends of a process: it has exited, and nothing
// of what was set up for it is left.
func (b *box) exitOf(p *proc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.procs, p.id)
	b.ending[p] = true
}

func (b *box) goneOf(p *proc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.ending, p)
}
