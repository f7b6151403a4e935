//go:build linux

package shim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// The times of a shim that doesn't answer: it is asked every beatEvery; after
// wakeWithin it is told to go on, in case somebody stopped it, and after
// beatWithin more it is killed.
const (
	beatEvery  = 5 * time.Second
	wakeWithin = 2 * time.Second
	beatWithin = 10 * time.Second
)

// Client is an engine's connection to one shim. When the shim dies, what it
// ran is killed, and then told as lost.
type Client struct {
	dir  string
	log  *slog.Logger
	self Stat // the shim
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	hello    Hello
	wire     *wire // nil: being connected again, or dead
	next     uint64
	pending  map[uint64]chan reply
	children map[string]*Remote
	changing bool // it is executing another binary: its connections end
	closed   bool
	buried   bool          // the shim is gone
	dead     chan struct{} // closed when the shim is gone
}

// Connect connects to the shim of a directory. The error is
// engine.Unavailable if none lives there any more.
func Connect(ctx context.Context, dir string, log *slog.Logger) (*Client, error) {
	c := &Client{dir: dir, log: log, pending: map[uint64]chan reply{}, children: map[string]*Remote{}, dead: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.Background())
	if err := c.connect(ctx); err != nil {
		c.stop()
		return nil, err
	}
	c.work.Go(c.run)
	c.work.Go(c.beat)
	return c, nil
}

// connect dials and says hello. A shim that listens and doesn't answer is
// woken, or killed.
func (c *Client) connect(ctx context.Context) error {
	conn, err := dial(c.dir)
	if err != nil {
		return engine.Errorf(engine.Unavailable, "no shim answers in %s: %w", c.dir, err)
	}
	cred, err := peer(conn)
	if err != nil {
		conn.Close()
		return err
	}
	self, _ := StatOf(int(cred.Pid))
	w := newWire(conn)
	for try := 1; ; try++ {
		var hello *Hello
		if hello, err = greet(ctx, w, try); err == nil && int(cred.Pid) != hello.PID {
			err = fmt.Errorf("it says it is %d, the kernel says %d", hello.PID, cred.Pid)
		}
		if err == nil {
			return c.take(*hello, self, w)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil || try > 1 {
			break
		}
		SignalOne(self, unix.SIGCONT)
	}
	w.close()
	if errors.Is(err, os.ErrDeadlineExceeded) && self.PID != 0 {
		c.log.Warn("a shim does not answer and is killed", "pid", self.PID)
		SignalOne(self, unix.SIGKILL)
	}
	return engine.Errorf(engine.Unavailable, "the shim in %s: %w", c.dir, err)
}

// take makes a connection the current one, unless this side hung up meanwhile:
// nobody would close it any more.
func (c *Client) take(hello Hello, self Stat, w *wire) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		w.close()
		return net.ErrClosed
	}
	c.hello, c.self, c.wire = hello, self, w
	return nil
}

// greetings are the ids of greetings: an answer that comes late is mistaken for
// no other.
const greetings = 1 << 62

func greet(ctx context.Context, w *wire, try int) (*Hello, error) {
	deadline := time.Now().Add(wakeWithin)
	if try > 1 {
		deadline = time.Now().Add(beatWithin)
	}
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := w.send(request{ID: greetings + uint64(try), Do: "hello"}); err != nil {
		return nil, err
	}
	if err := w.c.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	for {
		var r reply
		files, err := w.receive(&r, func() int { return r.FDs })
		closeAll(files)
		switch {
		case err != nil:
			return nil, err
		case r.Hello != nil:
			return r.Hello, w.c.SetReadDeadline(time.Time{})
		}
	}
}

// Hello is who the shim is.
func (c *Client) Hello() Hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hello
}

// Dead is closed when the shim is gone and what it ran was killed.
func (c *Client) Dead() <-chan struct{} { return c.dead }

// Ended is closed when this side has hung up.
func (c *Client) Ended() <-chan struct{} { return c.ctx.Done() }

// Alive reports whether the shim is there, as far as is known.
func (c *Client) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}

// Gone reports whether the shim's process has ended.
func (c *Client) Gone() bool {
	c.mu.Lock()
	was := c.self
	c.mu.Unlock()
	now, ok := StatOf(was.PID)
	return !ok || now.Start != was.Start || now.Dead()
}

