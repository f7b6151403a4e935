package tui

import (
	"fmt"
	"time"

	"sbx/engine"
)

// silence is how long without a sample before the engine counts as lost.
const silence = 3 * time.Second

// link is how the connection to the engine is: what is on the screen is live,
// or it says since when it isn't.
type link struct {
	state linkState
	since time.Time // in this state
	news  time.Time // last heard
	cause string
	retry time.Time // next try
	tries int
}

type linkState int

const (
	connecting linkState = iota
	live
	lost
)

// heard notes a sign of life and says for how long the engine was away.
func (l *link) heard(now time.Time) (back time.Duration) {
	if l.state == lost {
		back = now.Sub(l.news)
	}
	if l.state != live {
		*l = link{state: live, since: now}
	}
	l.news = now
	return back
}

// failed notes that the engine could not be reached.
func (l *link) failed(now time.Time, err error) {
	if l.state == live {
		l.state, l.since, l.tries = lost, now, 0
	}
	l.tries++
	l.cause = "no answer for " + span(silence)
	l.retry = time.Time{}
	if err == nil {
		return
	}
	l.cause = err.Error()
	if e := engine.AsError(err); e.RetryAfter > 0 {
		l.retry = now.Add(e.RetryAfter.D())
	}
}

// countdown says when the next try is.
func (l *link) countdown(now time.Time) string {
	if l.retry.IsZero() || !l.retry.After(now) {
		return "trying now"
	}
	return fmt.Sprintf("retry %d in %d s", l.tries, int(l.retry.Sub(now).Round(time.Second)/time.Second))
}
