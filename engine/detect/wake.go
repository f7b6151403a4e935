package detect

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// WakePolicy says what counts as a jump of the engine's clock. The zero value
// of a field is its default.
type WakePolicy struct {
	Every time.Duration // 5 s; between ticks
	Jump  time.Duration // 15 s; a tick that is later than this is a wake
	Scale float64       // 1; multiplies both
}

// leastJump is below what any Scale makes of a jump: so late a tick may also
// be on a host that is merely busy.
const leastJump = 2 * time.Second

func (p WakePolicy) every() time.Duration { return scaled(p.Scale, or(p.Every, 5*time.Second)) }

func (p WakePolicy) jump() time.Duration {
	return max(leastJump, scaled(p.Scale, or(p.Jump, 15*time.Second)))
}

// Wake notices that the host slept, that its virtual machine was paused, or
// that this process was stopped: the clock jumps against its own ticks. It
// then drops idle connections, which lead nowhere any more, and has every
// sandbox probed.
//
// It raises no signal itself. A host that slept is no trouble of a sandbox, and
// a thousand signals that say the same would hide the one that matters: the
// probes raise one for each sandbox that doesn't answer (see [Health.Woke]).
type Wake struct {
	Policy WakePolicy
	// Drop closes idle connections; nil: there are none.
	Drop func()
	// Probe has every sandbox probed at once; why says what happened.
	Probe func(why string)
	// Suspended is [Suspended], unless a test says otherwise.
	Suspended func() time.Duration
	Log       *slog.Logger
}

// Run watches until ctx ends.
func (w *Wake) Run(ctx context.Context) error {
	b := newBeat(w.Policy.every(), w.Suspended)
	defer b.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.timer.C:
		}
		late, slept := b.late()
		if late+slept >= w.Policy.jump() {
			w.woke(ctx, late, slept)
		}
		b.next()
	}
}

func (w *Wake) woke(ctx context.Context, late, slept time.Duration) {
	why := fmt.Sprintf("the host slept for %s", (late + slept).Round(time.Second))
	if late > slept {
		why = fmt.Sprintf("the engine stood still for %s", (late + slept).Round(time.Second))
	}
	logOf(w.Log).InfoContext(ctx, "the clock jumped", "why", why)
	if w.Drop != nil {
		w.Drop()
	}
	if w.Probe != nil {
		w.Probe(why)
	}
}

func logOf(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
