package process_test

import (
	"context"
	"testing"
	"time"

	"sbx/engine"
)

// BenchmarkExitToEvent is the time from a process's exit to the event of its
// next start, with the store's full durability left out: the supervisor's part.
func BenchmarkExitToEvent(b *testing.B) {
	exit := make(chan struct{})
	sp := spec()
	sp.MaxRestarts, sp.RestartDelay = 1<<30, 0
	var exited time.Time
	w := begin(b, sp, func(ctx context.Context, _ *proc) int {
		select {
		case <-exit:
			exited = time.Now()
			return 1
		case <-ctx.Done():
			return 143
		}
	})
	pos, err := w.store.Position(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	next := make(chan time.Time)
	go func() {
		for ev, err := range w.store.Events(b.Context(), pos.Seq) {
			if err != nil {
				close(next)
				return
			}
			if p, ok := ev.Body.(engine.ProcessChanged); ok && p.Process.State == engine.ProcessRunning {
				next <- time.Now()
			}
		}
	}()
	<-next
	var total time.Duration
	for b.Loop() {
		exit <- struct{}{}
		total += (<-next).Sub(exited)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/restart")
}
