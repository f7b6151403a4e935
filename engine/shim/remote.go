//go:build linux

package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sbx/engine"
)

// Remote is a child of another process, its shim.
type Remote struct {
	client *Client // nil: its shim was gone before we came
	dir    string  // of its shim
	hooks  Hooks
	done   chan struct{} // closed when exit is set
	once   sync.Once
	in     *remoteInput // nil: reads end-of-file

	// answered: its start was; before, nobody is told of its end. Both are
	// guarded by the client's mu.
	answered bool
	early    *State // of one that ended before

	mu     sync.Mutex
	state  State
	killed bool
	lost   bool
}

// Start has the shim start a child, whose output goes to its log.
func (c *Client) Start(ctx context.Context, o Order, hooks Hooks) (*Remote, error) {
	// A start under way must not be lost: its caller's end doesn't end it.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), startWithin)
	defer cancel()
	r := &Remote{client: c, dir: c.dir, hooks: hooks, done: make(chan struct{}), state: State{ID: o.ID, Box: o.Box}}
	c.mu.Lock()
	c.children[o.ID] = r // before the answer: its exit may come first
	c.mu.Unlock()
	a, err := c.call(call, request{Do: "start", Order: &o})
	if engine.AsCode(err) == engine.Conflict { // of a start whose answer was lost
		_, err1 := c.call(call, request{Do: "kill", Child: o.ID})
		_, err2 := c.call(call, request{Do: "ack", Child: o.ID})
		if err1 == nil && err2 == nil {
			a, err = c.call(call, request{Do: "start", Order: &o})
		}
	}
	if err == nil && a.Child == nil {
		err = engine.Errorf(engine.Internal, "the shim said nothing of the child")
	}
	if err != nil {
		closeAll(a.files)
		c.mu.Lock()
		if c.children[o.ID] == r {
			delete(c.children, o.ID)
		}
		c.mu.Unlock()
		return nil, err
	}
	r.mu.Lock()
	r.state = *a.Child
	r.mu.Unlock()
	if len(a.files) > 0 {
		r.in = &remoteInput{r: r, f: a.files[0]}
	}
	c.answered(r)
	return r, nil
}

// answered has a child's end told, which may have come meanwhile, or its shim's.
func (c *Client) answered(r *Remote) {
	c.mu.Lock()
	r.answered = true
	early, gone := r.early, c.buried
	c.mu.Unlock()
	switch {
	case early != nil && r.is(*early):
		go r.end(*early.Exit, false) // its hooks wait until it is known
	case gone:
		go r.bury(c.ctx)
	}
}

// startWithin bounds a start: a shim that takes longer is hung.
const startWithin = 30 * time.Second

// Adopt takes the shim's children over, those too that have exited.
func (c *Client) Adopt(ctx context.Context, hooks func(State) Hooks) ([]*Remote, error) {
	a, err := c.call(ctx, request{Do: "list"})
	if err != nil {
		return nil, err
	}
	var list []*Remote
	for _, s := range a.List {
		if s.Exit == nil && !c.isOurs(s) {
			c.log.Warn("leaving alone what the shim calls its own and is not", "child", s.ID, "pid", s.Tree.Root.PID)
			continue
		}
		r := &Remote{client: c, dir: c.dir, done: make(chan struct{}), state: s, answered: true}
		if s.Exit == nil {
			r.hooks = hooks(s)
		}
		if (s.Stdin || s.TTY) && s.Exit == nil {
			if in, err := c.call(ctx, request{Do: "input", Child: s.ID}); err == nil && len(in.files) == 1 {
				r.in = &remoteInput{r: r, f: in.files[0]}
			}
		}
		c.mu.Lock()
		c.children[s.ID] = r
		c.mu.Unlock()
		if s.Exit != nil {
			r.end(*s.Exit, false)
		}
		list = append(list, r)
	}
	c.reconcile() // what exited in between
	return list, nil
}

