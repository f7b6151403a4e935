package healer

import (
	"fmt"
	"time"

	"sbx/engine"
)

// The life of an incident. Rows decide, not events: it goes on in the next
// engine as it would have in this one.
//
//	3 runs of one fingerprint in 5 min ─► canary ─┬─ its run healed ──► follow ─┐
//	                                        ▲     └─ it did not ──────► failed ─┤
//	                                        └─ cut: another run is the canary   │
//	                              ended ◄── all are ready or told broken ◄──────┘

// member is a sandbox of an incident as its rows are now.
type member struct {
	sb   engine.Sandbox
	gone bool           // the sandbox was removed
	run  engine.HealRun // its latest in the incident
}

// settled reports whether nothing more is to come of it in the incident: it is
// ready, told broken, or somebody else's by now.
func (m member) settled(now time.Time) bool {
	switch {
	case m.gone, m.sb.Wanted != engine.Up, !m.sb.State.Live(), m.sb.Maintenance.Active(now):
		return true
	case m.run.Open(), m.sb.State == engine.Warming:
		return false
	}
	return m.sb.Health == engine.Broken || settled(m.sb)
}

// gather makes an incident of a run that has just got its fingerprint, and of
// those before it with the same one; like are the loop's own runs that are
// alike, the newest of each sandbox. ok is false where they are too few. It is
// pure.
func gather(now time.Time, p Policy, run engine.HealRun, title string, like []engine.HealRun, names map[engine.SandboxID]string) (engine.Incident, bool) {
	p = p.filled()
	if run.Fingerprint == noFingerprint || !byLoop(run) {
		return engine.Incident{}, false
	}
	i := engine.Incident{
		ID: engine.IncidentID(engine.NewID(engine.IncidentPrefix)), Fingerprint: run.Fingerprint, Title: title,
		State: engine.IncidentCanary, Opened: now,
	}
	for _, r := range append(like, run) {
		if r.ID == run.ID || byLoop(r) && r.Incident == "" && r.Sandbox != run.Sandbox && now.Sub(r.Started) < p.IncidentWindow {
			i = joined(i, r, names[r.Sandbox])
		}
	}
	if len(i.Members) < p.IncidentSize {
		return engine.Incident{}, false
	}
	return i, true
}

// byLoop reports whether a run is the loop's own: what somebody asked for is
// never held.
func byLoop(r engine.HealRun) bool {
	return r.By.Kind == engine.ActorHealer && !r.Plan && r.Applies == ""
}

// joined is the incident with a run as its sandbox's latest.
func joined(i engine.Incident, r engine.HealRun, name string) engine.Incident {
	m := engine.IncidentMember{Sandbox: r.Sandbox, Name: name, Run: r.ID, Outcome: r.Outcome}
	list := append([]engine.IncidentMember(nil), i.Members...)
	for n := range list {
		if list[n].Sandbox == r.Sandbox {
			list[n] = m
			i.Members = list
			return i
		}
	}
	i.Members = append(list, m)
	return i
}

// advance is an incident after what its rows say now. It is pure; members are
// in the order of i.Members.
func advance(now time.Time, i engine.Incident, members []member) engine.Incident {
	done := true
	for _, m := range members {
		if !m.gone {
			i = joined(i, m.run, m.sb.Name)
		}
		done = done && m.settled(now)
	}
	if i.State == engine.IncidentCanary {
		i = lead(i, members)
	}
	if done {
		i.State, i.Ended, i.Reason = engine.IncidentEnded, now, tally(i, members)
	}
	return i
}

// lead looks at the canary: at how it ended, or for another one where it was
// cut. A run that has ended is never chosen.
func lead(i engine.Incident, members []member) engine.Incident {
	var canary *member
	for n, m := range members {
		switch {
		case m.gone:
		case m.run.ID == i.CanaryRun:
			canary = &members[n]
		}
	}
	if canary != nil && !canary.run.Open() {
		switch canary.run.Outcome {
		case engine.Healed:
			i.State = engine.IncidentFollow
			i.Reason = fmt.Sprintf("%s was healed by %s: the rest follow", canary.sb.Name, canary.run.FixedBy)
			return i
		case engine.NotHealed, engine.OverBudget:
			i.State = engine.IncidentFailed
			i.Reason = fmt.Sprintf("%s was healed first, and that did not work: %s", canary.sb.Name, line(canary.run.Summary, maxCause))
			return i
		}
		canary = nil // cut: by an operator, a stop, or the engine's end
	}
	if canary == nil {
		canary = next(members)
	}
	if canary == nil {
		i.Canary, i.CanaryRun, i.Reason = "", "", "waits for one of them that can be healed first"
		return i
	}
	i.Canary, i.CanaryRun = canary.sb.ID, canary.run.ID
	i.Reason = canary.sb.Name + " is healed first, the rest are held"
	return i
}

// next is the member to heal first: one that is at work already, else the one
// that waits longest. nil: there is none with an open run.
func next(members []member) *member {
	var best *member
	for n, m := range members {
		if m.gone || !m.run.Open() || m.run.Outcome != "" || !byLoop(m.run) {
			continue
		}
		began := m.run.State != engine.RunQueued
		if best == nil || began && best.run.State == engine.RunQueued {
			best = &members[n]
		}
	}
	return best
}

// tally says how an incident ended.
func tally(i engine.Incident, members []member) string {
	ready, broken, other := 0, 0, 0
	for _, m := range members {
		switch {
		case m.gone || m.sb.Wanted != engine.Up:
			other++
		case m.sb.Health == engine.Broken:
			broken++
		default:
			ready++
		}
	}
	words := fmt.Sprintf("%d ready, %d broken", ready, broken)
	if other > 0 {
		words += fmt.Sprintf(", %d stopped or removed", other)
	}
	if i.State == engine.IncidentFailed {
		words += "; " + i.Reason
	}
	return words
}

// heldBy says by what an incident holds a run; "" if it doesn't.
func heldBy(i engine.Incident, r engine.HealRun) string {
	if i.State != engine.IncidentCanary || r.ID == i.CanaryRun || !byLoop(r) {
		return ""
	}
	words := "held by incident " + engine.Short(i.ID)
	for _, m := range i.Members {
		if m.Sandbox == i.Canary {
			words += ": " + m.Name + " is healed first"
		}
	}
	return words
}
