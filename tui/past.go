package tui

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sbx/engine"
	"sbx/themes"
)

// keptPast is how many happenings are remembered.
const keptPast = 200

// happening is an event in words, for "What happened".
type happening struct {
	at    time.Time
	seq   engine.Seq
	id    engine.SandboxID
	name  string
	mark  mark
	words string
	by    string
	// signal is set on what the detectors raised.
	signal bool
}

// mark is what a happening means for its sandbox.
type mark int

const (
	markNone mark = iota
	markReady
	markHealing
	markBroken
	markLife
)

// past is what happened lately, newest last, and the last of each sandbox.
type past struct {
	list []happening
	last map[engine.SandboxID]string
}

func (p *past) add(h happening) {
	if h.words == "" {
		return
	}
	if p.last == nil {
		p.last = map[engine.SandboxID]string{}
	}
	p.last[h.id] = h.words
	if h.mark == markLife {
		return // worth a column, not a line of its own
	}
	p.list = append(p.list, h)
	if len(p.list) > keptPast {
		p.list = slices.Delete(p.list, 0, len(p.list)-keptPast)
	}
}

// merge adds what the history knows from before.
func (p *past) merge(list []happening) {
	seen := map[engine.Seq]bool{}
	for _, h := range p.list {
		seen[h.seq] = true
	}
	if p.last == nil {
		p.last = map[engine.SandboxID]string{}
	}
	lived := maps.Clone(p.last) // what was seen since is newer
	for _, h := range list {
		if h.words != "" && !seen[h.seq] && h.mark != markLife {
			p.list = append(p.list, h)
			if lived[h.id] == "" {
				p.last[h.id] = h.words
			}
		}
	}
	slices.SortStableFunc(p.list, func(a, b happening) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq))
	})
	p.list = tail(p.list, keptPast)
}

// happeningOf says an event in words. s is the snapshot before it; words are
// "" for what isn't worth telling.
func happeningOf(s *engine.Snapshot, ev engine.Event) happening {
	h := happening{at: ev.Time, seq: ev.Seq, id: ev.Body.Of()}
	if sb, ok := s.Sandboxes[h.id]; ok {
		h.name = sb.Name
	}
	if ev.By.Kind == engine.ActorOperator || ev.By.Kind == engine.ActorClient || ev.By.Kind == engine.ActorScript {
		h.by = ev.By.Name
	}
	switch b := ev.Body.(type) {
	case engine.SandboxChanged:
		h.sandbox(s.Sandboxes[h.id], b.Sandbox)
	case engine.SandboxRemoved:
		h.name, h.words = b.Name, "removed"
	case engine.ProcessChanged:
		h.process(s.Processes[b.Process.ID], b.Process)
	case engine.SignalRaised:
		h.mark, h.signal, h.words = markHealing, true, b.Signal.Observed
	case engine.SignalJudged:
		h.words = "→ " + verdictWords(b.Signal.Verdict)
	case engine.HealStarted:
		h.mark, h.words = markHealing, "heal run began: "+b.Run.Cause
	case engine.HealAttempted:
		h.attempt(b.Attempt)
	case engine.HealFinished:
		h.finished(b.Run)
	case engine.UnknownEvent:
		h.words = "unknown event " + b.Name
	}
	return h
}

func (h *happening) sandbox(old, sb engine.Sandbox) {
	h.name = sb.Name
	switch {
	case old.ID == "":
		h.words = "created"
	case old.Maintenance.On != sb.Maintenance.On && sb.Maintenance.On:
		h.words = "auto-heal paused"
	case old.Maintenance.On != sb.Maintenance.On:
		h.words = "auto-heal resumed"
	case old.Health != sb.Health && sb.Health == engine.Broken:
		h.mark, h.words = markBroken, "broken: "+sb.Reason
	case old.Health != sb.Health && sb.Health == engine.Ready && old.Health != engine.Healing:
		h.mark, h.words = markReady, "ready"
	case old.State != sb.State && (sb.State == engine.Cold || old.State == engine.Cold):
		h.words = string(old.State) + " → " + string(sb.State)
	case old.State != sb.State:
		h.mark, h.words = markLife, string(sb.State)
	}
}

func (h *happening) process(old, p engine.Process) {
	if p.State == old.State || p.Once() {
		return
	}
	switch p.State {
	case engine.ProcessBackoff, engine.ProcessFailed:
		h.mark, h.words = markBroken, p.Name+": "+first(p.Reason, string(p.State))
	case engine.ProcessRunning:
		h.mark, h.words = markLife, p.Name+" started"
	}
}

func (h *happening) attempt(a engine.Attempt) {
	h.mark = markHealing
	switch {
	case a.Outcome == "":
		h.words = attemptName(a.Number) + " began"
	case a.Outcome == engine.Healed:
		h.words = attemptName(a.Number) + " fixed it"
		if s := oneLine(a.Summary); s != "" {
			h.words += ": " + s
		}
	default:
		h.mark, h.words = markBroken, attemptName(a.Number)+" "+string(a.Outcome)+": "+oneLine(first(a.Summary, a.Why))
	}
}

func (h *happening) finished(r engine.HealRun) {
	took := span(r.Ended.Sub(r.Started))
	switch r.Outcome {
	case engine.Healed:
		h.mark, h.words = markReady, "healed in "+took
		if r.FixedBy != "" {
			h.words += " by " + r.FixedBy
		}
		if r.Commit != "" {
			h.words += ", commit " + r.Commit[:min(7, len(r.Commit))]
		}
	case engine.NotHealed, engine.OverBudget:
		h.mark, h.words = markBroken, "gave up after "+plural(r.Attempt, "attempt")+": "+sentences(oneLine(r.Summary))
		if r.Attempt == 0 {
			h.words = "gave up: " + sentences(oneLine(r.Summary))
		}
	default:
		h.mark, h.words = markNone, "heal run "+string(r.Outcome)+" after "+took
	}
}

// of is what happened to one sandbox, newest first, at most n.
func (p *past) of(id engine.SandboxID, n int) []happening {
	var list []happening
	for i := len(p.list) - 1; i >= 0 && len(list) < n; i-- {
		if p.list[i].id == id {
			list = append(list, p.list[i])
		}
	}
	return list
}

// sign is how a happening's sandbox is marked.
func (h happening) sign(w *world) (string, themes.Role) {
	switch h.mark {
	case markReady:
		return w.glyphs.Ready, themes.HealthReady
	case markHealing:
		return w.glyphs.Healing, themes.HealthHealing
	case markBroken:
		return w.glyphs.Broken, themes.Error
	}
	return w.glyphs.None, themes.Muted
}
