package tui

import (
	"slices"
	"time"

	"sbx/engine"
)

const (
	// traceStep is how long one column of a chart stands for; so a chart that
	// shows an idle sandbox is the same for that long.
	traceStep = 10 * time.Second
	traceLen  = 90 // fifteen minutes
	probeLen  = 16
)

// trace is what is remembered of one sandbox's samples, oldest first.
type trace struct {
	cpu, mem []uint8 // per cent of what it may use, of the busiest moment
	last     int64   // the step that the newest column stands for
	load     int     // per cent, as it shows
	memory   engine.Size
	probes   []bool
	probed   time.Time
}

func (t *trace) add(at time.Time, s engine.Sample, l engine.Limits) {
	step := at.UnixNano() / int64(traceStep)
	cpu, mem := percent(s.CPU, max(l.CPU, 0)), percent(float64(s.Memory), float64(l.Memory))
	if step > t.last {
		t.cpu, t.mem, t.last = slide(t.cpu, cpu, traceLen), slide(t.mem, mem, traceLen), step
	}
	if n := len(t.cpu); n > 0 {
		t.cpu[n-1], t.mem[n-1] = max(t.cpu[n-1], cpu), max(t.mem[n-1], mem)
	}
	t.steady(s)
	if s.Probe.At.After(t.probed) {
		t.probes, t.probed = slide(t.probes, s.Probe.OK, probeLen), s.Probe.At
	}
}

// steady moves the figures that show only when the sample has left them by more
// than idling does: a screen on which nothing happens must not change.
func (t *trace) steady(s engine.Sample) {
	load := int(100 * s.CPU)
	switch d := load - t.load; {
	case load < 3:
		t.load = 0
	case t.load == 0 && load < 8:
	case d > 4, d < -4:
		t.load = load
	}
	if d := max(s.Memory-t.memory, t.memory-s.Memory); s.Memory == 0 || d > t.memory/16 && d > engine.MiB {
		t.memory = s.Memory
	}
}

// failing reports whether any of the latest probes failed. Only then are they
// worth a row: good ones would change it every time.
func (t *trace) failing() bool { return slices.Contains(t.probes, false) }

// quiet is a column of a chart, or 0 if it is no higher than the axis.
func quiet(percent uint8) uint8 {
	if int(percent)*8/101 == 0 {
		return 0
	}
	return percent
}

// percent is v of what is allowed; without a limit, of one core or of 2 GiB.
func percent(v, most float64) uint8 {
	if most <= 0 {
		most = 1
		if v > 64 { // bytes
			most = float64(2 * engine.GiB)
		}
	}
	return uint8(min(100, max(0, 100*v/most)))
}

func slide[T any](list []T, v T, most int) []T {
	if len(list) < most {
		return append(list, v)
	}
	copy(list, list[1:])
	list[len(list)-1] = v
	return list
}

// tail is the last n of list.
func tail[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }
