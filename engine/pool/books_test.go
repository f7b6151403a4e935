package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sbx/engine"
	"sbx/store"
)

// TestTheBooksAddUpUnderAnyInterleaving plays random begins, rests, evictions,
// sweeps, expiries, pauses, resumes, removals and kills of the engine against
// the real store, step by step as the pool's workers would take them, and holds
// the rows against a model after each: who works is never taken down, nobody is
// lost, the places add up.
func TestTheBooksAddUpUnderAnyInterleaving(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		b := newBooks(t, r, dir)
		defer b.close()
		steps := interleavings
		if v, err := strconv.Atoi(os.Getenv("SBX_TORTURE")); err == nil {
			steps *= v
		}
		for range steps {
			b.step()
			b.check()
		}
	})
}

const capacity = 5

// A books is a pool without workers: the test takes their steps.
type books struct {
	t    *testing.T
	r    *rapid.T
	p    *Pool
	dir  string
	n    int
	runs map[engine.SandboxID]engine.ProcessID // who works, and on what
	seen map[engine.SandboxID]bool             // who was made, and not yet told gone
	ctx  context.Context
}

func newBooks(t *testing.T, r *rapid.T, dir string) *books {
	b := &books{
		t: t, r: r, dir: dir, ctx: t.Context(),
		runs: map[engine.SandboxID]engine.ProcessID{}, seen: map[engine.SandboxID]bool{},
	}
	b.open()
	b.update(func(tx *store.Tx) error { // what an earlier check left
		all, err := tx.Sandboxes()
		for _, sb := range all {
			err = errors.Join(err, tx.RemoveSandbox(sb.ID))
		}
		return err
	})
	return b
}

func (b *books) open() {
	st, err := store.Open(b.ctx, b.dir, store.Options{Sync: "normal"})
	if err != nil {
		b.r.Fatal(err)
	}
	policy := DefaultPolicy()
	policy.MaxSandboxes, policy.IdleTimeout, policy.ColdTTL = capacity, 1, 1
	b.p = &Pool{
		Store: st, Driver: &boxes{booted: map[engine.SandboxID]int{}, destroyed: map[engine.SandboxID]int{}},
		Forget: func(engine.ProcessID) error { return nil }, EndLog: func(engine.ProcessID) error { return nil },
		Archives: &shelf{kept: map[engine.SandboxID]bool{}}, Policy: policy, Log: slog.New(slog.DiscardHandler),
		held: map[engine.SandboxID]bool{}, failing: map[string]failure{},
	}
}

func (b *books) close() {
	if err := b.p.Store.Close(); err != nil {
		b.r.Error(err)
	}
}

func (b *books) update(fn func(*store.Tx) error) error {
	err := b.p.Store.Update(b.ctx, fn)
	switch engine.AsCode(err) {
	case "", engine.Conflict, engine.NotFound, engine.Exhausted:
		return err
	}
	b.r.Fatal(err)
	return err
}

func (b *books) must(err error) {
	if ignoreConflict(err) != nil {
		b.r.Fatal(err)
	}
}

func (b *books) all() (all []engine.Sandbox) {
	err := b.p.Store.View(b.ctx, func(tx *store.Tx) (err error) {
		all, err = tx.Sandboxes()
		return err
	})
	if err != nil {
		b.r.Fatal(err)
	}
	return all
}

// one is any of the sandboxes; ok is false if there is none.
func (b *books) one() (sb engine.Sandbox, ok bool) {
	all := b.all()
	if len(all) == 0 {
		return sb, false
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(b.r, "which")], true
}

func (b *books) step() {
	steps := []struct {
		name string
		do   func(engine.Sandbox)
	}{
		{"begin", b.begin},
		{"begin", b.begin},
		{"rest", b.rest},
		{"rest", b.rest},
		{"pause", b.pause},
		{"resume", b.resume},
		{"remove", b.remove},
		{"keep", b.keep},
		{"worker", b.worker},
		{"worker", b.worker},
		{"worker", b.worker},
		{"worker", b.worker},
	}
	i := rapid.IntRange(0, len(steps)+4).Draw(b.r, "step")
	switch i - len(steps) {
	case 0, 1:
		b.create()
	case 2:
		b.must(b.p.sweepIdle(b.ctx))
	case 3:
		b.must(b.p.sweepCold(b.ctx))
	case 4:
		if rapid.IntRange(0, 9).Draw(b.r, "really") == 0 {
			b.kill()
		}
	default:
		if sb, ok := b.one(); ok {
			steps[i].do(sb)
		}
	}
}

func (b *books) create() {
	b.n++
	sb := engine.Sandbox{
		ID: engine.SandboxID(engine.NewID(engine.SandboxPrefix)), Name: fmt.Sprint("n", b.n), Wanted: engine.Up,
		State: engine.Cold, Health: engine.Unknown, Origin: engine.Origin{Kind: engine.FromCopy, Ref: "/src"},
		PreWarmed: rapid.IntRange(0, 3).Draw(b.r, "warm") == 0, Active: time.Now(),
	}
	taken := 0
	err := b.update(func(tx *store.Tx) error {
		taken = tx.Taken()
		if err := b.p.Reserve(tx); err != nil {
			return err
		}
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		_, err := tx.Fire(sb.ID, engine.Resume)
		return err
	})
	switch {
	case err == nil:
		b.seen[sb.ID] = true
	case engine.AsCode(err) != engine.Exhausted || taken < capacity:
		b.r.Fatalf("a create with %d of %d places taken: %v", taken, capacity, err)
	}
}

