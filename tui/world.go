package tui

import (
	"time"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// keptRuns is how many ended runs keep the steps that were seen live.
const keptRuns = 32

// world is what every component reads: the one snapshot, and what was counted
// and remembered on the way. Only App changes it.
type world struct {
	cfg    Config
	keys   keyMap
	glyphs *style.Glyphs
	bright *style.Set // the theme
	styles *style.Set // the theme, or its faded form while the engine is away
	now    time.Time
	spin   int

	snap   *engine.Snapshot // nil until the engine has answered
	gauges engine.Gauges
	link   link
	fleet  order
	marks  map[engine.SandboxID]bool
	hidden map[columnID]bool // columns that somebody took away
	past   past
	// chronicle are the heal runs, for the timeline.
	chronicle chronicle

	apps   map[engine.SandboxID]engine.ProcessID
	traces map[engine.SandboxID]*trace
	// stories are the attempts and steps of runs that are over.
	stories map[engine.RunID]*story
	recent  []engine.RunID
}

func newWorld(c Config) *world {
	return &world{
		cfg: c, keys: keysOf(c.Keys), marks: map[engine.SandboxID]bool{}, hidden: map[columnID]bool{},
		apps: map[engine.SandboxID]engine.ProcessID{}, traces: map[engine.SandboxID]*trace{},
		stories: map[engine.RunID]*story{},
		fleet:   order{health: map[engine.Health]int{}, state: map[engine.State]int{}, at: map[engine.SandboxID]*entry{}},
	}
}

// take replaces everything by a new snapshot.
func (w *world) take(s *engine.Snapshot) {
	w.snap = s
	w.fleet.reset(s)
	for id, r := range s.Runs {
		w.chronicle.signal(s.Signals[id])
		w.chronicle.run(r, s.Sandboxes[id].Name)
		for _, a := range s.Attempts[id] {
			w.chronicle.attempt(a)
		}
	}
	clear(w.apps)
	for id, p := range s.Processes {
		w.index(id, p)
	}
	for id := range w.marks {
		if _, ok := s.Sandboxes[id]; !ok {
			delete(w.marks, id)
		}
	}
	for id := range w.traces {
		if _, ok := s.Sandboxes[id]; !ok {
			delete(w.traces, id)
		}
	}
}

func (w *world) index(id engine.ProcessID, p engine.Process) {
	if p.Kind == engine.Supervised && p.Name == engine.AppName {
		w.apps[p.Sandbox] = id
	}
}

// apply moves the snapshot on by one event.
func (w *world) apply(ev engine.Event) {
	if w.snap == nil || ev.Seq <= w.snap.Position.Seq {
		return
	}
	w.past.add(happeningOf(w.snap, ev))
	w.chronicle.take(ev, w.snap.Sandboxes[ev.Body.Of()].Name)
	if b, ok := ev.Body.(engine.HealFinished); ok {
		w.keep(b.Run)
	}
	if b, ok := ev.Body.(engine.HealStarted); ok {
		w.story(b.Run.ID).signal = w.snap.Signals[b.Run.Sandbox]
	}
	w.snap.Apply(ev)
	switch b := ev.Body.(type) {
	case engine.SandboxChanged:
		w.fleet.put(b.Sandbox)
	case engine.SandboxRemoved:
		w.forget(b.ID)
	case engine.ProcessChanged:
		w.index(b.Process.ID, b.Process)
	}
}

// keep saves the steps of a run that ends: the snapshot drops them.
func (w *world) keep(r engine.HealRun) {
	s := w.story(r.ID)
	s.attempts = append(s.attempts[:0:0], w.snap.Attempts[r.Sandbox]...)
	s.steps = append(s.steps[:0:0], w.snap.Steps[r.Sandbox]...)
}

// story is what is remembered of a run that is over.
func (w *world) story(id engine.RunID) *story {
	if s, ok := w.stories[id]; ok {
		return s
	}
	s := &story{}
	w.stories[id] = s
	if w.recent = append(w.recent, id); len(w.recent) > keptRuns {
		delete(w.stories, w.recent[0])
		w.recent = w.recent[1:]
	}
	return s
}

func (w *world) forget(id engine.SandboxID) {
	w.fleet.drop(id)
	delete(w.marks, id)
	delete(w.apps, id)
	delete(w.traces, id)
}

// measure takes new samples.
func (w *world) measure(g engine.Gauges) {
	w.gauges = g
	if w.snap == nil {
		return
	}
	for id, s := range g.Sandboxes {
		sb, ok := w.snap.Sandboxes[id]
		if !ok {
			continue
		}
		t := w.traces[id]
		if t == nil {
			t = &trace{}
			w.traces[id] = t
		}
		t.add(g.At, s, sb.Spec.Limits)
	}
}

func (w *world) trace(id engine.SandboxID) *trace {
	if t := w.traces[id]; t != nil {
		return t
	}
	return &trace{}
}

func (w *world) app(id engine.SandboxID) engine.Process {
	if w.snap == nil {
		return engine.Process{}
	}
	return w.snap.Processes[w.apps[id]]
}

func (w *world) sandbox(id engine.SandboxID) (engine.Sandbox, bool) {
	if w.snap == nil {
		return engine.Sandbox{}, false
	}
	sb, ok := w.snap.Sandboxes[id]
	return sb, ok
}

// run is the open heal run of a sandbox, or its last.
func (w *world) run(id engine.SandboxID) (engine.HealRun, bool) {
	if w.snap == nil {
		return engine.HealRun{}, false
	}
	r, ok := w.snap.Runs[id]
	return r, ok
}

func (w *world) pen(width int) *draw.Pen { return draw.New(w.styles, width) }

// spinner is the sign of what is at work.
func (w *world) spinner() string {
	if w.cfg.Still || w.link.state != live {
		return w.glyphs.Healing
	}
	return w.styles.Spinner(w.spin)
}

// restyle takes a theme.
func (w *world) restyle(t themes.Theme, o style.Options) {
	w.bright = style.New(t, o)
	w.glyphs = &w.bright.Glyphs
	w.fade()
}

func (w *world) fade() {
	w.styles = w.bright
	if w.link.state == lost {
		w.styles = w.bright.Stale()
	}
}

// problem is the next sandbox after cur that needs somebody: broken ones
// first, then those that are healing.
func (w *world) problem(cur engine.SandboxID) (engine.SandboxID, bool) {
	var list []engine.SandboxID
	for _, want := range []engine.Health{engine.Broken, engine.Healing} {
		for _, e := range w.fleet.entries {
			if e.health == want {
				list = append(list, e.id)
			}
		}
	}
	for i, id := range list {
		if id == cur {
			return list[(i+1)%len(list)], true
		}
	}
	if len(list) == 0 {
		return "", false
	}
	return list[0], true
}

// sinceHealth is how long a sandbox has been as it is; to the minute, unless it
// is being healed, so that a calm screen doesn't change.
func (w *world) sinceHealth(sb engine.Sandbox) string {
	if sb.Health == engine.Healing {
		return span(w.asOf().Sub(sb.HealthChanged))
	}
	return ago(w.asOf(), sb.HealthChanged)
}

// asOf is the moment that what is shown was true: now, or when the engine was
// last heard, so that nothing goes on counting as if it were live.
func (w *world) asOf() time.Time {
	if w.link.state == lost {
		return w.link.news
	}
	return w.now
}
