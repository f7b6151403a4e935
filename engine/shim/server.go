//go:build linux

package shim

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/logs"
)

// A server is the shim's own process: it carries out orders that come over its
// socket, keeps what became of them, and tells every engine that listens.
type server struct {
	dir     string   // its own
	args    []string // to be executed with again
	version string
	idle    time.Duration // how long it stays with nobody to serve
	log     *slog.Logger
	logs    *logs.Store
	runner  *Runner
	l       *net.UnixListener
	// busy is held for reading while a request is carried out.
	busy sync.RWMutex

	mu    sync.Mutex
	held  map[string]*held
	wires map[*wire]bool
	shut  bool
}

// A held child is one that lives, or whose exit no engine has acknowledged.
type held struct {
	state State
	order Order
	child *Child // nil: it ended before this binary was executed
	ready chan struct{}
}

// serve accepts engines until the listener is closed.
func (s *server) serve(ctx context.Context) error {
	var talks sync.WaitGroup
	defer talks.Wait()
	for {
		c, err := s.l.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			s.log.Warn("accept", "err", err)
			_ = Pause(ctx, 100*time.Millisecond) // descriptors may be short
			continue
		}
		if cred, err := peer(c); err != nil || int(cred.Uid) != os.Geteuid() {
			c.Close()
			continue
		}
		w := newWire(c)
		s.mu.Lock()
		s.wires[w] = true
		s.mu.Unlock()
		talks.Go(func() { s.talk(ctx, w) })
	}
}

// talk answers one engine until it hangs up.
func (s *server) talk(ctx context.Context, w *wire) {
	var work sync.WaitGroup
	defer func() {
		s.mu.Lock()
		delete(s.wires, w)
		s.mu.Unlock()
		w.close()
		work.Wait()
	}()
	for {
		var r request
		files, err := w.receive(&r, func() int { return r.FDs })
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				s.log.Warn("an engine's connection ended", "err", err)
			}
			return
		}
		r.files = files
		work.Go(func() {
			answer := s.answer(ctx, r)
			closeAll(r.files)
			answer.ID, answer.FDs = r.ID, len(answer.files)
			if err := w.send(answer, answer.files...); err != nil {
				w.c.Close() // it reads nothing: better it asks again
			}
		})
	}
}

// answer carries out one request.
func (s *server) answer(ctx context.Context, r request) (a reply) {
	if r.Do == "upgrade" {
		a.Error = asError(s.upgrade(r))
		return a // only if it didn't
	}
	s.busy.RLock()
	defer s.busy.RUnlock()
	var err error
	switch r.Do {
	case "hello":
		a.Hello = s.hello()
	case "list":
		a.List = s.list()
	case "start":
		a, err = s.start(ctx, r.Order)
	case "ack":
		s.forget(r.Child)
	case "stop":
		err = s.stop(ctx, r.Grace.D())
	default:
		a, err = s.tell(ctx, r)
	}
	a.Error = asError(err)
	return a
}

// tell does something to one child.
func (s *server) tell(ctx context.Context, r request) (a reply, err error) {
	h := s.find(r.Child)
	if h == nil || h.child == nil {
		return a, engine.Errorf(engine.NotFound, "there is no child %q", r.Child)
	}
	switch r.Do {
	case "kill":
		ctx, cancel := context.WithTimeout(ctx, r.Grace.D()+killTimeout)
		defer cancel()
		err = h.child.Kill(ctx, r.Grace.D())
	case "signal":
		err = h.child.Signal(ctx, r.Signal)
	case "input":
		if h.child.in == nil {
			return a, engine.Errorf(engine.Conflict, "%s reads no input", r.Child)
		}
		a.files = []*os.File{h.child.in}
	case "close":
		if h.child.in != nil && !h.child.tty {
			err = ignoreClosed(h.child.in.Close())
		}
	default:
		err = engine.Errorf(engine.Invalid, "this shim doesn't know %q", r.Do)
	}
	return a, err
}

func (s *server) hello() *Hello {
	self, _ := StatOf(os.Getpid())
	return &Hello{
		Protocol: Protocol, Version: s.version, Boot: BootID(), PID: self.PID, Start: self.Start, CanShed: s.runner.CanShed(),
	}
}

func (s *server) list() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]State, 0, len(s.held))
	for _, h := range s.held {
		if h.state.Tree.Main != 0 {
			list = append(list, h.state)
		}
	}
	return list
}

