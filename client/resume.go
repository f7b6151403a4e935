package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"sbx/engine"
)

// errStopped ends a stream whose reader has had enough.
var errStopped = errors.New("the reader stopped")

// delay is how long to wait after the n-th try in a row that failed, from 0.
func (c *Client) delay(n int) time.Duration {
	if len(c.backoff) == 0 {
		return 0
	}
	d := c.backoff[min(n, len(c.backoff)-1)]
	// A fifth more or less, so that a fleet of clients doesn't return at once.
	return d + time.Duration((rand.Float64()-0.5)*0.4*float64(d))
}

func (c *Client) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resume runs one connection of a stream after another. once returns whether
// it got on, and nil at the stream's own end. What resume returns ended the
// stream: nil, errStopped, ctx's error, or one that again wouldn't help.
//
// tries bounds how many may fail in a row; 0 is no bound.
func (c *Client) resume(ctx context.Context, tries int, final func(error) bool, once func(ctx context.Context) (progress bool, err error)) error {
	for n := 0; ; n++ {
		progress, err := once(ctx)
		switch {
		case err == nil || errors.Is(err, errStopped):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err) || tries > 0 && n >= tries && !progress:
			return err
		}
		wait := time.Duration(0) // a cut after it worked: once more at once
		if progress {
			n = -1
		} else if wait = c.delay(n); engine.AsError(err).RetryAfter > 0 {
			// The engine knows better, up to our longest.
			wait = min(engine.AsError(err).RetryAfter.D(), c.delay(len(c.backoff)))
		}
		c.log.Debug("stream lost; connecting again", "in", wait, "error", err)
		if c.pause(ctx, wait) != nil {
			return context.Cause(ctx)
		}
	}
}

// endsJournal are the errors that end Events: again wouldn't help.
func endsJournal(err error) bool {
	switch engine.AsCode(err) {
	case engine.Compacted, engine.Unauthorized, engine.Forbidden:
		return true
	}
	return false
}

// endsQuery are those that end a stream with a question in it: all but what
// time may heal.
func endsQuery(err error) bool {
	switch engine.AsCode(err) {
	case engine.Unavailable, engine.Exhausted:
		return false
	}
	return true
}
