// Package pool brings sandboxes to where they are wanted: up, down, or gone.
//
// It is level-triggered. An action writes what is wanted; an event about a
// sandbox makes a worker look at its rows, plan one step, take it, and look
// again. Nobody calls the pool, and losing an event would lose nothing but
// time: the rows say what is left to do.
//
// The one rule: what is to be done is decided by plan, which is pure.
package pool

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// Policy bounds the pool's work.
type Policy struct {
	// Boots is how many sandboxes are brought up at once.
	Boots int
	// BootTimeout bounds the making of one workspace.
	BootTimeout time.Duration
	// Retry is the first wait after a step that failed; it doubles up to a minute.
	Retry time.Duration

	// MaxSandboxes is the capacity, live and cold.
	MaxSandboxes int
	// IdleTimeout is how long a sandbox may wait unused; IdleSweep how often
	// that is looked at.
	IdleTimeout, IdleSweep time.Duration
	// ColdTTL is how long a cold one is kept; ColdSweep how often that is looked at.
	ColdTTL, ColdSweep time.Duration
	// KeepLastCopy refuses to delete what no remote archive holds.
	KeepLastCopy bool
	// Warm is how many are kept ready, by template.
	Warm map[string]int
}

// DefaultPolicy is what a host of two cores bears well.
func DefaultPolicy() Policy {
	return Policy{
		Boots: 4, BootTimeout: 10 * time.Minute, Retry: time.Second,
		MaxSandboxes: 1000, IdleTimeout: 30 * time.Minute, IdleSweep: time.Minute,
		ColdTTL: 2 * time.Hour, ColdSweep: 5 * time.Minute,
	}
}

// Filled is p with the defaults where it says nothing.
func (p Policy) Filled() Policy {
	d := DefaultPolicy()
	p.Boots, p.BootTimeout, p.Retry = cmp.Or(p.Boots, d.Boots), cmp.Or(p.BootTimeout, d.BootTimeout), cmp.Or(p.Retry, d.Retry)
	p.MaxSandboxes = cmp.Or(p.MaxSandboxes, d.MaxSandboxes)
	p.IdleTimeout, p.IdleSweep = cmp.Or(p.IdleTimeout, d.IdleTimeout), cmp.Or(p.IdleSweep, d.IdleSweep)
	p.ColdTTL, p.ColdSweep = cmp.Or(p.ColdTTL, d.ColdTTL), cmp.Or(p.ColdSweep, d.ColdSweep)
	return p
}

// Pool is set before Run and not changed after.
type Pool struct {
	Store  *store.Store
	Driver driver.Driver
	// Template unpacks a template by name.
	Template func(name string) (func(driver.FileWriter) error, error)
	// Forget deletes what is kept of a process outside the store: its logs.
	Forget func(engine.ProcessID) error
	// EndLog marks the log of a command that will never run as complete, so
	// that nobody waits for more.
	EndLog func(engine.ProcessID) error
	// NewWarm is the row of an unclaimed sandbox of a template; needed where
	// Policy.Warm says so.
	NewWarm func(template string) (engine.Sandbox, error)
	// Archives keep workspaces; nil: nothing does.
	Archives Archives
	Policy   Policy
	Log      *slog.Logger

	boots   chan struct{}
	refill  chan struct{} // one token: look at the warm ones
	workers sync.WaitGroup

	mu   sync.Mutex
	busy map[engine.SandboxID]*work
	// held are cold sandboxes whose workspace a remote archive is known to hold.
	held map[engine.SandboxID]bool
	// failing are the templates whose warm sandboxes could not be made.
	failing map[string]failure
}

// work is what a worker is told while it is at its sandbox.
type work struct {
	again bool                    // it changed meanwhile
	cut   context.CancelCauseFunc // ends the boot under way; nil if there is none
}

// errUnwanted ends a boot whose sandbox is to be down or gone.
var errUnwanted = errors.New("it is not wanted any more")

// Run keeps every sandbox where it is wanted until ctx ends.
func (p *Pool) Run(ctx context.Context) error {
	p.boots = make(chan struct{}, max(1, p.Policy.Boots))
	p.refill = make(chan struct{}, 1)
	p.busy = map[engine.SandboxID]*work{}
	p.mu.Lock()
	p.held = map[engine.SandboxID]bool{}
	p.failing = map[string]failure{}
	p.mu.Unlock()
	defer p.workers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.workers.Go(func() { p.sweep(ctx) })
	p.workers.Go(func() { p.keepWarm(ctx) })

	for {
		if err := p.watch(ctx); engine.AsCode(err) != engine.Compacted {
			return err
		} // fell behind the ring: look at everything again
	}
}

