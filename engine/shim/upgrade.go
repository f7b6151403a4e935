//go:build linux

package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// A legacy is what a shim leaves to the program that it executes: as JSON in a
// memory file, with descriptors by number. Fields are added, never changed: the
// program before is older, and may be much older.
type legacy struct {
	Listener int       `json:"listener"`
	Children []bequest `json:"children"`
}

// A bequest is one child in it. -1 is no descriptor.
type bequest struct {
	State  State        `json:"state"`
	Order  Order        `json:"order"`
	Killed bool         `json:"killed,omitempty"`
	End    *engine.Exit `json:"end,omitempty"` // reaped, and not told yet
	PidFD  int          `json:"pidfd"`
	Input  int          `json:"input"`
	Output []int        `json:"output,omitempty"` // read ends, in the order of streams
}

// upgrade executes the binary that came with the request in this one's place.
// It returns only if it could not.
func (s *server) upgrade(r request) error {
	if len(r.files) != 1 {
		return engine.Errorf(engine.Invalid, "an upgrade comes with a binary")
	}
	if !lockWithin(&s.busy, busyTime) {
		return engine.Errorf(engine.Unavailable, "this shim is busy").After(time.Second)
	}
	defer s.busy.Unlock()
	// From here on nothing is taken out of the kernel: what children write and
	// how they end waits there for the next program.
	s.runner.gate.Lock()
	defer s.runner.gate.Unlock()
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	var short error
	keep := func(f syscall.Conn) int {
		fd, err := dupKept(f)
		if err != nil {
			if !errors.Is(err, os.ErrClosed) { // that one has come to its end
				short = Shortage(err)
			}
			return -1
		}
		fds = append(fds, fd)
		return fd
	}
	memory, err := s.bequeath(keep)
	if err != nil {
		return err
	}
	fds = append(fds, memory)
	if short != nil {
		return fmt.Errorf("keep what children hold: %w", short)
	}
	exe, err := dup(r.files[0])
	if err != nil {
		return err
	}
	defer unix.Close(exe)
	argv := append(append([]string{os.Args[0], "shim"}, s.args...), "--resume", strconv.Itoa(memory))
	s.log.Info("executing another version", "was", s.version, "is", r.Version)
	s.runner.spawner.on(func() { err = syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", exe), argv, os.Environ()) })
	return fmt.Errorf("execute the new binary: %w", err)
}

// busyTime is how long an upgrade waits for what is being done.
const busyTime = 5 * time.Second

func lockWithin(mu *sync.RWMutex, d time.Duration) bool {
	for begun := time.Now(); !mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > d {
			return false
		}
	}
	return true
}

// bequeath writes the legacy.
func (s *server) bequeath(keep func(syscall.Conn) int) (fd int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := legacy{Listener: keep(s.l)}
	for _, h := range s.held {
		if h.state.Tree.Main == 0 {
			continue // being started: not while we hold busy
		}
		b := bequest{State: h.state, Order: h.order, PidFD: -1, Input: -1}
		b.Order.Plan, b.Order.Env = nil, nil
		if c := h.child; c != nil && h.state.Exit == nil {
			c.mu.Lock()
			b.Killed, b.End = c.killed, c.end
			c.mu.Unlock()
			if b.End == nil {
				b.PidFD = keep(c.exited)
			}
			if c.in != nil {
				b.Input = keep(c.in)
			}
			for _, p := range c.pumps {
				b.Output = append(b.Output, p.keep(keep))
			}
		}
		left.Children = append(left.Children, b)
	}
	data, err := json.Marshal(left)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.MemfdCreate("shim", 0); err != nil {
		return -1, err
	}
	if _, err := unix.Pwrite(fd, data, 0); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// dupKept is a descriptor that the next program inherits.
func dupKept(f syscall.Conn) (fd int, err error) {
	rc, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	err2 := rc.Control(func(old uintptr) { fd, err = unix.Dup(int(old)) })
	if err == nil {
		err = err2
	}
	return fd, err
}

// resume goes on with what the program before this one has left.
func (s *server) resume(memory int) error {
	f := os.NewFile(uintptr(memory), "legacy")
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return fmt.Errorf("read what is left: %w", err)
	}
	var left legacy
	if err := json.Unmarshal(data, &left); err != nil {
		return fmt.Errorf("read what is left: %w", err)
	}
	for _, b := range left.Children {
		s.inherit(b)
	}
	lf := os.NewFile(uintptr(left.Listener), filepath.Join(s.dir, socketName))
	defer lf.Close()
	l, err := net.FileListener(lf)
	if err != nil {
		return fmt.Errorf("go on listening: %w", err)
	}
	s.l = l.(*net.UnixListener)
	s.l.SetUnlinkOnClose(false)
	return nil
}

// inherit takes a child over. A log that can't be opened loses its lines, not
// the child.
func (s *server) inherit(b bequest) {
	h := &held{state: b.State, order: b.Order, ready: make(chan struct{})}
	s.held[b.State.ID] = h
	defer close(h.ready)
	if b.State.Exit != nil || b.PidFD < 0 && b.End == nil {
		s.write(h) // perhaps it was not yet
		return
	}
	c := &Child{
		tree: b.State.Tree, id: b.State.ID, alone: b.Order.Alone, oom: b.Order.OOM, started: b.State.Started, killed: b.Killed,
		end: b.End, done: make(chan struct{}), gone: make(chan struct{}), hooks: Hooks{Exited: func() { s.exited(h) }},
	}
	h.child = c
	if b.Input >= 0 {
		c.in, c.tty = inherited(b.Input, "input"), b.Order.TTY != nil
	}
	outs, err := s.openLogs(b.Order, true)
	if err != nil {
		s.log.Error("going on with a log", "child", c.id, "err", err)
	}
	for i, fd := range b.Output {
		if fd < 0 {
			if i < len(outs) {
				outs[i].Close()
			}
			continue
		}
		var w io.WriteCloser = nowhere{}
		if i < len(outs) {
			w = outs[i]
		}
		c.pumps = append(c.pumps, newPump(inherited(fd, "output"), w, &s.runner.gate))
	}
	for _, p := range c.pumps {
		s.runner.work.Go(p.run)
	}
	if b.PidFD >= 0 {
		s.runner.roots.add(c.tree.Root.PID)
		c.exited = inherited(b.PidFD, "pidfd")
	}
	s.runner.work.Go(func() { c.watch(s.runner) })
}

func inherited(fd int, name string) *os.File {
	unix.CloseOnExec(fd)
	unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), name)
}

// nowhere is where output goes that can't be kept.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }
