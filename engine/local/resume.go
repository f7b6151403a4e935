package local

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

const (
	// aliveWithin is how long a sandbox has to answer echo ok (SPEC §5).
	aliveWithin = 5 * time.Second
	// provenFor is how long a sandbox that was used counts as alive unless a
	// client that remembers it asks.
	provenFor = 30 * time.Second
	// downWithin is how long a sandbox that is going down is waited for. One
	// that takes longer is left behind, and the session gets another.
	downWithin = 30 * time.Second
)

// comeTo makes sure that a session's sandbox is one of two things: alive and
// proven so, or down. What is between is waited for, within bounds.
//
//	up ─► echo ok ─┬─ answers ─► as it is
//	               └─ doesn't ─► taken down ─┐
//	going down ──────────────────────────────┴─► wait ─► cold or gone
func (e *Engine) comeTo(ctx context.Context, id engine.SessionID, remembered engine.SandboxID) error {
	ctx, cancel := context.WithTimeout(ctx, downWithin+2*aliveWithin)
	defer cancel()
	for {
		var (
			s     engine.Session
			sb    engine.Sandbox
			there bool
			pos   engine.Position
		)
		pos, err := e.store.Position(ctx)
		if err != nil {
			return err
		}
		err = e.store.View(ctx, func(tx *store.Tx) (err error) {
			s, sb, there, err = openSession(tx, id)
			return err
		})
		if err != nil {
			return err
		}
		switch {
		case !there || !sb.State.Live() || sb.Wanted == engine.Up && sb.State == engine.Warming:
			return nil
		case sb.Wanted == engine.Up:
			if remembered == "" && s.Live && time.Since(sb.Active) < provenFor || e.answers(ctx, sb) {
				return nil
			}
			if err := e.pronounceDead(ctx, sb.ID); err != nil {
				return err
			}
			continue
		}
		if !e.untilDown(ctx, sb.ID, pos.Seq) {
			return nil // attach leaves it behind
		}
	}
}

// answers runs echo ok in a sandbox.
func (e *Engine) answers(ctx context.Context, sb engine.Sandbox) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveWithin)
	defer cancel()
	box, err := e.cfg.Driver.Attach(ctx, sb.ID)
	if err != nil {
		return false
	}
	out := &said{}
	cmd := driver.Command{Command: engine.Command{Shell: "echo ok"}, Profile: driver.ProfileApp}
	p, err := box.Start(ctx, engine.ProcessID(engine.NewID(engine.ProcessPrefix)), cmd, out, nil)
	if err != nil {
		return engine.AsCode(err) == engine.Exhausted // its host is short of something, it isn't dead
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		killing, cancel := context.WithTimeout(context.WithoutCancel(ctx), aliveWithin)
		defer cancel()
		_ = p.Kill(killing, 0) // it doesn't answer: it is taken down whole
		return false
	}
	return exit.Code == 0 && out.within(ctx, "ok")
}

// said is the little that a proof of life prints.
type said struct {
	mu     sync.Mutex
	text   bytes.Buffer
	closed bool
}

// Write keeps the beginning.
func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text.Len() < 64 {
		s.text.Write(b[:min(len(b), 64)])
	}
	return len(b), nil
}

// Close says that no more comes.
func (s *said) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// within waits for the word: what a process printed may arrive after its exit.
func (s *said) within(ctx context.Context, word string) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		got, closed := strings.TrimSpace(s.text.String()) == word, s.closed
		s.mu.Unlock()
		if got || closed {
			return got
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// pronounceDead takes down what doesn't answer, unless somebody moved it.
func (e *Engine) pronounceDead(ctx context.Context, id engine.SandboxID) error {
	e.cfg.Log.Warn("a sandbox does not answer and is taken down", "sandbox", id)
	return e.store.Update(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(id)
		if engine.AsCode(err) == engine.NotFound {
			return nil
		}
		if err != nil || !sb.State.Live() || sb.Wanted != engine.Up {
			return err
		}
		return takeDown(tx, sb, engine.Down, engine.EndedByCrash, engine.System)
	})
}

// untilDown waits until a sandbox that goes down is down, and reports whether
// it was in time.
func (e *Engine) untilDown(ctx context.Context, id engine.SandboxID, after engine.Seq) bool {
	ctx, cancel := context.WithTimeout(ctx, downWithin)
	defer cancel()
	for ev, err := range e.store.Events(ctx, after) {
		if err != nil {
			return engine.AsCode(err) == engine.Compacted // look again
		}
		switch b := ev.Body.(type) {
		case engine.SandboxChanged:
			if b.Sandbox.ID == id && !b.Sandbox.State.Live() && (!b.Sandbox.Leaving || b.Sandbox.Wanted == engine.Removed) {
				return true
			}
		case engine.SandboxRemoved:
			if b.ID == id {
				return true
			}
		}
	}
	return false
}

// attach gives a session its sandbox by the resume walk: the one that is alive,
// else the one whose workspace is still on disk, else a new one, whose boot
// goes on with the archives. asked counts it as a resume, and names the sandbox
// to a client that remembers another.
func (e *Engine) attach(tx *store.Tx, id engine.SessionID, remembered engine.SandboxID, asked bool, r *engine.Receipt) (engine.SandboxID, error) {
	s, sb, there, err := openSession(tx, id)
	if err != nil {
		return "", err
	}
	r.Session = s.ID
	switch {
	case there && sb.State.Live() && sb.Wanted == engine.Up:
		err = e.stay(tx, s, sb, remembered, asked, r)
	case there && sb.State == engine.Cold && sb.Wanted != engine.Removed && !sb.Leaving:
		s.State, s.Live, s.Reason, s.Told = engine.SessionActive, false, "", ""
		if err = tx.PutSession(s); err == nil {
			err = wantUp(tx, sb)
		}
		r.Note = "its sandbox is being brought back"
	default:
		was := s.Sandbox
		if err = e.bootFor(tx, &s, was); err == nil {
			err = tx.PutSession(s)
		}
		r.Note = "it gets a new sandbox"
	}
	if err != nil {
		return "", err
	}
	if s, err = tx.Session(s.ID); err != nil {
		return "", err
	}
	r.Sandbox = s.Sandbox
	return s.Sandbox, nil
}

// stay is attach to a sandbox that is up or on its way.
func (e *Engine) stay(tx *store.Tx, s engine.Session, sb engine.Sandbox, remembered engine.SandboxID, asked bool, r *engine.Receipt) error {
	if err := tx.Touch(sb.ID); err != nil {
		return err
	}
	up := sb.State != engine.Warming
	if asked && up {
		r.Note = "its sandbox is alive"
		if err := tx.Count(store.CountWarm); err != nil {
			return err
		}
	}
	if s.Live == up && s.State == engine.SessionActive && (remembered == "" || remembered == sb.ID || !up) {
		return nil
	}
	s.State, s.Live, s.Reason, s.Told = engine.SessionActive, up, "", ""
	if up {
		s.Path, s.Told = engine.PathAlive, engine.SandboxActive
	}
	return tx.PutSession(s)
}
