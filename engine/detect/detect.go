// Package detect notices trouble and raises signals. What a signal calls for
// is not decided here: the healer judges it.
//
// The one rule: a detector looks, and writes only what changed. A thousand
// healthy sandboxes write nothing.
package detect

import "time"

// HealthPolicy says how often sandboxes are probed. The zero value is what
// each field names.
type HealthPolicy struct {
	// Scale multiplies the intervals (1): tests and impatient people set it
	// below 1. What a spec says is not scaled.
	Scale float64
	// Timeout is how long a probe may take (5s). It is not scaled.
	Timeout time.Duration
	// Probes is how many may run at one time (64).
	Probes int
}

// The intervals before Scale. Two failures ten seconds apart are what tells a
// sick app from one that is busy.
const (
	firstProbe  = 250 * time.Millisecond // while starting, growing to
	slowProbe   = 2 * time.Second
	steadyProbe = 20 * time.Second
	probeAgain  = 10 * time.Second // after a failure
	raiseAgain  = 5 * time.Minute  // while it goes on
	// beat is what steady probes are aligned to: those of many sandboxes at
	// once cost a third of the same spread evenly.
	beat = 250 * time.Millisecond
	// late is how much later than planned the scheduler may run before that
	// counts as a gap: the host slept, or this process was stopped.
	late = 5 * time.Second
)

// failures is how many in a row are trouble.
const failures = 2

func (p HealthPolicy) scaled(d time.Duration) time.Duration { return scaled(p.Scale, d) }

func scaled(scale float64, d time.Duration) time.Duration {
	if scale <= 0 {
		return d
	}
	return max(time.Duration(float64(d)*scale), time.Millisecond)
}

func (p HealthPolicy) timeout() time.Duration {
	if p.Timeout <= 0 {
		return 5 * time.Second
	}
	return p.Timeout
}

func (p HealthPolicy) probes() int {
	if p.Probes <= 0 {
		return 64
	}
	return p.Probes
}
