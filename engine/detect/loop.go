package detect

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sbx/engine"
)

// A loop is one Run.
type loop struct {
	*Health
	ctx  context.Context // of this Run, for its goroutines
	zero time.Time       // what beats are counted from
	wg   sync.WaitGroup

	changes chan change
	results chan result

	naps    atomic.Int64 // how often the clock jumped
	targets map[engine.SandboxID]*target
	waiting schedule
	probing int
}

// A result is what became of one look at a sandbox.
type result struct {
	id      engine.SandboxID
	era     era
	nap     string // the target's, when the probe began
	probe   engine.Probe
	skipped bool // nothing was probed, or it says nothing of the app
	raised  bool // a health signal
}

func (l *loop) send(c change) bool {
	select {
	case l.changes <- c:
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *loop) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	asleep := l.slept()
	for {
		l.startDue(time.Now())
		next := time.Now().Add(l.untilNext(time.Now()))
		timer.Reset(time.Until(next))
		select {
		case c, ok := <-l.changes:
			if !ok {
				return
			}
			l.apply(c)
		case r := <-l.results:
			l.finish(r)
		case why := <-l.wakes():
			l.woken(why)
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		gap, slept := max(0, time.Since(next)), l.slept()
		if gap+slept-asleep > late {
			l.naps.Add(1)
			for _, t := range l.targets {
				t.woke(gap)
			}
		}
		asleep = slept
	}
}

// woken has every sandbox probed at once. What fails in that first probe is
// told apart from what fails after it.
func (l *loop) woken(why string) {
	l.naps.Add(1)
	now := time.Now()
	for _, t := range l.targets {
		if t.era.watch == nothing || t.era.watch == settling {
			continue
		}
		t.woke(0)
		t.nap, t.due = why, now
		l.waiting.put(t)
	}
}

// untilNext is how long nothing is due. While all probes are under way, the
// end of one is what to wait for.
func (l *loop) untilNext(now time.Time) time.Duration {
	if len(l.waiting) == 0 || l.probing >= l.Policy.probes() {
		return time.Hour
	}
	return l.waiting[0].due.Sub(now)
}

func (l *loop) apply(c change) {
	if c.snap != nil {
		l.reset(c.snap)
		return
	}
	switch b := c.ev.Body.(type) {
	case engine.SandboxChanged:
		t := l.target(b.Sandbox.ID)
		t.sandbox = b.Sandbox
		l.plan(t)
	case engine.ProcessChanged:
		if isApp(b.Process) {
			t := l.target(b.Process.Sandbox)
			t.app = b.Process
			l.plan(t)
		}
	case engine.SandboxRemoved:
		l.drop(b.ID)
	}
}

func isApp(p engine.Process) bool { return p.Kind == engine.Supervised && p.Name == engine.AppName }

// reset takes a whole snapshot.
func (l *loop) reset(snap *engine.Snapshot) {
	for id := range l.targets {
		if _, ok := snap.Sandboxes[id]; !ok {
			l.drop(id)
		}
	}
	for id, sb := range snap.Sandboxes {
		l.target(id).sandbox = sb
	}
	for _, p := range snap.Processes {
		if isApp(p) {
			l.target(p.Sandbox).app = p
		}
	}
	for _, t := range l.targets {
		l.plan(t)
	}
}

func (l *loop) target(id engine.SandboxID) *target {
	t, ok := l.targets[id]
	if !ok {
		t = &target{id: id, place: -1}
		l.targets[id] = t
	}
	return t
}

func (l *loop) drop(id engine.SandboxID) {
	if t, ok := l.targets[id]; ok {
		l.waiting.drop(t)
		delete(l.targets, id)
	}
}

func (l *loop) plan(t *target) {
	if t.update(time.Now(), l.Policy) {
		t.due = t.aligned(l.Policy, t.due, l.zero)
		l.waiting.put(t)
	}
}

// startDue begins the looks whose time has come, as many as may run.
func (l *loop) startDue(now time.Time) {
	for len(l.waiting) > 0 && l.probing < l.Policy.probes() && !l.waiting[0].due.After(now) {
		t := heap.Pop(&l.waiting).(*target)
		t.busy = true
		l.probing++
		as, naps := *t, l.naps.Load()
		l.wg.Go(func() {
			select {
			case l.results <- l.look(as, naps):
			case <-l.ctx.Done():
			}
		})
	}
}

func (l *loop) finish(r result) {
	l.probing--
	t, ok := l.targets[r.id]
	if !ok {
		return
	}
	t.busy = false
	if t.era == r.era {
		now := time.Now()
		again := t.nap != r.nap // the host slept while it was probed
		t.record(now, r)
		t.due = t.aligned(l.Policy, now.Add(t.delay(l.Policy)), l.zero)
		if again {
			t.due = now
		}
	}
	l.waiting.put(t)
}
