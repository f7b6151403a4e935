package local

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"sbx/engine"
)

// metrics are what only the journal tells: how long noticing and repairing take.
type metrics struct {
	mu             sync.Mutex
	detect, repair histogram
	signals        map[engine.SignalKind]int64
	outcomes       map[engine.Outcome]int64
}

// bounds of the histograms, in seconds.
var bounds = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800}

// A histogram counts durations by how long they are.
type histogram struct {
	counts [14]int64 // the last is of what is over all bounds
	sum    float64
	n      int64
}

func (h *histogram) add(d time.Duration) {
	s, i := max(0, d.Seconds()), 0
	for i < len(bounds) && s > bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += s
	h.n++
}

func (h *histogram) write(w io.Writer, name, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	var sum int64
	for i, le := range bounds {
		sum += h.counts[i]
		fmt.Fprintf(w, "%s_bucket{le=\"%g\"} %d\n", name, le, sum)
	}
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, h.n, name, h.sum, name, h.n)
}

// count follows the journal from now on.
func (e *Engine) count(ctx context.Context) error {
	pos, err := e.store.Position(ctx)
	if err != nil {
		return err
	}
	for ev, err := range e.store.Events(ctx, pos.Seq) {
		if err != nil {
			return err
		}
		e.metrics.take(ev)
	}
	return ctx.Err()
}

func (m *metrics) take(ev engine.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.signals == nil {
		m.signals, m.outcomes = map[engine.SignalKind]int64{}, map[engine.Outcome]int64{}
	}
	switch b := ev.Body.(type) {
	case engine.SignalRaised:
		m.signals[b.Signal.Kind]++
		since := b.Signal.At
		switch {
		case b.Signal.Exit != nil:
			since = b.Signal.Exit.At
		case len(b.Signal.Probes) > 0:
			since = b.Signal.Probes[0].At
		}
		m.detect.add(ev.Time.Sub(since))
	case engine.HealFinished:
		m.outcomes[b.Run.Outcome]++
		m.repair.add(b.Run.Ended.Sub(b.Run.Started))
	}
}

// WriteMetrics writes what the journal told since the engine started, in
// Prometheus's text format.
func (e *Engine) WriteMetrics(w io.Writer) error {
	m := &e.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	m.detect.write(w, "sbx_detect_seconds", "From what went wrong to its signal.")
	m.repair.write(w, "sbx_repair_seconds", "From the begin of a heal run to its end.")
	fmt.Fprint(w, "# HELP sbx_signals_total Signals raised.\n# TYPE sbx_signals_total counter\n")
	for _, k := range []engine.SignalKind{engine.ExitSignal, engine.HealthSignal, engine.StalledSignal, engine.PressureSignal, engine.WakeSignal, engine.HandSignal} {
		fmt.Fprintf(w, "sbx_signals_total{kind=%q} %d\n", k, m.signals[k])
	}
	fmt.Fprint(w, "# HELP sbx_heal_runs_total Heal runs that ended.\n# TYPE sbx_heal_runs_total counter\n")
	for _, o := range []engine.Outcome{engine.Healed, engine.NotHealed, engine.Cancelled, engine.Interrupted, engine.OverBudget} {
		fmt.Fprintf(w, "sbx_heal_runs_total{outcome=%q} %d\n", o, m.outcomes[o])
	}
	return nil
}
