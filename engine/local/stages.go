package local

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stage is one thing that arrives in order and leaves in the reverse order.
type stage struct {
	name string
	// within is how long leaving may take.
	within time.Duration
	leave  func(ctx context.Context) error
}

// stages is the engine's order of arriving. It is the only place that knows
// the order of leaving: the reverse.
//
//	store ─ logs ─ driver ─ processes ─ pool ─ healer ─ detectors
//	◄──────────────────── leaving ───────────────────────────────
type stages []stage

func (s *stages) push(name string, within time.Duration, leave func(context.Context) error) {
	*s = append(*s, stage{name, within, leave})
}

// leaveAll leaves in reverse order, each stage within its time, and goes on
// after one that failed. Leaving twice does nothing more.
func (s *stages) leaveAll(ctx context.Context) error {
	var errs []error
	for i := len(*s) - 1; i >= 0; i-- {
		st := (*s)[i]
		stageCtx, cancel := context.WithTimeout(ctx, st.within)
		if err := st.leave(stageCtx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", st.name, err))
		}
		cancel()
	}
	*s = nil
	return errors.Join(errs...)
}
