package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/driver"
)

// A starting is a process on its way: what must be undone if it doesn't get
// there.
type starting struct {
	box  *box
	proc *proc
	cmd  command
	// ours are our ends of its pipes, theirs what the child inherits.
	ours, theirs []*os.File
	status       *os.File // the launcher's word; nil without a launcher
}

// start launches a process and returns when its program runs. On an error out
// and errs are left open.
func (b *box) start(ctx context.Context, id engine.ProcessID, l launch, stdin bool, out, errs io.WriteCloser) (*proc, error) {
	dir, err := b.checkDir(l.Dir)
	if err != nil {
		return nil, err
	}
	p := &proc{box: b, id: id, agent: l.Profile == driver.ProfileAgent, mark: newMark(b.id, id), done: make(chan struct{}), gone: make(chan struct{})}
	if err := b.admit(p); err != nil {
		return nil, err
	}
	s := &starting{box: b, proc: p}
	if err := s.run(ctx, l, dir, stdin, out, errs); err != nil {
		s.undo()
		return nil, err
	}
	return p, nil
}

func (s *starting) run(ctx context.Context, l launch, dir string, stdin bool, out, errs io.WriteCloser) (err error) {
	b, p := s.box, s.proc
	if p.release, err = b.placeMasks(l); err != nil {
		return err
	}
	if s.cmd, err = b.host.confine.command(b, l, dir); err != nil {
		return err
	}
	marker := b.host.marker(p.mark)
	s.cmd.env = append(s.cmd.env, marker)
	if plan := s.cmd.plan; plan != nil && !b.host.confine.hides() {
		plan.Env = append(plan.Env, marker) // the tree has nothing else to be found by
	}
	if err := s.open(stdin, errs != nil); err != nil {
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
func (s *starting) open(stdin, separate bool) error {
	b := s.box
	in, err := s.openStdin(stdin)
	if err != nil {
		return err
	}
	s.theirs = append(s.theirs, in)
	for range map[bool]int{false: 1, true: 2}[separate] {
		r, w, err := newPipe(b.uid, b.gid, b.host.root)
		if err != nil {
			return err
		}
		s.ours, s.theirs = append(s.ours, r), append(s.theirs, w)
	}
	if s.cmd.plan == nil {
		return nil
	}
	plan, err := s.cmd.plan.file()
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

func (s *starting) openStdin(keep bool) (*os.File, error) {
	if !keep {
		f, err := os.Open(os.DevNull)
		return f, spawnError(err)
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, spawnError(err)
	}
	unix.SetNonblock(fds[1], true)
	s.proc.in = os.NewFile(uintptr(fds[1]), "input")
	return os.NewFile(uintptr(fds[0]), "input"), nil
}

// spawn forks. The child is born in its cgroup and leads its own session.
func (s *starting) spawn() error {
	b, p := s.box, s.proc
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir: s.cmd.dir, Env: s.cmd.env, Files: s.files(),
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd, Pdeathsig: syscall.SIGKILL},
	}
	if cgroups := b.host.cgroups; cgroups != nil {
		cg, err := cgroups.make(b.id, p.id)
		if err != nil {
			return spawnError(err)
		}
		b.mu.Lock()
		p.cg = cg
		b.mu.Unlock()
		fd, err := cg.open()
		if err != nil {
			return spawnError(err)
		}
		defer unix.Close(fd)
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
	}
	by := b.host.spawner
	if attr.Sys.Credential = s.cmd.user; s.cmd.user != nil {
		by = b.host.shedder
	}
	pid, err := by.spawn(s.cmd.argv[0], s.cmd.argv, attr)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.cmd.argv[0], err)
	}
	root, _ := statOf(pid) // a child of ours: a zombie at least
	b.mu.Lock()
	defer b.mu.Unlock()
	p.started, p.root, p.main, p.exited = time.Now(), root, pid, exitFile(pidfd)
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
	if s.cmd.plan != nil {
		fds = append(fds, rest[0].Fd(), s.box.host.exe.Fd(), rest[1].Fd())
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
	p := s.proc
	if pid != p.root.PID {
		main, _ := statOf(pid)
		p.main, p.inside = pid, true
		p.init, _ = statOf(main.Parent) // zero if it has exited in this moment
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
	h, p := s.box.host, s.proc
	if s.status != nil {
		s.status.Close()
	}
	for i, w := range []io.WriteCloser{out, errs}[:len(s.ours)] {
		p.pumps = append(p.pumps, newPump(s.ours[i], w))
	}
	for _, pump := range p.pumps {
		h.work.Go(pump.run)
	}
	h.work.Go(p.watch)
}

// undo gives everything back, the child included.
func (s *starting) undo() {
	p := s.proc
	if p.exited != nil {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		defer cancel()
		signalOne(p.root, unix.SIGKILL)
		_, _, _ = waitExit(p.exited, p.root.PID)
		if p.cg != nil {
			_ = p.cg.kill(ctx) // Reap finds what is left
		}
		p.exited.Close()
	}
	if s.status != nil {
		s.status.Close()
	}
	if p.in != nil {
		p.in.Close()
	}
	closeAll(s.ours)
	closeAll(s.theirs)
	s.box.exitOf(p)
	p.cleanUp()
	s.box.goneOf(p)
	close(p.gone)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
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
