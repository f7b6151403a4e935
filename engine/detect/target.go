package detect

import (
	"fmt"
	"time"

	"sbx/engine"
)

// watch is what there is to do about a sandbox's health.
type watch int

const (
	nothing  watch = iota // it is down, or somebody else is at work on it
	starting              // probe often until it is ready or its time is over
	settling              // nothing to probe: up for long enough is all there is
	steady                // probe now and then
	broken                // probe now and then: somebody may fix it by hand
)

// watchOf decides from the rows.
func watchOf(sb engine.Sandbox, app engine.Process) watch {
	if !sb.State.Live() || app.State != engine.ProcessRunning || app.Wanted != engine.WantRunning {
		return nothing
	}
	probed := sb.Spec.App.Health != "" && app.Port != 0
	switch {
	case sb.Health == engine.Starting && sb.Spec.App.Health == "":
		return settling
	case !probed:
		return nothing
	}
	switch sb.Health {
	case engine.Starting:
		return starting
	case engine.Ready, engine.Unknown:
		return steady
	case engine.Broken:
		return broken
	}
	return nothing
}

// era is what a probe's result counts for: this start of the app, under this
// health. A result of another era is forgotten.
type era struct {
	watch   watch
	app     engine.ProcessID
	starts  int
	port    int
	path    string
	health  engine.Health
	changed time.Time
}

func eraOf(sb engine.Sandbox, app engine.Process) era {
	return era{
		watch: watchOf(sb, app), app: app.ID, starts: app.Starts, port: app.Port, path: sb.Spec.App.Health,
		health: sb.Health, changed: sb.HealthChanged.UTC().Truncate(time.Millisecond),
	}
}

// target is one sandbox as the scheduler knows it.
type target struct {
	id      engine.SandboxID
	sandbox engine.Sandbox
	app     engine.Process

	era    era
	since  time.Time // when the era began, less gaps; on this process's clock
	due    time.Time
	busy   bool // a probe is under way
	tries  int
	failed []engine.Probe // in a row, at most the last few
	ailed  bool           // a probe of this era has failed
	raised time.Time
	nap    string // why the next probe counts as no failure; "" if it does
	shaken bool   // the last one failed and didn't count

	place int // in the heap; -1 if not in it
}

// update takes new rows. It says whether that is another era.
func (t *target) update(now time.Time, p HealthPolicy) bool {
	e := eraOf(t.sandbox, t.app)
	if e == t.era {
		return false
	}
	t.era, t.since, t.tries, t.failed, t.raised = e, now, 0, nil, time.Time{}
	t.nap, t.shaken, t.ailed = "", false, false
	t.due = now.Add(t.delay(p))
	return true
}

// delay is how long to wait for the next look.
func (t *target) delay(p HealthPolicy) time.Duration {
	switch t.era.watch {
	case starting:
		d := firstProbe
		for range min(t.tries, 16) {
			d = min(d*3/2, slowProbe)
		}
		return p.scaled(d)
	case settling:
		return or(t.sandbox.Spec.App.MinUptime.D(), engine.DefaultMinUptime)
	}
	if t.era.watch == steady && (t.shaken || len(t.failed) > 0 && len(t.failed) < failures) {
		return p.scaled(probeAgain)
	}
	if t.tries == 0 && t.era.health != engine.Ready {
		return p.scaled(firstProbe) // nobody has looked yet
	}
	return p.scaled(steadyProbe)
}

// aligned moves a steady look to the next beat.
func (t *target) aligned(p HealthPolicy, at, zero time.Time) time.Time {
	if t.era.watch == starting || t.era.watch == settling {
		return at
	}
	b := p.scaled(beat)
	return at.Add(b - 1 - (at.Sub(zero)+b-1)%b)
}

// woke forgets what was seen before a gap: nothing is raised for a time in
// which nobody could have answered.
func (t *target) woke(gap time.Duration) {
	t.failed = nil
	t.since = t.since.Add(gap)
}

// record takes a result of the running era.
func (t *target) record(now time.Time, r result) {
	t.tries++
	t.shaken = !r.skipped && !r.probe.OK && r.nap != ""
	if t.nap == r.nap && !r.skipped {
		t.nap = ""
	}
	t.ailed = t.ailed || !r.skipped && !r.probe.OK
	switch {
	case r.skipped:
	case r.probe.OK:
		t.failed, t.raised = nil, time.Time{}
	case t.shaken:
	default:
		t.failed = keep(t.failed, r.probe)
	}
	if r.raised {
		t.raised = now
	}
}

// keep appends to the last few, sharing nothing.
func keep(list []engine.Probe, p engine.Probe) []engine.Probe {
	const most = 4
	list = append(list[:len(list):len(list)], p)
	return list[max(0, len(list)-most):]
}

// news is what a look at a sandbox found that has to be written.
type news struct {
	fire   engine.HealthTrigger // "" if its health stays
	reason string
	// observed is the signal to raise, in words; "" for none.
	observed string
	kind     engine.SignalKind
	probes   []engine.Probe
}

// judge decides what a probe's result means for a target as it was when the
// probe began.
func (t target) judge(p HealthPolicy, now time.Time, probe engine.Probe) news {
	if probe.OK {
		switch {
		case t.era.watch == broken && !t.fixed():
			return news{}
		case t.era.watch == broken:
			return news{fire: engine.Recovered}
		case t.era.health != engine.Ready:
			return news{fire: engine.Passed}
		}
		return news{}
	}
	if t.nap != "" {
		if t.era.watch != steady {
			return news{}
		}
		return news{
			kind: engine.WakeSignal, observed: fmt.Sprintf("%s; the first probe after it: %s", t.nap, probe.Detail),
			probes: []engine.Probe{probe},
		}
	}
	if !t.raised.IsZero() && now.Sub(t.raised) < p.scaled(raiseAgain) {
		return news{}
	}
	failed := keep(t.failed, probe)
	switch t.era.watch {
	case starting:
		limit := or(t.sandbox.Spec.App.StartTimeout.D(), engine.DefaultStartTimeout)
		if now.Sub(t.since) >= limit {
			return news{kind: engine.HealthSignal, observed: fmt.Sprintf("not healthy within %s of its start: %s", limit, probe.Detail), probes: failed}
		}
	case steady:
		if len(failed) >= failures {
			return news{kind: engine.HealthSignal, observed: fmt.Sprintf("%d failed probes in a row: %s", len(failed), probe.Detail), probes: failed}
		}
	}
	return news{}
}

// fixed reports whether something changed since a sandbox was given up: it was
// started since, or didn't answer for a while. One that answered all along was
// given up for another reason, which an answer says nothing about.
func (t target) fixed() bool {
	return t.ailed || t.app.Started.After(t.era.changed)
}

func or(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}
