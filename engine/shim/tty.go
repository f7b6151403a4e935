//go:build linux

package shim

import (
	"context"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// TTY is a child's terminal: its three streams, and what controls its session.
// It is the child's alone, so what it types into it itself (TIOCSTI) reaches
// nobody else.
type TTY struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// newTTY makes a pseudo-terminal: what the child gets is the owner's, as login
// would have it; our end doesn't block.
func newTTY(t TTY, owner *User) (ours, theirs *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, Shortage(fmt.Errorf("make a terminal: %w", err))
	}
	ours = os.NewFile(uintptr(fd), "terminal")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		ours.Close()
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	// Not by its name, which another mount of devpts may give to another one.
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		ours.Close()
		return nil, nil, Shortage(fmt.Errorf("make a terminal: %w", errno))
	}
	theirs = os.NewFile(peer, "terminal")
	if err = setSize(fd, t); err == nil && owner != nil {
		err = unix.Fchown(int(peer), owner.UID, owner.GID)
	}
	if err == nil {
		err = unix.Fchmod(int(peer), 0o600)
	}
	if err != nil {
		closeAll([]*os.File{ours, theirs})
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	return ours, theirs, nil
}

func setSize(fd int, t TTY) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(t.Rows), Col: uint16(t.Cols)})
}

// openTTY opens the child's terminal: read from as its output, written to as
// its input.
func (s *starting) openTTY() error {
	ours, theirs, err := newTTY(*s.order.TTY, s.order.Owner)
	if err != nil {
		return err
	}
	s.ours, s.theirs = append(s.ours, ours), append(s.theirs, theirs)
	again, err := unix.FcntlInt(theirs.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Shortage(err)
	}
	s.theirs = append(s.theirs, os.NewFile(uintptr(again), "terminal"))
	var in int
	rc, err := ours.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := rc.Control(func(fd uintptr) { in, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil || err != nil {
		return Shortage(err)
	}
	s.child.in, s.child.tty = os.NewFile(uintptr(in), "terminal"), true
	return nil
}

// A typist is the input of a terminal. Closing it does nothing: the program
// has one way out, its own.
type typist struct{ f *os.File }

func (t typist) Write(b []byte) (int, error)           { return t.f.Write(b) }
func (t typist) SetWriteDeadline(when time.Time) error { return t.f.SetWriteDeadline(when) }
func (t typist) Close() error                          { return nil }

// Resize gives the child's terminal a size. The kernel tells the program, if
// it is another one.
func (c *Child) Resize(_ context.Context, t TTY) error {
	if !c.tty {
		return engine.Errorf(engine.Conflict, "%s has no terminal", c.id)
	}
	rc, err := c.in.SyscallConn()
	if err == nil {
		var failed error
		err = rc.Control(func(fd uintptr) { failed = setSize(int(fd), t) })
		if err == nil {
			err = failed
		}
	}
	if c.over() {
		return engine.Errorf(engine.Conflict, "%s has exited", c.id)
	}
	return err
}

// LeadTTY makes the caller, on whose terminal its streams are, the one that
// keys like ctrl+C are for. Whoever leads the session stays out of it: a
// bubblewrap that is interrupted would take everything with it.
func LeadTTY() error {
	pid := unix.Getpid()
	if sid, err := unix.Getsid(0); err == nil && sid == pid {
		return nil // the leader's group is in the foreground from the beginning
	}
	if err := unix.Setpgid(0, 0); err != nil {
		return fmt.Errorf("lead the terminal: %w", err)
	}
	// From the background this stops a process that doesn't block the signal.
	var set, old unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGTTOU - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		return fmt.Errorf("lead the terminal: %w", err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }() // it was right before
	group := int32(pid)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSPGRP, uintptr(unsafe.Pointer(&group))); errno != 0 {
		return fmt.Errorf("lead the terminal: %w", errno)
	}
	return nil
}
