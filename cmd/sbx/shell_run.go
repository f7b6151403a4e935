package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"sbx/engine"
	"sbx/engine/screen"
)

// shell is one sitting at a terminal of a sandbox.
//
//	keys ─► typed ─► pump ─► Terminal ─► log ─► Terminal ─► show ─► filter ─► screen
type shell struct {
	c     *cli
	e     engine.Engine
	con   *console
	p     engine.Process
	from  engine.LogPosition
	key   byte // detaches
	watch bool

	typed chan []byte // what was typed; closed at its end
	// queue is on its way to the program: one that reads nothing doesn't keep
	// the detaching key from being seen.
	queue chan []byte

	mu     sync.Mutex
	filter screen.Filter
	term   engine.Terminal // nil while the engine is away
	asked  bool            // a question passed, whose answer may be on its way
}

// Why a sitting ends, beside an error and the program's own end.
var (
	errDetached = errors.New("detached")
	errEnded    = errors.New("the program has ended")
)

const (
	// twiceWithin is how long the detaching key waits for itself.
	twiceWithin = 300 * time.Millisecond
	// lostWithin is how long an engine that went is waited for.
	lostWithin = 30 * time.Second
	lostRetry  = 500 * time.Millisecond
	// answerWithin is how long the last answer is waited for.
	answerWithin = 300 * time.Millisecond
)

// run sits at the terminal until its program ends, the operator detaches, or
// nothing is to be done any more. Whatever happens, the operator's own terminal
// is as it was.
func (s *shell) run(ctx context.Context) error {
	if s.p.Kind != engine.Interactive {
		return engine.Errorf(engine.Invalid, "%s has no terminal", s.p.ID).WithHint("attach to its output with: sbx attach %s", s.p.ID)
	}
	if err := s.con.raw(); err != nil {
		return fmt.Errorf("set the terminal: %w", err)
	}
	err := s.sit(ctx)
	s.leave()
	switch {
	case errors.Is(err, errEnded):
		return s.ended(ctx)
	case errors.Is(err, errDetached), ctx.Err() != nil:
		s.c.say("detached: it goes on; come back with sbx shell --attach %s, end it with sbx kill %s", s.p.ID, s.p.ID)
		if _, clips := s.filter.Dropped(); clips > 0 {
			s.c.say("it wanted to write to the clipboard: allow that with --clipboard")
		}
		if ctx.Err() != nil {
			return exit(exitInterrupted)
		}
		return nil
	}
	return err
}

// sit shows and types until something ends it. A panic in one of its
// goroutines is an error here, so that the terminal is restored.
func (s *shell) sit(ctx context.Context) (err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.typed, s.queue = make(chan []byte), make(chan []byte, 256)
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, syscall.SIGWINCH)
	defer signal.Stop(sizes)
	go s.keys() // a read of a terminal can't be ended: it is left behind
	var wg sync.WaitGroup
	for _, part := range []func(context.Context) error{
		s.show, s.pump, s.send,
		func(ctx context.Context) error { return s.follow(ctx, sizes) },
	} {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					end(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
				}
			}()
			end(part(ctx))
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (s *shell) keys() {
	defer close(s.typed)
	for {
		buf := make([]byte, 4<<10)
		n, err := s.con.in.Read(buf)
		if n > 0 {
			s.typed <- buf[:n]
		}
		if err != nil {
			return
		}
	}
}

// show shows what the terminal prints, over as many attachments as it takes.
func (s *shell) show(ctx context.Context) error {
	var lost time.Time // when the engine went
	for {
		t, err := s.e.AttachTerminal(ctx, s.p.ID, engine.Attachment{From: s.from, Live: true, Size: s.con.size(), Watch: s.watch})
		if err == nil {
			lost = time.Time{}
			s.attached(t)
			err = s.copy(ctx, t)
			s.attached(nil)
			_ = t.Close() // it has ended, or is lost
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == io.EOF:
			return errEnded
		case engine.AsCode(err) != engine.Unavailable:
			return err
		case lost.IsZero():
			lost = time.Now()
			s.notice("the engine is away; trying again. The detaching key leaves")
			s.from = engine.FromScreen // the notice is on the screen
		case time.Since(lost) > lostWithin:
			return err
		}
		if !sleepFor(ctx, lostRetry) {
			return context.Cause(ctx)
		}
	}
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *shell) attached(t engine.Terminal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = t
}

func (s *shell) attachment() engine.Terminal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term
}