// isOurs reports whether a child is still who it was, and the shim's own.
func (c *Client) isOurs(s State) bool {
	now, ok := StatOf(s.Tree.Root.PID)
	return !ok || now.Start == s.Tree.Root.Start && now.Parent == c.Hello().PID // gone: its exit is on its way
}

// Left is a child that ended, and then its shim. Of another boot nothing can be
// left of its tree, and whoever has its pids is a stranger.
func Left(dir string, s State) *Remote {
	if s.Boot != BootID() {
		s.Tree = Tree{}
	}
	r := &Remote{dir: dir, done: make(chan struct{}), state: s}
	r.end(*s.Exit, false)
	return r
}

func (c *Client) exited(s State) {
	c.mu.Lock()
	r := c.children[s.ID]
	if r != nil && !r.answered {
		r.early = &s
		r = nil
	}
	c.mu.Unlock()
	if r != nil && s.Exit != nil && r.is(s) {
		c.work.Go(func() { r.end(*s.Exit, false) }) // whoever hears of it may ask the shim something
	}
}

// is reports whether a state is that of this start, not of an earlier one.
func (r *Remote) is(s State) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Tree.Root.PID == s.Tree.Root.PID && r.state.Tree.Root.Start == s.Tree.Root.Start
}

func (r *Remote) end(exit engine.Exit, lost bool) {
	r.once.Do(func() {
		r.mu.Lock()
		exit.Killed = exit.Killed || r.killed
		r.state.Exit, r.lost = &exit, lost
		r.mu.Unlock()
		if r.hooks.Exited != nil {
			r.hooks.Exited()
		}
		close(r.done)
		if r.hooks.Gone != nil {
			r.hooks.Gone()
		}
		if r.in != nil {
			_ = r.in.f.Close() // nobody reads what is written to it
		}
	})
}

// buryAll kills what a shim that is gone ran, and then tells it as lost.
func (c *Client) buryAll(cause error) {
	c.mu.Lock()
	c.closed, c.buried = true, true
	var left []*Remote
	for _, r := range c.children {
		if r.answered { // the others' starts have failed
			left = append(left, r)
		}
	}
	c.mu.Unlock()
	c.log.Warn("a shim has ended; what it ran is killed", "pid", c.self.PID, "children", len(left), "err", cause)
	var killing sync.WaitGroup
	for _, r := range left {
		killing.Go(func() { r.bury(c.ctx) })
	}
	killing.Wait()
	close(c.dead)
}

func (r *Remote) bury(ctx context.Context) {
	select {
	case <-r.done:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	t := r.Tree()
	if t.Main != 0 {
		_ = t.End(ctx, true) // what can't be killed is a stray, and found as one
		if t.Cgroup != "" {
			_ = t.Cgroup.Remove()
		}
	}
	r.end(engine.Exit{
		Code: engine.ExitSignalBase + 9, Signal: "SIGKILL", Killed: true, Error: LostReason, At: time.Now().UTC(),
		Uptime: engine.Duration(time.Since(r.Started())),
	}, true)
}

// LostReason is why a child ended whose shim did.
const LostReason = "the shim that ran it ended"

// State is the child as its shim knows it.
func (r *Remote) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// PID is what people see as the process.
func (r *Remote) PID() int { return r.State().Tree.Main }

// Tree is what the child and its descendants are found by.
func (r *Remote) Tree() Tree { return r.State().Tree }

// Members are the living processes of its tree.
func (r *Remote) Members() []Stat { t := r.Tree(); return t.Members() }

// Started is when it was forked.
func (r *Remote) Started() time.Time { return r.State().Started }

// LogStart is where its log begins.
func (r *Remote) LogStart() engine.LogPosition { return engine.LogPosition(r.State().LogStart) }

// Lost reports whether it ended because its shim did.
func (r *Remote) Lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Done is closed when the exit is known.
func (r *Remote) Done() <-chan struct{} { return r.done }

// Wait waits for the exit.
func (r *Remote) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-r.done:
		return *r.State().Exit, nil
	default:
	}
	select {
	case <-r.done:
		return *r.State().Exit, nil
	case <-ctx.Done():
		return engine.Exit{}, ctx.Err()
	}
}

