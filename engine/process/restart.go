package process

import (
	"fmt"
	"strconv"
	"time"

	"sbx/engine"
)

// Past is what a decision is made from, beside the policy and the clock.
type Past struct {
	// Exits are those that nobody asked for since the process was started on
	// request, oldest first. The last is the one to decide about.
	Exits []engine.Exit
	// Raised is the last exit signal of the process in that time; nil if there
	// is none.
	Raised *engine.Signal
	// Healing: a heal run is open, so the healer decides about starts.
	Healing bool
}

// Decision is what to do about an exit, and why.
type Decision struct {
	Restart bool
	After   time.Duration // with Restart
	Held    bool          // it would have been started, but for the healer
	Raise   bool
	// Reason stands in the process's row, Observed in the signal.
	Reason   string
	Observed string
}

// Decide answers an exit that nobody asked for. Exits in a row count against
// MaxRestarts; a process that lived for MinUptime begins a new row. Giving up
// raises a signal, and so do exits at a rate that no restart policy should
// hide, even while the process is started again:
//
//	exits in a row  > max_restarts              give up, raise
//	3 exits         within 5 min                raise
//	2 quick exits   in a row, within 15 s       raise
//
// One crash episode raises one signal: see mayRaise.
func Decide(now time.Time, p Policy, spec engine.ProcessSpec, past Past) Decision {
	p = p.filled()
	last := past.Exits[len(past.Exits)-1]
	n := inARow(spec, past.Exits)
	gaveUp := n > spec.MaxRestarts
	trouble := rate(now, p, spec, past.Exits)

	d := Decision{Restart: !gaveUp, After: delay(p, spec, last)}
	d.Raise = (gaveUp || trouble != "") && mayRaise(now, p, past.Raised, gaveUp)
	d.Reason = told(last) + ": " + course(spec, n, d, last)
	d.Observed = told(last) + observed(spec, past.Exits, n, trouble)
	if past.Healing {
		d.Held, d.Restart = d.Restart, false
		d.Reason = told(last) + ": the healer decides"
	}
	return d
}

// failedStart reports whether an exit came too soon to call it a run.
func failedStart(spec engine.ProcessSpec, e engine.Exit) bool {
	return e.Error != "" || e.Uptime < spec.MinUptime
}

// inARow counts the last exit and those before it that no run of MinUptime
// lies between.
func inARow(spec engine.ProcessSpec, exits []engine.Exit) int {
	n := 1
	for i := len(exits) - 1; i > 0 && failedStart(spec, exits[i]); i-- {
		n++
	}
	return n
}

// quick reports whether an exit came sooner than any server is of use: a
// min_uptime of zero doesn't hide it.
func quick(p Policy, spec engine.ProcessSpec, e engine.Exit) bool {
	return e.Error != "" || e.Uptime.D() < max(spec.MinUptime.D(), p.QuickUptime)
}

// rate says which rate of exits is too high, or "".
func rate(now time.Time, p Policy, spec engine.ProcessSpec, exits []engine.Exit) string {
	if n := len(exits); n >= 2 {
		a, b := exits[n-2], exits[n-1]
		if quick(p, spec, a) && quick(p, spec, b) && b.At.Sub(a.At) <= p.QuickWindow {
			return fmt.Sprintf("2 quick exits within %s", span(p.QuickWindow))
		}
	}
	n := 0
	for _, e := range exits {
		if now.Sub(e.At) < p.LoopWindow {
			n++
		}
	}
	if n >= p.LoopExits {
		return fmt.Sprintf("%d exits within %s", n, span(p.LoopWindow))
	}
	return ""
}

// delay is how long to wait before the next start. After a quick exit it is
// capped: the second of two one-second lives must end within QuickWindow of
// the first, however long a delay the spec asks for.
func delay(p Policy, spec engine.ProcessSpec, last engine.Exit) time.Duration {
	if quick(p, spec, last) {
		return min(spec.RestartDelay.D(), p.MaxQuickDelay)
	}
	return spec.RestartDelay.D()
}

// mayRaise keeps one crash episode to one signal. While a signal waits for its
// verdict, another would say the same. Once it was judged, giving up is news;
// going on at the same rate is news only after a while, and sooner if the
// verdict was to wait and see.
func mayRaise(now time.Time, p Policy, raised *engine.Signal, gaveUp bool) bool {
	switch {
	case raised == nil:
		return true
	case raised.Verdict == nil:
		return false
	case gaveUp:
		return true
	case raised.Verdict.Action == engine.Wait:
		return now.Sub(raised.At) >= p.QuickWindow
	}
	return now.Sub(raised.At) >= p.LoopWindow
}

// told is an exit in words: "exit 1 after 0.4s".
func told(e engine.Exit) string {
	if e.Error != "" {
		return e.String()
	}
	return fmt.Sprintf("%s after %s", e, span(e.Uptime.D()))
}

// course is what is done about the n-th exit in a row.
func course(spec engine.ProcessSpec, n int, d Decision, last engine.Exit) string {
	switch {
	case d.Restart && d.After > 0:
		return fmt.Sprintf("again in %s (restart %d of %d)", span(d.After), n, spec.MaxRestarts)
	case d.Restart:
		return fmt.Sprintf("started again (restart %d of %d)", n, spec.MaxRestarts)
	case !failedStart(spec, last):
		return "max_restarts is 0"
	}
	return fmt.Sprintf("start %d of %d failed", n, max(n, spec.MaxRestarts+1))
}

// observed is what the exit was the last of.
func observed(spec engine.ProcessSpec, exits []engine.Exit, n int, trouble string) string {
	if n == 1 || n <= spec.MaxRestarts {
		if trouble == "" {
			return ""
		}
		return ", " + trouble
	}
	for _, e := range exits[len(exits)-n:] {
		if !failedStart(spec, e) {
			return fmt.Sprintf(", %d exits in a row", n)
		}
	}
	return fmt.Sprintf(", %d failed starts in a row", n)
}

// span is a duration as a person says it: 0.4s, 12s, 5m.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', decimals(d), 64) + "s"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d < time.Hour && d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return d.Round(time.Second).String()
}

func decimals(d time.Duration) int {
	if d%time.Second == 0 {
		return 0
	}
	return 1
}
