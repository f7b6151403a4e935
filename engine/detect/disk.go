package detect

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// Disk stops what runs in a sandbox whose files take more than its limit.
//
// The kernel limits memory, cpu and processes by itself; of files it knows
// whose they are only where quotas were set up. So they are weighed every few
// seconds, and what is over is held: all its processes are stopped and it is
// broken, with a reason that says what to do. A restart would free nothing, and
// nothing here may delete a user's files. It stays up, so that files can be
// read and removed and commands run; those that make it grow further are
// stopped again. Once there is room, an operator restarts it.
type Disk struct {
	Store *store.Store
	Box   func(ctx context.Context, id engine.SandboxID) (driver.Box, error)
	// Cut ends the heal run of a sandbox.
	Cut   func(tx *store.Tx, id engine.SandboxID) error
	Every time.Duration // 2 s; between looks
	Scale float64       // 1; multiplies Every
	Log   *slog.Logger
}

// slack is what a sandbox over its limit may grow by while somebody tidies up:
// a shell's history, a database's journal.
const slack = engine.MiB

// Run looks after the fleet until ctx ends.
func (d *Disk) Run(ctx context.Context) error {
	held := map[engine.SandboxID]engine.Size{} // what those over their limit took at the last look
	return patrol(ctx, d.Store, scaled(d.Scale, or(d.Every, 2*time.Second)), nil, func(ctx context.Context, r roster, _ time.Duration) {
		forgetGone(held, r)
		for id, used := range d.weigh(ctx, r) {
			if limit := r.sandboxes[id].Spec.Limits.Disk; used <= limit {
				delete(held, id)
				continue
			}
			was, before := held[id]
			held[id] = used
			if before && used <= was+slack && r.sandboxes[id].Health == engine.Broken {
				continue
			}
			if err := d.hold(ctx, id, used); err != nil && !movedOn(err) && ctx.Err() == nil {
				delete(held, id)
				logOf(d.Log).Error("hold a sandbox that is over its disk limit", "sandbox", id, "err", err)
			}
		}
	})
}

// weigh is what the sandboxes take that are up and have a limit.
func (d *Disk) weigh(ctx context.Context, r roster) map[engine.SandboxID]engine.Size {
	taken := map[engine.SandboxID]engine.Size{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	places := make(chan struct{}, measureTogether)
	for id, sb := range r.sandboxes {
		if sb.Spec.Limits.Disk <= 0 || !sb.State.Live() {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			box, err := d.Box(ctx, id)
			if err != nil {
				return // on its way up or down
			}
			if used, err := box.Disk(ctx); err == nil {
				mu.Lock()
				defer mu.Unlock()
				taken[id] = used
			}
		})
	}
	wg.Wait()
	return taken
}

// hold stops everything that runs in a sandbox, and says why.
func (d *Disk) hold(ctx context.Context, id engine.SandboxID, used engine.Size) error {
	return d.Store.Update(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return err
		}
		limit := sb.Spec.Limits.Disk
		if !sb.State.Live() || sb.Wanted != engine.Up || limit <= 0 || used <= limit {
			return engine.Errorf(engine.Conflict, "sandbox %s has moved on", id)
		}
		stopped, err := stopAll(tx, id)
		if err != nil || !stopped && sb.Health == engine.Broken {
			return err
		}
		observed := fmt.Sprintf("disk %s of %s", megabytes(used), megabytes(limit))
		if _, err := tx.RaiseSignal(engine.Signal{Sandbox: id, Kind: engine.PressureSignal, Observed: observed}); err != nil {
			return err
		}
		switch sb.Health {
		case engine.Broken:
			return nil
		case engine.Healing:
			return d.Cut(tx, id) // the next look finds it without a run
		}
		reason := observed + ": stopped; remove files or raise limits.disk (sbx apply), then: sbx restart " + sb.Name
		if _, err := tx.FireHealth(id, engine.Fault, reason); err != nil {
			return err
		}
		_, err = tx.FireHealth(id, engine.GaveUp, reason)
		return err
	})
}

// stopAll wants all processes of a sandbox stopped, and reports whether any ran.
func stopAll(tx *store.Tx, id engine.SandboxID) (any bool, err error) {
	procs, err := tx.ProcessesOf(id)
	if err != nil {
		return false, err
	}
	for _, p := range procs {
		if p.Wanted == engine.WantStopped && p.State.Over() || !p.State.Alive() && p.Kind != engine.Supervised {
			continue
		}
		any = true
		p.Wanted = engine.WantStopped
		if err := tx.PutProcess(p); err != nil {
			return false, err
		}
	}
	return any, nil
}