// watch looks at every sandbox, and then at those that events speak of.
func (p *Pool) watch(ctx context.Context) error {
	pos, err := p.Store.Position(ctx) // before the read, so that no change slips between
	if err != nil {
		return err
	}
	if err := p.lookAtAll(ctx); err != nil {
		return err
	}
	for ev, err := range p.Store.Events(ctx, pos.Seq) {
		if err != nil {
			return err
		}
		switch b := ev.Body.(type) {
		case engine.SandboxChanged:
			p.notice(ctx, b.Sandbox)
			p.noticeWarm(b.Sandbox)
		case engine.ProcessChanged:
			p.look(ctx, ev.Body.Of())
		}
	}
	return ctx.Err()
}

// notice takes a sandbox's row: a boot of what isn't wanted up ends.
func (p *Pool) notice(ctx context.Context, sb engine.Sandbox) {
	p.look(ctx, sb.ID)
	if sb.Wanted != engine.Up {
		p.cutBoot(sb.ID)
	}
}

// cutBoot ends the boot of a sandbox, if one is under way: a clone from a host
// that doesn't answer must keep nobody from stopping or removing it, nor the
// others from their turn. Whether it is wanted again by now, the worker reads.
func (p *Pool) cutBoot(id engine.SandboxID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.busy[id]; w != nil && w.cut != nil {
		w.cut(errUnwanted)
	}
}

// cuttable is ctx for a boot that cutBoot can end, until done is called.
func (p *Pool) cuttable(ctx context.Context, id engine.SandboxID) (_ context.Context, done func()) {
	ctx, cut := context.WithCancelCause(ctx)
	set := func(cut context.CancelCauseFunc) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy[id].cut = cut
	}
	set(cut)
	return ctx, func() {
		set(nil)
		cut(nil)
	}
}

func (p *Pool) lookAtAll(ctx context.Context) error {
	return p.Store.View(ctx, func(tx *store.Tx) error {
		all, err := tx.Sandboxes()
		for _, sb := range all {
			p.notice(ctx, sb)
		}
		return err
	})
}

// look has a worker look at a sandbox: a new one, or the one that is at it.
func (p *Pool) look(ctx context.Context, id engine.SandboxID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.busy[id]; w != nil {
		w.again = true
		return
	}
	p.busy[id] = &work{}
	p.workers.Go(func() { p.work(ctx, id) })
}

// work takes steps until its sandbox needs none.
func (p *Pool) work(ctx context.Context, id engine.SandboxID) {
	wait := p.Policy.Retry
	for ctx.Err() == nil {
		did, err := p.stepOnce(ctx, id)
		switch {
		case err != nil && ctx.Err() == nil:
			p.Log.Warn("pool: a step failed", "sandbox", id, "step", did, "err", err, "again_in", wait)
			if !sleep(ctx, wait) {
				return
			}
			wait = min(2*wait, time.Minute)
		case did == nothing && p.done(id):
			return
		case did != nothing:
			wait = p.Policy.Retry
		}
	}
}

// done ends a worker unless its sandbox changed since it looked.
func (p *Pool) done(id engine.SandboxID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.busy[id]; w.again {
		w.again = false
		return false
	}
	delete(p.busy, id)
	return true
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// stepOnce reads the rows, plans and takes one step.
func (p *Pool) stepOnce(ctx context.Context, id engine.SandboxID) (step, error) {
	var (
		sb    engine.Sandbox
		procs []engine.Process
	)
	err := p.Store.View(ctx, func(tx *store.Tx) (err error) {
		if sb, err = tx.Sandbox(id); err != nil {
			return err
		}
		procs, err = tx.ProcessesOf(id)
		return err
	})
	if engine.AsCode(err) == engine.NotFound {
		return nothing, nil // removed: nothing is left to do
	}
	if err != nil {
		return nothing, err
	}
	next := plan(sb, procs)
	return next, p.take(ctx, next, sb, procs)
}

func (p *Pool) take(ctx context.Context, next step, sb engine.Sandbox, procs []engine.Process) error {
	switch next {
	case boot:
		return p.boot(ctx, sb)
	case begin, rest:
		return p.shift(ctx, sb.ID)
	case settle:
		return p.settle(ctx, sb)
	case remove:
		return p.remove(ctx, sb, procs)
	}
	return nil
}

// shift makes waiting and running true to whether a command runs, as the rows
// of this very transaction have it: a command that came since the look must not
// find its sandbox resting.
func (p *Pool) shift(ctx context.Context, id engine.SandboxID) error {
	return ignoreConflict(p.Store.Update(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return err
		}
		procs, err := tx.ProcessesOf(id)
		if err != nil {
			return err
		}
		switch working(sb, procs) {
		case begin:
			_, err = tx.Fire(id, engine.Begin)
		case rest:
			_, err = tx.Fire(id, engine.Rest)
		}
		return err
	}))
}

func ignoreConflict(err error) error {
	switch engine.AsCode(err) {
	case engine.Conflict, engine.NotFound:
		return nil
	}
	return err
}
