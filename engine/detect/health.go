package detect

import (
	"context"
	"errors"
	"log/slog"
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
	Log    *slog.Logger
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
		failed = l.follow()
		close(l.changes)
	})
	l.run()
	if err := ctx.Err(); err != nil {
		return err
	}
	return failed // written before changes was closed, which ended the loop
}

// look probes a sandbox and writes what has changed with it.
func (l *loop) look(t target) result {
	r := result{id: t.id, era: t.era}
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
		r.probe = Get(l.ctx, box, t.era.port, t.era.path, l.Policy.timeout())
		if l.ctx.Err() != nil {
			return r
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
		r.raised = n.observed != ""
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
			Sandbox: t.id, Process: t.era.app, Kind: engine.HealthSignal, Observed: n.observed, Probes: n.probes,
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
