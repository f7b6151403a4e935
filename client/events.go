package client

import (
	"context"
	"iter"
	"net/url"
	"time"

	"sbx/engine"
)

// Events yields every event after pos. A cut isn't seen: it goes on from the
// last event that it yielded.
func (c *Client) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		ctx, cancel := c.bind(ctx)
		defer cancel()
		r := &reader{c: c, pos: after, yield: yield}
		if err := c.resume(ctx, 0, endsJournal, r.connection); err != errStopped {
			yield(engine.Event{}, err)
		}
	}
}

// reader is one way through the journal, over as many connections as it takes.
type reader struct {
	c     *Client
	pos   engine.Position // of the last event yielded
	yield func(engine.Event, error) bool
}

func (r *reader) connection(ctx context.Context) (progress bool, err error) {
	s, err := r.c.dial(ctx, "/v1/events", url.Values{"after": {r.pos.String()}}, r.c.silence)
	if err != nil {
		return false, err
	}
	defer s.close()
	for {
		var f struct {
			Events []engine.Event `json:"events"`
			Error  *engine.Error  `json:"error"`
		}
		switch more, err := s.next(&f); {
		case err != nil:
			return progress, err
		case f.Error != nil:
			return progress, s.told(f.Error)
		case !more:
			return progress, s.c.lost(nil) // a journal has no end
		}
		for _, ev := range f.Events {
			if ev.Seq <= r.pos.Seq {
				continue
			}
			if ev.Seq != r.pos.Seq+1 {
				return progress, engine.Errorf(engine.Unavailable, "event %d came after %d", ev.Seq, r.pos.Seq)
			}
			if ctx.Err() != nil {
				return progress, context.Cause(ctx)
			}
			r.pos.Seq, progress = ev.Seq, true
			if !r.yield(ev, nil) {
				return progress, errStopped
			}
		}
	}
}

// lateGauges is how many samples may be missing until the engine counts as
// lost; leastSilence is for rates so fast that a hiccup would look like it.
const (
	lateGauges   = 3
	leastSilence = time.Second
)

// Gauges yields the latest samples, and while the engine is out of reach an
// Unavailable error for each try, with the time of the next one.
func (c *Client) Gauges(ctx context.Context, every time.Duration) iter.Seq2[engine.Gauges, error] {
	return func(yield func(engine.Gauges, error) bool) {
		ctx, cancel := c.bind(ctx)
		defer cancel()
		if every <= 0 {
			every = time.Second
		}
		for n := 0; ; n++ {
			progress, err := c.sample(ctx, every, yield)
			if progress {
				n = 0
			}
			if err == errStopped {
				return
			}
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if ctx.Err() != nil || endsQuery(err) {
				yield(engine.Gauges{}, err)
				return
			}
			wait := c.delay(n)
			if !yield(engine.Gauges{}, engine.Errorf(engine.Unavailable, "%w", err).After(wait)) {
				return
			}
			if c.pause(ctx, wait) != nil {
				yield(engine.Gauges{}, context.Cause(ctx))
				return
			}
		}
	}
}

// sample is one connection of Gauges.
func (c *Client) sample(ctx context.Context, every time.Duration, yield func(engine.Gauges, error) bool) (progress bool, err error) {
	s, err := c.dial(ctx, "/v1/gauges", url.Values{"every": {every.String()}}, max(lateGauges*every, leastSilence))
	if err != nil {
		return false, err
	}
	defer s.close()
	s.ws.SetPingHandler(nil) // a ping is no sample: the silence counts on
	for {
		var f struct {
			Gauges *engine.Gauges `json:"gauges"`
			Error  *engine.Error  `json:"error"`
		}
		more, err := s.next(&f)
		if err == nil && !more {
			err = c.lost(nil)
		}
		if err == nil && f.Error != nil {
			if err = s.told(f.Error); f.Error.Code == engine.Unavailable && f.Error.RetryAfter > 0 {
				if !yield(engine.Gauges{}, err) { // the engine behind that one; it tries again itself
					return progress, errStopped
				}
				continue
			}
		}
		if err != nil {
			return progress, err
		}
		if f.Gauges == nil {
			continue
		}
		progress = true
		if !yield(*f.Gauges, nil) {
			return progress, errStopped
		}
	}
}
