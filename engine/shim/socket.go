//go:build linux

package shim

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// socketName is the socket in a shim's directory.
const socketName = "sock"

// near calls fn with a short path to a directory: a socket's path has room for
// 108 bytes, a data directory's may be longer.
func near(dir string, fn func(path string) error) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return fn(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// listen makes the socket, which only its own user may open.
func listen(dir string) (l *net.UnixListener, err error) {
	if err := os.Remove(filepath.Join(dir, socketName)); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	err = near(dir, func(path string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(path, socketName), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its path isn't true any more
	if err := os.Chmod(filepath.Join(dir, socketName), 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// dial connects to the shim of a directory, and refuses one of another user.
func dial(dir string) (c *net.UnixConn, err error) {
	err = near(dir, func(path string) error {
		c, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(path, socketName), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	if cred, err := peer(c); err != nil || int(cred.Uid) != os.Geteuid() {
		c.Close()
		return nil, engine.Errorf(engine.Forbidden, "the socket in %s isn't our own user's", dir)
	}
	return c, nil
}

// peer is who is at the other end, as the kernel knows it.
func peer(c *net.UnixConn) (cred *unix.Ucred, err error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	err2 := rc.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err == nil {
		err = err2
	}
	return cred, err
}
