//go:build linux

package shim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// newStatus makes the socket over which the launcher says, once, how it went.
// The kernel adds who said it: the launcher can't know its pid on this side of
// its namespace.
func newStatus() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, Shortage(err)
	}
	unix.SetNonblock(fds[0], true)
	ours, theirs = os.NewFile(uintptr(fds[0]), "status"), os.NewFile(uintptr(fds[1]), "status")
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		ours.Close()
		theirs.Close()
		return nil, nil, fmt.Errorf("make the launcher's socket: %w", err)
	}
	return ours, theirs, nil
}

// readStatus waits for the launcher's word and its pid. io.EOF: it is gone
// without one.
func readStatus(f *os.File) (word []byte, pid int, err error) {
	rc, err := f.SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	buf, oob := make([]byte, 4<<10), make([]byte, 128)
	var n, oobn int
	var readErr error
	err = rc.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, readErr = unix.Recvmsg(int(fd), buf, oob, 0)
			if readErr != unix.EINTR {
				return readErr != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return nil, 0, err
	case readErr != nil:
		return nil, 0, readErr
	case n == 0:
		return nil, 0, io.ErrUnexpectedEOF
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, 0, err
	}
	for i := range msgs {
		if cred, err := unix.ParseUnixCredentials(&msgs[i]); err == nil {
			pid = int(cred.Pid)
		}
	}
	return buf[:n], pid, nil
}

// Say is the launcher's side.
func Say(err error) {
	word := []byte("{}")
	if err != nil {
		e := engine.AsError(err)
		e.Message = e.Message[:min(len(e.Message), 2<<10)]
		word, _ = json.Marshal(e) // strings only
	}
	_ = unix.Sendto(StatusFD, word, 0, nil) // nobody listens: the engine has gone
}