// copy shows one attachment.
func (s *shell) copy(ctx context.Context, t engine.Terminal) error {
	defer context.AfterFunc(ctx, func() { _ = t.Close() })()
	buf := make([]byte, 32<<10)
	var out []byte
	for {
		n, err := t.Read(buf)
		if n > 0 {
			s.mu.Lock()
			out = s.filter.Append(out[:0], buf[:n])
			s.asked = s.asked || s.filter.Ask && bytes.IndexByte(out, 0x1b) >= 0
			s.mu.Unlock()
			if _, err := s.con.out.Write(out); err != nil {
				return err // the operator's terminal has gone
			}
		}
		if err != nil {
			return err
		}
	}
}

// notice writes a line of ours among what the program draws.
func (s *shell) notice(text string) {
	_, _ = fmt.Fprintf(s.con.out, "\r\n\x1b[m[sbx: %s]\r\n", text) // a terminal that has gone shows elsewhere
}

// follow tells of the window's size.
func (s *shell) follow(ctx context.Context, sizes <-chan os.Signal) error {
	for {
		select {
		case <-sizes:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if t := s.attachment(); t != nil {
			_ = t.Resize(s.con.size()) // one that is lost is told when it is attached again
		}
	}
}

// pump types what was typed, until the detaching key.
func (s *shell) pump(ctx context.Context) error {
	var rest []byte // of what was typed, to be looked at
	held := false   // the detaching key was pressed once
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case b, ok := <-s.typed:
			if !ok {
				return errDetached // there is nobody at this terminal any more
			}
			rest = append(rest, b...)
		case <-timer.C:
			if held {
				return errDetached
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for len(rest) > 0 {
			keys, pressed, after := s.split(rest)
			rest = after
			if held && (len(keys) > 0 || !pressed) {
				return errDetached // another key came behind it
			}
			if held { // twice: one is for the program
				keys, pressed, held = []byte{s.key}, false, false
			}
			if len(keys) > 0 {
				s.enqueue(keys)
			}
			if pressed {
				held = true
				timer.Reset(twiceWithin)
			}
		}
	}
}

// split is what was typed before the detaching key, and after it. Programs may
// have asked for keys to be spelled out.
func (s *shell) split(b []byte) (keys []byte, pressed bool, after []byte) {
	code := int(s.key) + 0x40
	if s.key < 0x1b {
		code += 0x20 // a letter
	}
	at, n := bytes.IndexByte(b, s.key), 1
	for _, spelled := range []string{fmt.Sprintf("\x1b[27;5;%d~", code), fmt.Sprintf("\x1b[%d;5u", code)} {
		if i := bytes.Index(b, []byte(spelled)); i >= 0 && (at < 0 || i < at) {
			at, n = i, len(spelled)
		}
	}
	if at < 0 {
		return b, false, nil
	}
	return b[:at], true, b[at+n:]
}

func (s *shell) enqueue(keys []byte) {
	select {
	case s.queue <- keys:
	default: // a megabyte waits: say that this goes nowhere
		_, _ = io.WriteString(s.con.out, "\a") // a terminal that has gone shows elsewhere
	}
}

// send types what is in the queue.
func (s *shell) send(ctx context.Context) error {
	told := false
	for {
		var keys []byte
		select {
		case keys = <-s.queue:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		t := s.attachment()
		if t == nil || s.watch {
			continue // there is nobody to type to
		}
		if _, err := t.Write(keys); engine.AsCode(err) == engine.Forbidden && ctx.Err() == nil && !told {
			told = true
			s.notice("this role may only watch")
		}
	}
}

// leave puts the operator's terminal back, on every way out. What was asked of
// it and not yet answered is answered first, to nobody.
func (s *shell) leave() {
	defer s.con.restore()
	s.mu.Lock()
	undo, asked := s.filter.Undo(), s.asked
	s.mu.Unlock()
	_, _ = s.con.out.Write(undo) // a terminal that has gone needs nothing
	if !asked {
		return
	}
	_, _ = io.WriteString(s.con.out, "\x1b[5n") // "are you all right?": answers come in order
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	var seen []byte
	for {
		select {
		case b, ok := <-s.typed:
			if seen = append(seen, b...); !ok || bytes.Contains(seen, []byte("\x1b[0n")) {
				return
			}
		case <-timer.C:
			return
		}
	}
}

// ended is the program's own end.
func (s *shell) ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	h, err := engine.FindHandle(ctx, s.e, string(s.p.ID), engine.SpawnOptions{Keep: -1})
	if err != nil {
		return err
	}
	res, err := h.Wait(ctx)
	switch {
	case err != nil:
		return err
	case res.Error != "":
		s.c.say("%s: %s", s.p.ID, res.Error)
	case res.Killed:
		s.c.say("%s was killed", s.p.ID)
	}
	if res.ExitCode != 0 {
		return exit(res.ExitCode)
	}
	return nil
}