func (r *Remote) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to everything in the tree that is the sandbox's.
func (r *Remote) Signal(ctx context.Context, name string) error {
	if r.over() {
		return engine.Errorf(engine.Conflict, "%s has exited", r.State().ID)
	}
	_, err := r.client.call(ctx, request{Do: "signal", Child: r.State().ID, Signal: name})
	return err
}

// Kill ends the tree: TERM, grace, KILL. Of one that has exited what it left
// behind is killed.
func (r *Remote) Kill(ctx context.Context, grace time.Duration) error {
	id := r.State().ID
	if r.over() {
		return r.End(ctx)
	}
	r.mu.Lock()
	r.killed = true
	r.mu.Unlock()
	_, err := r.client.call(ctx, request{Do: "kill", Child: id, Grace: engine.Duration(grace)})
	if err != nil && ctx.Err() == nil {
		// The shim is busy dying: whoever buries it kills this one.
		if t := r.Tree(); t.End(ctx, false) != nil {
			return fmt.Errorf("kill %s: %w", id, err)
		}
	}
	_, err = r.Wait(ctx)
	return err
}

// Resize gives the child's terminal a size.
func (r *Remote) Resize(_ context.Context, t TTY) error {
	s := r.State()
	switch {
	case !s.TTY || r.in == nil:
		return engine.Errorf(engine.Conflict, "%s has no terminal", s.ID)
	case r.over():
		return engine.Errorf(engine.Conflict, "%s has exited", s.ID)
	}
	rc, err := r.in.f.SyscallConn()
	if err != nil {
		return err
	}
	err2 := rc.Control(func(fd uintptr) { err = setSize(int(fd), t) })
	return errors.Join(err, err2)
}

// End kills what is left of the tree.
func (r *Remote) End(ctx context.Context) error {
	t := r.Tree()
	return t.End(ctx, r.over())
}

// AwaitEmpty does nothing: the shim gives back what was set up.
func (r *Remote) AwaitEmpty() {}

// Forget says that its exit has been written down elsewhere.
func (r *Remote) Forget() {
	id := r.State().ID
	if r.client == nil {
		if plainName(id) {
			_ = os.Remove(filepath.Join(r.dir, exitsDir, id)) // gone is gone
		}
		return
	}
	c := r.client
	c.mu.Lock()
	if c.children[id] != r {
		c.mu.Unlock()
		return // started anew meanwhile
	}
	delete(c.children, id)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, beatWithin)
	defer cancel()
	_, _ = c.call(ctx, request{Do: "ack", Child: id}) // then it is told again, to the next engine
}

// Input is the process's stdin.
func (r *Remote) Input() io.WriteCloser {
	if r.in == nil {
		return nil // not an interface holding a nil pointer
	}
	return r.in
}

// remoteInput writes to the child itself; closing takes the shim, which holds
// the other end open when engines go.
type remoteInput struct {
	r *Remote
	f *os.File
}

func (i *remoteInput) Write(p []byte) (int, error) { return i.f.Write(p) }

// SetWriteDeadline bounds writes that wait for a reader.
func (i *remoteInput) SetWriteDeadline(t time.Time) error { return i.f.SetWriteDeadline(t) }

// Close of a terminal does nothing: its program has one way out, its own.
func (i *remoteInput) Close() error {
	if i.r.State().TTY {
		return nil
	}
	err := i.f.Close()
	ctx, cancel := context.WithTimeout(i.r.client.ctx, beatWithin)
	defer cancel()
	if _, err2 := i.r.client.call(ctx, request{Do: "close", Child: i.r.State().ID}); err == nil && !i.r.over() {
		err = err2
	}
	return err
}
