//go:build linux

package shim

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How long a process's output is waited for after its exit: until its reader
// has what was written before, and until nobody is listened to any more.
const (
	catchUpTime = 250 * time.Millisecond
	lingerTime  = time.Second
)

// buffers are shared by all pumps: a pump has one only while there is
// something to read, so that a thousand quiet processes hold none.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// A pump moves what a process writes from its pipe to a writer, and closes the
// writer when the last holder of the pipe has gone or lingerTime after finish.
type pump struct {
	r      *os.File
	w      io.WriteCloser
	gate   *sync.RWMutex
	caught chan struct{} // closed when all that was written before finish was handed over
	ended  chan struct{}

	flood flood
	over  chan struct{} // closed when the process has exited: nothing is slowed any more

	mu   sync.Mutex
	stop time.Time // of a process that has exited
}

// newPipe makes a pipe that the owner may open again to write, as a program does
// that writes to /dev/stderr, and not to read: what a sandbox has said can't be
// taken back. Where this process is root the owner can't change that either: it
// is the pipe's group. The read end doesn't block.
func newPipe(owner *User) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, Shortage(err)
	}
	unix.SetNonblock(fds[0], true)
	r, w = os.NewFile(uintptr(fds[0]), "output"), os.NewFile(uintptr(fds[1]), "output")
	mode := uint32(0o200)
	if owner != nil && owner.UID != 0 {
		mode = 0o020
		err = unix.Fchown(fds[1], 0, owner.GID)
	}
	if err == nil {
		err = unix.Fchmod(fds[1], mode)
	}
	if err != nil {
		r.Close()
		w.Close()
		return nil, nil, err
	}
	return r, w, nil
}

func newPump(r *os.File, w io.WriteCloser, gate *sync.RWMutex) *pump {
	return &pump{r: r, w: w, gate: gate, caught: make(chan struct{}), ended: make(chan struct{}), over: make(chan struct{})}
}

// run pumps until the end. It closes both sides.
func (p *pump) run() {
	defer close(p.ended)
	defer p.w.Close() // what it says is the log's business
	defer p.r.Close()
	defer p.catchUp()
	for {
		err := p.some()
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if p.finished() {
				return
			}
		default: // io.EOF: nobody holds the other end
			return
		}
	}
}

// some waits for output and hands over what is there.
func (p *pump) some() error {
	n, err := p.take()
	if err == nil {
		p.slow(p.flood.took(time.Now(), n)) // not with the gate held
	}
	return err
}

func (p *pump) take() (int, error) {
	rc, err := p.r.SyscallConn()
	if err != nil {
		return 0, err
	}
	var buf *[]byte
	var n int
	var readErr error
	err = rc.Read(func(fd uintptr) bool {
		p.gate.RLock()
		buf = buffers.Get().(*[]byte)
		if n, readErr = readAgain(int(fd), *buf); readErr != unix.EAGAIN {
			return true
		}
		p.gate.RUnlock()
		buffers.Put(buf)
		buf = nil
		return false
	})
	if buf != nil {
		defer p.gate.RUnlock()
		defer buffers.Put(buf)
	}
	switch {
	case err != nil:
		return 0, err
	case readErr != nil:
		return 0, readErr
	case n == 0:
		return 0, io.EOF
	}
	// A writer that fails loses the line, not the process: reading goes on, so
	// that the sandbox never gets EPIPE.
	p.w.Write((*buf)[:n])
	return n, nil
}

// slow makes the writer wait: its pipe is full meanwhile, and nobody else's.
func (p *pump) slow(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.over:
	}
}

func readAgain(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// finished is called when the deadline that finish set has passed: the first
// time, what is in the pipe is read and the pump goes on until stop.
func (p *pump) finished() bool {
	p.drain()
	p.catchUp()
	p.mu.Lock()
	stop := p.stop
	p.mu.Unlock()
	if !time.Now().Before(stop) {
		return true
	}
	p.r.SetReadDeadline(stop)
	return false
}

// drain hands over what is in the pipe now, at most one pipe's worth twice
// over: somebody may be writing all the time.
func (p *pump) drain() {
	rc, err := p.r.SyscallConn()
	if err != nil {
		return
	}
	p.gate.RLock()
	defer p.gate.RUnlock()
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for range 64 {
		n := 0
		rc.Control(func(fd uintptr) { n, err = readAgain(int(fd), *buf) })
		if err != nil || n <= 0 {
			return
		}
		p.w.Write((*buf)[:n])
	}
}

// keep has the read end kept open for another program; -1: it has ended.
func (p *pump) keep(keep func(syscall.Conn) int) int {
	select {
	case <-p.ended:
		return -1
	default:
		return keep(p.r)
	}
}

func (p *pump) catchUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.caught:
	default:
		close(p.caught)
	}
}

// finish says that the process has exited. It returns when what was written
// before that has been handed over, or after catchUpTime if the writer is slow.
func (p *pump) finish() {
	p.mu.Lock()
	p.stop = time.Now().Add(lingerTime)
	p.mu.Unlock()
	close(p.over)
	p.r.SetReadDeadline(time.Now())
	select {
	case <-p.caught:
	case <-time.After(catchUpTime):
	}
}
