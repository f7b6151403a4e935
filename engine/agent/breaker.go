package agent

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"sbx/engine"
)

// Bounds of a breaker's pauses.
const (
	breakerAfter = 5
	breakerFirst = time.Second
	breakerMost  = 30 * time.Second
)

// Breaker is a Model that all conversations of an engine share. Once its
// provider has failed often enough in a row, whoever asked, it answers by
// itself that the provider is away, and lets one request at a time find out
// whether it is back: a fleet doesn't beat on a provider that is down.
//
//	closed ──5 failures in a row──► open ──pause over──► one request tries
//	   ▲                             ▲                      │
//	   └────────── it answers ───────┼──────────────────────┤
//	                                 └──── it fails again ──┘
//
// A refusal is an answer: only engine.Unavailable counts as a failure.
type Breaker struct {
	Model
	// After is how many failures in a row, of whatever conversation, open it; 0: 5.
	After int

	mu       sync.Mutex
	failures int
	until    time.Time // when open
	trying   bool
}

// Reply asks the model, or says at once that it is away.
func (b *Breaker) Reply(ctx context.Context, t Transcript, tools []Tool, partial func(string)) (Turn, error) {
	if wait := b.enter(); wait > 0 {
		return Turn{}, engine.Errorf(engine.Unavailable, "the model has failed %d times in a row, whoever asked: it is tried again soon", b.after()).After(wait)
	}
	turn, err := b.Model.Reply(ctx, t, tools, partial)
	b.leave(ctx, err)
	return turn, err
}

// Close closes idle connections of a model that has any.
func (b *Breaker) Close() error {
	if c, ok := b.Model.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (b *Breaker) after() int {
	if b.After > 0 {
		return b.After
	}
	return breakerAfter
}

// enter is how long nobody may ask; 0 to go ahead.
func (b *Breaker) enter() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.after() {
		return 0
	}
	if wait := time.Until(b.until); wait > 0 {
		return wait
	}
	if b.trying {
		return breakerFirst
	}
	b.trying = true
	return 0
}

// leave takes note of an answer.
func (b *Breaker) leave(ctx context.Context, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	switch {
	case ctx.Err() != nil: // the caller left: that says nothing of the provider
		return
	case !errors.Is(err, engine.Unavailable):
		b.failures = 0
		return
	}
	b.failures++
	if b.failures < b.after() {
		return
	}
	pause := breakerMost
	if shift := b.failures - b.after(); shift < 5 {
		pause = min(pause, breakerFirst<<shift)
	}
	pause = pause/2 + rand.N(pause/2)
	if e := (*engine.Error)(nil); errors.As(err, &e) && e.RetryAfter > 0 {
		pause = max(pause, min(e.RetryAfter.D(), breakerMost))
	}
	b.until = time.Now().Add(pause)
}
