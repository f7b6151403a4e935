package detect

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// Health probes the sandboxes that are up, says when one is ready, and raises
// a signal when one isn't any more. Fields are set before Run.
//
//	starting ──2xx──► ready ──2 failures──► signal
//	   │                ▲
//	   └─ time is over ─┼─► signal            broken ──2xx──► ready
//	                    └ healing, down: not looked at
//
// One goroutine schedules, a bounded number of others probe; a sandbox has
// none of its own.
type Health struct {
	Store  *store.Store
	Box    func(ctx context.Context, id engine.SandboxID) (driver.Box, error)
	Policy HealthPolicy
	// Report gets every probe; nil: nobody does. It must not block.
	Report func(engine.SandboxID, engine.Probe)
	// Stuck is what [Stall.Stuck] says of an app; nil: nobody can tell. A broken
	// sandbox isn't recovered while it says so.
	Stuck func(app engine.Process) string
	// Suspended is [Suspended], unless a test says otherwise.
	Suspended func() time.Duration
	Log       *slog.Logger

	once sync.Once
	woke chan string
}

// Woke has every sandbox that is up probed at once: the clock has jumped, and
// why says how. A probe that fails then raises a wake signal and counts as no
// failure of the app; the next one does. It doesn't wait.
func (h *Health) Woke(why string) {
	select {
	case h.wakes() <- why:
	default: // the last jump has not been answered yet: one answer does for both
	}
}

func (h *Health) wakes() chan string {
	h.once.Do(func() { h.woke = make(chan string, 1) })
	return h.woke
}

func (h *Health) slept() time.Duration {
	if h.Suspended == nil {
		return Suspended()
	}
	return h.Suspended()
}

// Run probes until ctx ends. It returns when the last probe has ended.
func (h *Health) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	l := &loop{
		Health: h, ctx: ctx, zero: time.Now(), targets: map[engine.SandboxID]*target{},
		changes: make(chan change), results: make(chan result),
	}
	defer l.wg.Wait()
	defer cancel()
	var failed error
	l.wg.Go(func() {
		failed = follow(l.ctx, l.Store, l.send)
		close(l.changes)
	})
	l.run()
	if err := ctx.Err(); err != nil {
		return err
	}
	return failed // written before changes was closed, which ended the loop
}

// look probes a sandbox and writes what has changed with it. naps is how often
// the clock had jumped when it was due.
func (l *loop) look(t target, naps int64) result {
	r := result{id: t.id, era: t.era, nap: t.nap}
	n := news{fire: engine.Unprobed, reason: "nothing to probe"}
	if t.era.watch == settling {
		r.skipped = true
	} else {
		box, err := l.Box(l.ctx, t.id)
		if err != nil { // not the app's fault: it doesn't count
			r.skipped = true
			l.log().Debug("no box to probe", "sandbox", t.id, "err", err)
			return r
		}
		asleep := l.slept()
		r.probe = Get(l.ctx, box, t.era.port, t.era.path, l.Policy.timeout())
		if l.ctx.Err() != nil {
			return r
		}
		if !r.probe.OK && (l.slept()-asleep > time.Second || l.naps.Load() != naps ||
			r.probe.Latency.D() > l.Policy.timeout()+late) {
			r.skipped = true // the app had no chance to answer
			return r
		}
		if t.era.watch == broken && r.probe.OK && l.Stuck != nil {
			if line := l.Stuck(t.app); line != "" {
				r.probe.OK, r.probe.Detail = false, "it answers, and its log stops at "+line
			}
		}
		if l.Report != nil {
			l.Report(t.id, r.probe)
		}
		n = t.judge(l.Policy, time.Now(), r.probe)
	}
	if n.fire == "" && n.observed == "" {
		return r
	}
	err := l.Store.Update(l.ctx, func(tx *store.Tx) error { return n.write(tx, t) })
	switch {
	case err == nil:
		r.raised = n.observed != "" && n.kind == engine.HealthSignal
	case errors.Is(err, engine.Conflict), errors.Is(err, engine.NotFound):
		// It has moved on since, and the journal says so.
	case l.ctx.Err() == nil:
		l.log().Error("write the health of a sandbox", "sandbox", t.id, "err", err)
	}
	return r
}

// write commits news, unless the rows say that it is of another era.
func (n news) write(tx *store.Tx, t target) error {
	sb, err := tx.Sandbox(t.id)
	if err != nil {
		return err
	}
	app, err := tx.Process(t.era.app)
	if err != nil {
		return err
	}
	if eraOf(sb, app) != t.era {
		return engine.Errorf(engine.Conflict, "sandbox %s has moved on", t.id)
	}
	if n.observed != "" {
		_, err = tx.RaiseSignal(engine.Signal{
			Sandbox: t.id, Process: t.era.app, Kind: n.kind, Observed: n.observed, Probes: n.probes,
		})
		return err
	}
	_, err = tx.FireHealth(t.id, n.fire, n.reason)
	return err
}

func (l *loop) log() *slog.Logger {
	if l.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l.Log
}
