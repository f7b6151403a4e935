//go:build linux

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// Runner starts children and stays with them in this process. Open it before
// use; Close it when all its children are gone.
type Runner struct {
	exe     *os.File // the launcher
	spawner *spawner
	shedder *spawner       // of children that are born as another user; nil: none can be
	work    sync.WaitGroup // the goroutines of children
	roots   roots
	// outlives: this process becomes another program in the end, with the thread
	// of its spawner but not with that of its shedder, whose children must live.
	outlives bool
	// gate is held for reading from taking something out of the kernel until it
	// is where it belongs: a byte of output, an exit. Whoever holds it for
	// writing can be sure that nothing is on its way.
	gate sync.RWMutex
}

// OpenRunner starts the thread that children are started from. exe is what
// launchers are executed from; it stays the caller's.
func OpenRunner(exe *os.File) *Runner {
	s, _ := startSpawner(nil)
	return &Runner{exe: exe, spawner: s}
}

// Shed starts the thread that children of another user are born from, without
// any privilege. Some containers refuse what that needs.
func (r *Runner) Shed() error {
	s, err := startSpawner(shed)
	if err == nil {
		r.shedder = s
	}
	return err
}

// CanShed: orders may name a User.
func (r *Runner) CanShed() bool { return r.shedder != nil }

// Close waits for the children's goroutines and ends the starting threads.
func (r *Runner) Close() {
	r.work.Wait()
	r.spawner.stop()
	if r.shedder != nil {
		r.shedder.stop()
	}
}

// A starting is a child on its way: what must be undone if it doesn't get
// there.
type starting struct {
	runner *Runner
	order  Order
	child  *Child
	// ours are our ends of its pipes, theirs what the child inherits.
	ours, theirs []*os.File
	status       *os.File // the launcher's word; nil without a launcher
}

// Start starts a child and returns when its program runs. Its output goes to
// out and errs, which are closed when its last writer has gone, or soon after
// its exit; errs is nil unless the order splits them. On an error both are left
// open and no hook is called.
func (r *Runner) Start(ctx context.Context, o Order, out, errs io.WriteCloser, hooks Hooks) (*Child, error) {
	c := &Child{
		id: o.ID, alone: o.Alone, oom: o.OOM, hooks: hooks, tree: Tree{Cgroup: Cgroup(o.Cgroup), Mark: o.Mark},
		done: make(chan struct{}), gone: make(chan struct{}),
	}
	s := &starting{runner: r, order: o, child: c}
	if err := s.run(ctx, out, errs); err != nil {
		s.undo()
		return nil, err
	}
	return c, nil
}

func (s *starting) run(ctx context.Context, out, errs io.WriteCloser) error {
	if err := s.open(); err != nil {
		return err
	}
	if err := s.spawn(); err != nil {
		return err
	}
	closeAll(s.theirs)
	if err := s.hear(ctx); err != nil {
		return err
	}
	s.pump(out, errs)
	return nil
}

// open makes the pipes and whatever else the child inherits.
func (s *starting) open() error {
	open := s.openPipes
	if s.order.TTY != nil {
		open = s.openTTY
	}
	if err := open(); err != nil {
		return err
	}
	if s.order.Plan == nil {
		return nil
	}
	plan, err := planFile(s.order.Plan)
	if err != nil {
		return err
	}
	s.theirs = append(s.theirs, plan)
	status, theirs, err := newStatus()
	if err != nil {
		return err
	}
	s.status = status
	s.theirs = append(s.theirs, theirs)
	return nil
}

func (s *starting) openPipes() error {
	in, err := s.openStdin()
	if err != nil {
		return err
	}
	s.theirs = append(s.theirs, in)
	for range map[bool]int{false: 1, true: 2}[s.order.Split] {
		r, w, err := newPipe(s.order.Owner)
		if err != nil {
			return err
		}
		s.ours, s.theirs = append(s.ours, r), append(s.theirs, w)
	}
	return nil
}

func (s *starting) openStdin() (*os.File, error) {
	if !s.order.Stdin {
		f, err := os.Open(os.DevNull)
		return f, Shortage(err)
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, Shortage(err)
	}
	unix.SetNonblock(fds[1], true)
	s.child.in = os.NewFile(uintptr(fds[1]), "input")
	return os.NewFile(uintptr(fds[0]), "input"), nil
}

