//go:build linux

package shim

import "time"

// A stream may have floodBurst bytes at any speed, as a build or a test run has;
// what goes on after that is slowed to floodRate. Of a log the last 64 MiB are
// kept, so that more than that a second helps nobody, and costs all others.
const (
	floodBurst = 256 << 20
	floodRate  = 16 << 20 // bytes a second
)

// A flood is how much one stream has written lately. The zero value is a stream
// that has written nothing.
type flood struct {
	level int64 // bytes above what floodRate would have let through
	at    time.Time
}

// took counts n bytes and says how long to wait before the next are read.
func (f *flood) took(now time.Time, n int) time.Duration {
	if past := now.Sub(f.at); past > 0 {
		f.level -= int64(min(past.Seconds(), 3600) * floodRate)
	}
	f.level, f.at = max(f.level, 0)+int64(n), now
	if f.level <= floodBurst {
		return 0
	}
	return time.Duration(float64(f.level-floodBurst) / floodRate * float64(time.Second))
}
