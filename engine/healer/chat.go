package healer

import (
	"context"
	"errors"
	"sync"
	"time"

	"sbx/engine"
	"sbx/store"
)

// chats knows which turns are being answered. Like the lanes it reads the rows
// and decides nothing: a turn is opened by an action and ended here.
type chats struct {
	wake chan struct{} // holds one

	mu     sync.Mutex
	active map[engine.MessageID]*talk
}

// talk is a turn that a goroutine answers.
type talk struct {
	changed chan struct{} // holds one: a message of it was changed by somebody else
	cut     context.CancelCauseFunc
}

func newChats() *chats {
	return &chats{wake: make(chan struct{}, 1), active: map[engine.MessageID]*talk{}}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // somebody did already
	}
}

// noteMessage looks at what a message of a chat means for its turn.
func (c *chats) noteMessage(m engine.Message) {
	c.mu.Lock()
	t := c.active[m.Turn]
	c.mu.Unlock()
	switch {
	case t == nil:
		poke(c.wake)
	case m.Kind == engine.MessageSaid && m.Why != "":
		t.cut(&cutError{why: m.Why})
	case m.Answer != "":
		poke(t.changed)
	}
}

// drop cuts a turn whose sandbox is gone or being taken down.
func (c *chats) drop(turn engine.MessageID, why string) {
	c.mu.Lock()
	t := c.active[turn]
	c.mu.Unlock()
	if t != nil {
		t.cut(&cutError{why: why, down: true})
	}
}

// chatRetry is how often a turn that waits for its sandbox looks again.
const chatRetry = 200 * time.Millisecond

// answerTurns answers turns as their sandboxes are free, until ctx ends.
func (l *loop) answerTurns(ctx context.Context, begin func(func() error)) error {
	if err := l.recoverTurns(ctx); err != nil {
		return err
	}
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.chats.wake:
		case <-again.C:
		}
		waiting, err := l.beginTurns(ctx, begin)
		if err != nil {
			return err
		}
		if waiting {
			again.Reset(chatRetry)
		}
	}
}

// beginTurns begins with those open turns whose sandboxes can be held, and says
// whether others wait.
func (l *loop) beginTurns(ctx context.Context, begin func(func() error)) (waiting bool, err error) {
	var open []engine.Message
	err = l.Store.View(ctx, func(tx *store.Tx) (err error) {
		open, err = tx.OpenTurns()
		return err
	})
	for _, said := range open {
		if l.chats.has(said.ID) {
			continue
		}
		if said.Why != "" { // stopped before it began
			if err := l.endTurn(ctx, said, engine.MessageStopped, said.Why); err != nil {
				return false, err
			}
			continue
		}
		if up, err := l.turnMay(ctx, said); err != nil || !up {
			waiting = waiting || err == nil
			if err != nil {
				return waiting, err
			}
			continue
		}
		release, ok := l.lanes.hold(said.Sandbox)
		if !ok {
			waiting = true
			continue
		}
		t := &talk{changed: make(chan struct{}, 1), cut: func(error) {}}
		running, cut := context.WithCancelCause(ctx)
		t.cut = cut
		l.chats.enter(said.ID, t)
		begin(func() error {
			defer release()
			defer l.chats.leave(said.ID)
			defer cut(nil)
			return l.answerTurn(ctx, running, said, t)
		})
	}
	return waiting, err
}

func (c *chats) has(id engine.MessageID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active[id] != nil
}

func (c *chats) enter(id engine.MessageID, t *talk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active[id] = t
}

func (c *chats) leave(id engine.MessageID) {
	c.mu.Lock()
	delete(c.active, id)
	c.mu.Unlock()
	poke(c.wake)
}

// comeUpWithin is how long a turn waits for its sandbox to come up, and for a
// heal that it takes over to be undone.
const comeUpWithin = 10 * time.Minute

// turnMay reports whether a turn's sandbox is up and not being healed. One that
// will not be ends the turn.
func (l *loop) turnMay(ctx context.Context, said engine.Message) (bool, error) {
	var sb engine.Sandbox
	var healing bool
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if sb, err = tx.Sandbox(said.Sandbox); err != nil {
			return err
		}
		_, healing, err = tx.OpenRun(sb.ID)
		return err
	})
	switch {
	case err != nil:
		return false, ignoreGone(err)
	case sb.Wanted != engine.Up:
		return false, l.endTurn(ctx, said, engine.MessageStopped, "the sandbox is "+downWords(sb))
	case time.Since(said.Started) > comeUpWithin:
		return false, l.endTurn(ctx, said, engine.MessageFailed, "the sandbox did not come up: "+orElse(sb.Reason, string(sb.State)))
	}
	return sb.State.Live() && sb.State != engine.Warming && !healing, nil
}

// recoverTurns ends the turns that a stopped engine left open.
func (l *loop) recoverTurns(ctx context.Context) error {
	var open []engine.Message
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		open, err = tx.OpenTurns()
		return err
	})
	for _, said := range open {
		if err != nil {
			return err
		}
		if said.State == engine.MessageWaiting && said.Why == "" {
			continue // nothing was done: it is answered now
		}
		state, why := engine.MessageInterrupted, "the engine stopped in it; what it had done stays"
		if said.Why != "" {
			state, why = engine.MessageStopped, said.Why
		}
		err = l.endTurn(ctx, said, state, why)
	}
	return err
}

// endTurn closes a turn and its messages, and gives the sandbox back to the
// healer's loop: what was ignored because of the chat is judged again.
func (l *loop) endTurn(ctx context.Context, said engine.Message, state engine.MessageState, why string) error {
	err := l.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By = actor
		list, err := tx.Messages(engine.MessageQuery{Sandbox: said.Sandbox, After: said.Number})
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Turn != said.ID || m.State.Over() {
				continue
			}
			m.State, m.Ended = state, tx.Now
			if err := tx.PutMessage(&m); err != nil {
				return err
			}
		}
		now, err := tx.Message(said.ID)
		if err != nil || now.State.Over() {
			return err
		}
		now.State, now.Why, now.Ended = state, line(l.redact(why), 2*maxReason), tx.Now
		if err := tx.PutMessage(&now); err != nil {
			return err
		}
		sb, err := tx.Sandbox(said.Sandbox)
		if err != nil {
			return err
		}
		if sb.Chat == said.ID {
			sb.Chat = ""
			if err := tx.PutSandbox(&sb); err != nil {
				return err
			}
		}
		return Resumed(tx, sb.ID)
	})
	return ignoreGone(err)
}

// answerTurn answers a turn to its end. When ctx ends, the engine is leaving:
// the row stays open, for recoverTurns.
func (l *loop) answerTurn(ctx, running context.Context, said engine.Message, at *talk) error {
	t := &chatTurn{heal: &heal{loop: l}, said: said, at: at, rows: map[int]engine.Message{}}
	state, why, err := t.work(running)
	if ctx.Err() != nil {
		return nil
	}
	var cut *cutError
	switch {
	case errors.As(context.Cause(running), &cut), errors.As(err, &cut):
		state, why = engine.MessageStopped, cut.why
	case errors.Is(err, errStore):
		return err
	case err != nil:
		l.Log.Warn("a chat could not go on", "sandbox", said.Sandbox, "message", said.ID, "err", err)
		state, why = engine.MessageFailed, err.Error()
	}
	return l.endTurn(ctx, said, state, why)
}