func (s *server) find(id string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// start carries out an order. A child that has exited makes room: whoever
// orders it anew knows of its end.
func (s *server) start(ctx context.Context, o *Order) (a reply, err error) {
	if o == nil || o.Log == nil || len(o.Argv) == 0 {
		return a, engine.Errorf(engine.Invalid, "the order is not complete")
	}
	h := &held{order: *o, state: State{ID: o.ID, Box: o.Box, Stdin: o.Stdin, TTY: o.TTY != nil, Boot: BootID()}, ready: make(chan struct{})}
	if err := s.admit(h); err != nil {
		return a, err
	}
	defer close(h.ready)
	outs, err := s.openLogs(*o, false)
	if err == nil {
		h.state.LogStart = int64(outs[0].Position())
		err = s.run(ctx, h, outs)
	}
	if err != nil {
		for _, w := range outs {
			w.Close()
		}
		s.drop(h)
		return a, err
	}
	if in := h.child.in; in != nil {
		a.files = []*os.File{in}
	}
	state := s.stateOf(h)
	a.Child = &state
	return a, nil
}

func (s *server) run(ctx context.Context, h *held, outs []*logs.Writer) error {
	var errs io.WriteCloser
	if len(outs) > 1 {
		errs = outs[1]
	}
	child, err := s.runner.Start(ctx, h.order, outs[0], errs, Hooks{Exited: func() { s.exited(h) }})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.child, h.state.Tree, h.state.Started = child, child.tree, child.started
	return nil
}

// openLogs opens the streams that an order's output goes to; again, where they
// were when it is another program's turn to write them.
func (s *server) openLogs(o Order, again bool) (outs []*logs.Writer, err error) {
	open := s.logs.Writer
	if again {
		open = s.logs.Resume
	}
	streams := []engine.Stream{engine.Stdout, engine.Stderr}
	if !o.Split {
		streams = streams[:1]
	}
	for _, st := range streams {
		w, err := open(engine.ProcessID(o.ID), st, o.Log.Final)
		if err != nil {
			return outs, err
		}
		outs = append(outs, w)
	}
	return outs, nil
}

func (s *server) admit(h *held) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.held[h.state.ID]
	switch {
	case s.shut:
		return engine.Errorf(engine.Unavailable, "this shim is ending")
	case old != nil && old.state.Exit == nil:
		return engine.Errorf(engine.Conflict, "%s is running already", h.state.ID)
	}
	if old != nil {
		s.unwrite(h.state.ID)
	}
	s.held[h.state.ID] = h
	return nil
}

func (s *server) drop(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h.state.ID] == h {
		delete(s.held, h.state.ID)
	}
}

func (s *server) stateOf(h *held) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.state
}

// exited tells an exit, and writes it down until somebody has taken note.
func (s *server) exited(h *held) {
	<-h.ready
	if h.child == nil {
		return // its start failed after all
	}
	if h.order.Log.Final {
		h.child.drain()
	}
	s.mu.Lock()
	exit := h.child.exit
	h.state.Exit = &exit
	state := h.state
	current := s.held[state.ID] == h
	var listening []*wire
	for w := range s.wires {
		listening = append(listening, w)
	}
	s.mu.Unlock()
	if !current {
		return
	}
	for _, w := range listening {
		if err := w.send(reply{Exited: &state}); err != nil {
			w.c.Close()
		}
	}
	s.write(h)
}

// stop kills everything.
func (s *server) stop(ctx context.Context, grace time.Duration) error {
	s.mu.Lock()
	s.shut = true
	var live []*Child
	for _, h := range s.held {
		if h.child != nil {
			live = append(live, h.child)
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, grace+killTimeout)
	defer cancel()
	errs := make([]error, len(live))
	var killing sync.WaitGroup
	for i, c := range live {
		killing.Go(func() { errs[i] = c.Kill(ctx, grace) })
	}
	killing.Wait()
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func asError(err error) *engine.Error {
	if err == nil {
		return nil
	}
	var e *engine.Error
	if errors.As(err, &e) && e.Message != err.Error() {
		// The words of the whole chain, the code of its cause.
		return &engine.Error{Code: e.Code, Message: err.Error(), Hint: e.Hint, RetryAfter: e.RetryAfter}
	}
	return engine.AsError(err)
}