// begin is what accepting a command does: its row and Begin in one transaction.
func (b *books) begin(sb engine.Sandbox) {
	if b.runs[sb.ID] != "" {
		return
	}
	id := engine.ProcessID(engine.NewID(engine.ProcessPrefix))
	err := b.update(func(tx *store.Tx) error {
		now, err := tx.Sandbox(sb.ID)
		if err != nil {
			return err
		}
		if now.State != engine.Waiting || now.Wanted != engine.Up {
			return engine.Errorf(engine.Conflict, "it is not there for a command")
		}
		if _, err := tx.Fire(sb.ID, engine.Begin); err != nil {
			return err
		}
		return tx.PutProcess(engine.Process{ID: id, Sandbox: sb.ID, Kind: engine.Spawned, State: engine.ProcessRunning, Wanted: engine.WantRunning})
	})
	if err == nil {
		b.runs[sb.ID] = id
	}
}

// rest is the end of a command, and the pool's step after it.
func (b *books) rest(sb engine.Sandbox) {
	id := b.runs[sb.ID]
	if id == "" {
		return
	}
	delete(b.runs, sb.ID)
	b.update(func(tx *store.Tx) error {
		ps, err := tx.Process(id)
		if err != nil {
			return err
		}
		ps.State, ps.Wanted = engine.ProcessExited, engine.WantStopped
		return tx.PutProcess(ps)
	})
	b.worker(sb)
}

func (b *books) pause(sb engine.Sandbox) {
	if b.runs[sb.ID] != "" || sb.Wanted != engine.Up || !sb.State.Live() {
		return // a session that works is not paused
	}
	b.update(func(tx *store.Tx) error {
		sb, err := tx.Sandbox(sb.ID)
		if err != nil || sb.Wanted != engine.Up || !sb.State.Live() {
			return err
		}
		return TakeDown(tx, sb, engine.Down, engine.EndedByPause)
	})
}

func (b *books) resume(sb engine.Sandbox) {
	b.update(func(tx *store.Tx) error {
		sb, err := tx.Sandbox(sb.ID)
		if err != nil || sb.State != engine.Cold || sb.Wanted == engine.Removed || sb.Leaving {
			return err
		}
		sb.Wanted = engine.Up
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		_, err = tx.Fire(sb.ID, engine.Resume)
		return err
	})
}

// remove is an operator's: it ends what runs, on purpose.
func (b *books) remove(sb engine.Sandbox) {
	if rapid.IntRange(0, 2).Draw(b.r, "really") != 0 {
		return
	}
	b.update(func(tx *store.Tx) error {
		sb, err := tx.Sandbox(sb.ID)
		if err != nil || sb.Wanted == engine.Removed {
			return err
		}
		return TakeDown(tx, sb, engine.Removed, engine.EndedByRemoval)
	})
	delete(b.runs, sb.ID)
	b.halt(sb.ID)
}

func (b *books) keep(sb engine.Sandbox) {
	b.update(func(tx *store.Tx) error {
		sb, err := tx.Sandbox(sb.ID)
		if err != nil || sb.Leaving {
			return err
		}
		sb.Keep = rapid.IntRange(0, 3).Draw(b.r, "keep") == 0
		return tx.PutSandbox(&sb)
	})
}

// halt is the supervisor's part: what is wanted stopped stops.
func (b *books) halt(id engine.SandboxID) {
	b.update(func(tx *store.Tx) error {
		procs, err := tx.ProcessesOf(id)
		for _, ps := range procs {
			if ps.Wanted == engine.WantStopped && !ps.State.Over() {
				ps.State = engine.ProcessStopped
				err = errors.Join(err, tx.PutProcess(ps))
			}
		}
		return err
	})
}

// worker takes the next step of a sandbox, as the pool would, from a look that
// may be old by now. The driver makes a box at once.
func (b *books) worker(sb engine.Sandbox) {
	b.halt(sb.ID)
	if plan(sb, nil) == boot {
		b.must(b.p.Store.Update(b.ctx, func(tx *store.Tx) error {
			now, err := tx.Sandbox(sb.ID)
			if err != nil || now.State != engine.Warming || now.Wanted != engine.Up {
				return err
			}
			return b.p.booted(tx, now, engine.PathNew)
		}))
		return
	}
	next, err := b.p.stepOnce(b.ctx, sb.ID)
	if next == boot {
		return
	}
	b.must(err)
}

// kill is the engine's end at any point, and the next one's start: what was
// live is cold, and on its way again if it is wanted up.
func (b *books) kill() {
	b.close()
	b.open()
	b.must(b.p.Store.Update(b.ctx, func(tx *store.Tx) error {
		all, err := tx.Sandboxes()
		if err != nil {
			return err
		}
		for _, sb := range all {
			procs, err := tx.ProcessesOf(sb.ID)
			if err != nil {
				return err
			}
			for _, ps := range procs {
				if !ps.State.Over() {
					ps.State = engine.ProcessExited
					err = errors.Join(err, tx.PutProcess(ps))
				}
			}
			if sb.State.Live() {
				err = errors.Join(err, Park(tx, sb, engine.Lost, "the engine stopped"))
			}
			if err == nil && sb.Wanted == engine.Up {
				_, err = tx.Fire(sb.ID, engine.Resume)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	b.runs = map[engine.SandboxID]engine.ProcessID{}
}