// spawn forks. The child is born in its cgroup and leads its own session.
func (s *starting) spawn() error {
	c, o := s.child, s.order
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: s.files(),
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.tty, Ctty: 0, PidFD: &pidfd},
	}
	if o.User == nil || !s.runner.outlives {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if c.tree.Cgroup != "" {
		fd, err := c.tree.Cgroup.open()
		if err != nil {
			return Shortage(err)
		}
		defer unix.Close(fd)
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
	}
	by := s.runner.spawner
	if o.User != nil {
		if by = s.runner.shedder; by == nil {
			return engine.Errorf(engine.Unavailable, "nothing can be started as another user here")
		}
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(o.User.UID), Gid: uint32(o.User.GID)}
	}
	s.runner.roots.forking.RLock()
	pid, err := by.spawn(o.Argv[0], o.Argv, attr, o.Visits)
	if err == nil {
		s.runner.roots.add(pid)
	}
	s.runner.roots.forking.RUnlock()
	if err != nil {
		return fmt.Errorf("start %s: %w", o.Argv[0], err)
	}
	root, _ := StatOf(pid) // a child of ours: a zombie at least
	c.started, c.tree.Root, c.tree.Main, c.exited = time.Now(), root, pid, exitFile(pidfd)
	return nil
}

// files are the child's descriptors, in order.
func (s *starting) files() []uintptr {
	in, out := s.theirs[0], s.theirs[1]
	rest := s.theirs[2:]
	errs := out
	if len(s.ours) == 2 {
		errs, rest = rest[0], rest[1:]
	}
	fds := []uintptr{in.Fd(), out.Fd(), errs.Fd()}
	if s.order.Plan != nil {
		fds = append(fds, rest[0].Fd(), s.runner.exe.Fd(), rest[1].Fd())
	}
	return fds
}

// hear waits until the launcher says that the program is about to run, or why
// it isn't.
func (s *starting) hear(ctx context.Context) error {
	if s.status == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { s.status.SetReadDeadline(time.Now()) })
	defer stop()
	word, pid, err := readStatus(s.status)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("confine: %w", errors.Join(err, s.lastWords()))
	}
	if e := new(engine.Error); json.Unmarshal(word, e) == nil && e.Message != "" {
		return e
	}
	t := &s.child.tree
	if pid != t.Root.PID {
		main, _ := StatOf(pid)
		t.Main, t.Inside = pid, true
		t.Init, _ = StatOf(main.Parent) // zero if it has exited in this moment
	}
	return nil
}

// lastWords is what a confiner that gave up has written.
func (s *starting) lastWords() error {
	var text strings.Builder
	for _, r := range s.ours {
		r.SetReadDeadline(time.Now().Add(catchUpTime))
		_, _ = io.Copy(&text, io.LimitReader(r, 4<<10)) // what there is
	}
	said := strings.TrimSpace(text.String())
	if said == "" {
		return nil
	}
	code := engine.Internal
	if strings.Contains(said, "Resource temporarily unavailable") || strings.Contains(said, "Cannot allocate memory") {
		code = engine.Unavailable
	}
	return engine.Errorf(code, "%s", said)
}

// pump hands the output on and begins to wait for the exit.
func (s *starting) pump(out, errs io.WriteCloser) {
	c, work := s.child, &s.runner.work
	if s.status != nil {
		s.status.Close()
	}
	for i, w := range []io.WriteCloser{out, errs}[:len(s.ours)] {
		c.pumps = append(c.pumps, newPump(s.ours[i], w, &s.runner.gate))
	}
	for _, pump := range c.pumps {
		work.Go(pump.run)
	}
	work.Go(func() { c.watch(s.runner) })
}

// undo gives everything back, the child included.
func (s *starting) undo() {
	c := s.child
	if c.exited != nil {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		defer cancel()
		SignalOne(c.tree.Root, unix.SIGKILL)
		defer s.runner.roots.drop(c.tree.Root.PID)
		_, _, _ = waitExit(c.exited, c.tree.Root.PID, &s.runner.gate)
		s.runner.gate.RUnlock()
		if c.tree.Cgroup != "" {
			_ = c.tree.Cgroup.Kill(ctx) // what is left is a stray
		}
		c.exited.Close()
	}
	if s.status != nil {
		s.status.Close()
	}
	if c.in != nil {
		c.in.Close()
	}
	closeAll(s.ours)
	closeAll(s.theirs)
	c.cleanUp()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