// Close hangs up. What the shim runs goes on; its Remotes tell nothing more.
func (c *Client) Close() {
	c.stop()
	c.mu.Lock()
	c.closed = true
	if c.wire != nil {
		c.wire.c.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// run receives until the shim is gone, over as many connections as it takes.
func (c *Client) run() {
	for {
		c.mu.Lock()
		w := c.wire
		c.mu.Unlock()
		err := c.receive(w)
		w.close()
		if c.again(err) {
			continue
		}
		if c.ctx.Err() == nil {
			c.buryAll(err)
		}
		return
	}
}

// again connects again after a connection has ended, if the shim still lives.
func (c *Client) again(cause error) bool {
	c.mu.Lock()
	c.wire = nil
	for id, ch := range c.pending {
		close(ch)
		delete(c.pending, id)
	}
	tries := 2
	if c.changing {
		tries = 200
	}
	c.changing = false
	was := c.self
	c.mu.Unlock()
	for ; tries > 0 && c.ctx.Err() == nil; tries-- {
		if c.Gone() {
			return false
		}
		if err := c.connect(c.ctx); err == nil {
			c.log.Info("connected to a shim again", "pid", was.PID, "after", cause)
			c.work.Go(c.reconcile)
			return true
		}
		_ = Pause(c.ctx, 50*time.Millisecond)
	}
	if c.ctx.Err() == nil { // it lives, and is of no use
		SignalOne(was, unix.SIGKILL)
	}
	return false
}

// reconcile reads what happened between two connections.
func (c *Client) reconcile() {
	ctx, cancel := context.WithTimeout(c.ctx, beatWithin)
	defer cancel()
	r, err := c.call(ctx, request{Do: "list"})
	if err != nil {
		return // the beat will notice
	}
	for _, s := range r.List {
		if s.Exit != nil {
			c.exited(s)
		}
	}
}

func (c *Client) receive(w *wire) error {
	for {
		var r reply
		files, err := w.receive(&r, func() int { return r.FDs })
		if err != nil {
			return err
		}
		r.files = files
		if r.Exited != nil {
			c.exited(*r.Exited)
		}
		c.mu.Lock()
		ch := c.pending[r.ID]
		delete(c.pending, r.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- r
		} else {
			closeAll(files)
		}
	}
}

// call asks and waits for the answer.
func (c *Client) call(ctx context.Context, r request, files ...*os.File) (reply, error) {
	ch := make(chan reply, 1)
	c.mu.Lock()
	w := c.wire
	if w == nil || c.closed {
		c.mu.Unlock()
		return reply{}, engine.Errorf(engine.Unavailable, "the shim is not there").After(100 * time.Millisecond)
	}
	c.next++
	r.ID, r.FDs = c.next, len(files)
	c.pending[r.ID] = ch
	c.mu.Unlock()
	if err := w.send(r, files...); err != nil {
		w.c.Close()
		return reply{}, engine.Errorf(engine.Unavailable, "ask the shim: %w", err)
	}
	select {
	case a, ok := <-ch:
		switch {
		case !ok:
			return reply{}, engine.Errorf(engine.Unavailable, "the shim ended meanwhile").After(100 * time.Millisecond)
		case a.Error != nil:
			return a, a.Error
		}
		return a, nil
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// beat notices a shim that is there and does nothing.
func (c *Client) beat() {
	for Pause(c.ctx, beatEvery) == nil {
		if c.answers(wakeWithin) {
			continue
		}
		c.mu.Lock()
		self := c.self
		c.mu.Unlock()
		c.log.Warn("a shim does not answer: it is told to go on", "pid", self.PID)
		SignalOne(self, unix.SIGCONT)
		if !c.answers(beatWithin) {
			c.log.Warn("a shim does not answer and is killed", "pid", self.PID)
			SignalOne(self, unix.SIGKILL)
		}
	}
}

// answers reports whether the shim does; one that is being connected to again,
// or is gone, is somebody else's business.
func (c *Client) answers(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.ctx, within)
	defer cancel()
	_, err := c.call(ctx, request{Do: "hello"})
	return !errors.Is(err, context.DeadlineExceeded)
}

// Upgrade has the shim execute another binary in its place, unless that is what
// it runs.
func (c *Client) Upgrade(ctx context.Context, exe *os.File, version string) (bool, error) {
	if c.Hello().Version == version {
		return false, nil
	}
	c.mu.Lock()
	c.changing = true
	c.mu.Unlock()
	_, err := c.call(ctx, request{Do: "upgrade", Version: version}, exe)
	if e := new(engine.Error); errors.As(err, &e) && e.Code != engine.Unavailable {
		return false, fmt.Errorf("upgrade the shim: %w", err)
	}
	for wait := time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 50*time.Millisecond) {
		if c.Hello().Version == version {
			return true, nil
		}
		if err := Pause(ctx, wait); err != nil {
			break
		}
	}
	return false, fmt.Errorf("upgrade the shim: %w", errors.Join(err, ctx.Err()))
}
