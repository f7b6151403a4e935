//go:build linux

package shim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// Protocol is the version of what is spoken over a shim's socket: four bytes of
// length, then JSON; descriptors travel with the first byte of their message.
//
//	engine ── {"id":7,"do":"start","order":{…}} ──────────► shim
//	engine ◄─ {"id":7,"child":{…},"fds":1} + stdin ──────── shim
//	engine ◄─ {"exited":{…}} ────────────────────────────── shim   by itself
//
// An engine speaks to every older shim, and has it execute the new binary.
const Protocol = 1

// maxMessage bounds one message: an order with a large environment.
const maxMessage = 16 << 20

// sendWithin is how long the other side may take to read a message.
const sendWithin = 10 * time.Second

// A request is what an engine asks.
type request struct {
	ID      uint64          `json:"id"`
	Do      string          `json:"do"`
	Order   *Order          `json:"order,omitempty"`
	Child   string          `json:"child,omitempty"`
	Signal  string          `json:"signal,omitempty"`
	Grace   engine.Duration `json:"grace,omitempty"`
	Version string          `json:"version,omitempty"`
	FDs     int             `json:"fds,omitempty"`

	files []*os.File
}

// A reply is what the shim says: an answer, or by itself that a child exited.
type reply struct {
	ID     uint64        `json:"id,omitempty"`
	Error  *engine.Error `json:"error,omitempty"`
	Hello  *Hello        `json:"hello,omitempty"`
	Child  *State        `json:"child,omitempty"`
	List   []State       `json:"list,omitempty"`
	Exited *State        `json:"exited,omitempty"`
	FDs    int           `json:"fds,omitempty"`

	files []*os.File
}

// Hello is who a shim is.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of its binary
	Boot     string `json:"boot"`    // the kernel's id of this boot
	PID      int    `json:"pid"`
	Start    uint64 `json:"start"` // with PID, its identity
	CanShed  bool   `json:"canShed,omitempty"`
}

// State is a child as its shim knows it.
type State struct {
	ID       string    `json:"id"`
	Box      string    `json:"box,omitempty"`
	Tree     Tree      `json:"tree"`
	Started  time.Time `json:"started"`
	LogStart int64     `json:"logStart"`
	Boot     string    `json:"boot,omitempty"` // the kernel's id of the boot that Tree is of
	Stdin    bool      `json:"stdin,omitempty"`
	TTY      bool      `json:"tty,omitempty"`
	// Exit is how it ended; nil while it lives.
	Exit *engine.Exit `json:"exit,omitempty"`
}

// A wire sends and receives messages over a unix socket.
type wire struct {
	c *net.UnixConn

	mu sync.Mutex // of writing

	buf  []byte // what was received and not yet taken
	fds  []int
	room []byte
}

func newWire(c *net.UnixConn) *wire { return &wire{c: c, room: make([]byte, 64<<10)} }

// send writes one message with its descriptors, which stay the caller's.
func (w *wire) send(v any, files ...*os.File) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return engine.Errorf(engine.Invalid, "a message of %d bytes to a shim", len(data))
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data)))
	msg = append(msg, data...)
	oob, release, err := rights(files)
	if err != nil {
		return err
	}
	defer release()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.c.SetWriteDeadline(time.Now().Add(sendWithin)); err != nil {
		return err
	}
	n, _, err := w.c.WriteMsgUnix(msg, oob, nil)
	if err == nil && n < len(msg) {
		_, err = w.c.Write(msg[n:])
	}
	return err
}

// rights puts descriptors into a control message. They are held open until
// release.
func rights(files []*os.File) (oob []byte, release func(), err error) {
	var fds []int
	release = func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	for _, f := range files {
		fd, err := dup(f)
		if err != nil {
			release()
			return nil, nil, err
		}
		fds = append(fds, fd)
	}
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	return oob, release, nil
}

// dup is a descriptor of our own for a file, which File.Fd would make blocking.
func dup(f *os.File) (fd int, err error) {
	rc, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	err2 := rc.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(err, err2)
}

// receive reads the next message into v and returns n(v) descriptors that came
// with it.
func (w *wire) receive(v any, n func() int) ([]*os.File, error) {
	for {
		if len(w.buf) >= 4 {
			size := int(binary.BigEndian.Uint32(w.buf))
			if size > maxMessage {
				return nil, fmt.Errorf("a message of %d bytes", size)
			}
			if len(w.buf) >= 4+size {
				err := json.Unmarshal(w.buf[4:4+size], v)
				w.buf = w.buf[4+size:]
				if err != nil {
					return nil, err
				}
				return w.take(n()), nil
			}
		}
		if err := w.more(); err != nil {
			return nil, err
		}
	}
}

func (w *wire) more() error {
	oob := make([]byte, unix.CmsgSpace(16*4))
	n, oobn, _, _, err := w.c.ReadMsgUnix(w.room, oob)
	if err != nil {
		return err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return err
	}
	for i := range msgs {
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			for _, fd := range fds {
				unix.CloseOnExec(fd)
			}
			w.fds = append(w.fds, fds...)
		}
	}
	if n == 0 && oobn == 0 {
		return io.EOF
	}
	w.buf = append(w.buf, w.room[:n]...)
	return nil
}

func (w *wire) take(n int) []*os.File {
	n = min(n, len(w.fds))
	var files []*os.File
	for _, fd := range w.fds[:n] {
		files = append(files, os.NewFile(uintptr(fd), "passed"))
	}
	w.fds = w.fds[n:]
	return files
}

func (w *wire) close() {
	w.c.Close()
	closeAll(w.take(len(w.fds)))
}

// BuildOf tells one build of a program from another by its file.
func BuildOf(exe *os.File) string {
	fi, err := exe.Stat()
	if err != nil {
		return ""
	}
	st, _ := fi.Sys().(*syscall.Stat_t)
	if st == nil {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d", st.Dev, st.Ino, st.Size, fi.ModTime().UnixNano())
}

// BootID is the kernel's name for this boot: a pid and a start time of another
// one say nothing.
func BootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(data[:min(len(data), 36)])
}
