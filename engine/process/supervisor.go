// Package process keeps a sandbox's processes running: it starts what the rows
// want running, records how it ends, starts it again as the spec says, and
// raises a signal when that is no use.
//
// It is level-triggered. A row says what is wanted of a process and what it
// is; while there is something to do about the difference, or the process
// lives, the row has an actor: one goroutine, which waits in the kernel and
// costs nothing. Events only say which row to look at.
//
// The one rule: what is done about an exit is decided by Decide, which is
// pure, in the transaction that records the exit.
package process

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/logs"
	"sbx/store"
)

// Supervisor is set before Run and not changed after.
type Supervisor struct {
	Store *store.Store
	Logs  *logs.Store
	// Box finds the box of a sandbox that was booted.
	Box func(ctx context.Context, id engine.SandboxID) (driver.Box, error)
	// Inherited are the processes that boxes kept while no engine was there.
	Inherited []engine.ProcessID
	// Leave: processes that can outlive this engine do, also those that it
	// started itself.
	Leave  bool
	Policy Policy
	// Env is what a sandbox's processes get in their environment besides what
	// the spec says, which counts before it; nil: nothing.
	Env func(ctx context.Context, sb engine.Sandbox) (map[string]string, error)
	Log *slog.Logger

	policy Policy // filled
	wg     sync.WaitGroup

	mu     sync.Mutex
	actors map[engine.ProcessID]*actor
	// sandboxes that are up; what isn't here may have no process started.
	sandboxes map[engine.SandboxID]condition
	// held are failed processes that were not started again because the healer
	// was at work.
	held map[engine.ProcessID]engine.SandboxID
	// inherited are those of Inherited that nobody has taken up yet.
	inherited map[engine.ProcessID]bool
}

// condition is what of a sandbox matters to its processes.
type condition struct {
	up      bool // it has a box to start processes in
	healing bool
	broken  bool
}

func conditionOf(sb engine.Sandbox) condition {
	return condition{
		up:      sb.State.Live() && sb.State != engine.Warming,
		healing: sb.Health == engine.Healing,
		broken:  sb.Health == engine.Broken,
	}
}

// Run supervises until ctx ends. It then stops every process (TERM, grace,
// KILL) but those that outlive it, records how they ended, and leaves what is
// wanted of them as it is, so that the next engine starts them again.
func (s *Supervisor) Run(ctx context.Context) error {
	s.begin()
	// Two contexts: ctx ends the watching and starting; last, some time later,
	// what must still be done about what was started.
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(s.policy.Leave, cancel)
		context.AfterFunc(last, func() { timer.Stop() })
	})()
	defer s.wg.Wait()
	for {
		err := s.watch(ctx, last)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// Nothing that runs is to die of a journal that can't be read now.
		if engine.AsCode(err) != engine.Compacted {
			s.Log.Error("watching the journal", "err", err)
			if !sleep(ctx, time.Second) {
				return ctx.Err()
			}
		}
	}
}

func (s *Supervisor) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy = s.Policy.filled()
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.actors = map[engine.ProcessID]*actor{}
	s.sandboxes = map[engine.SandboxID]condition{}
	s.held = map[engine.ProcessID]engine.SandboxID{}
	s.inherited = map[engine.ProcessID]bool{}
	for _, id := range s.Inherited {
		s.inherited[id] = true
	}
}

// watch looks at every row, and then at those that events speak of.
func (s *Supervisor) watch(ctx, last context.Context) error {
	pos, err := s.Store.Position(ctx) // before the read, so that no change slips between
	if err != nil {
		return err
	}
	if err := s.lookAtAll(ctx, last); err != nil {
		return err
	}
	for ev, err := range s.Store.Events(ctx, pos.Seq) {
		if err != nil {
			return err
		}
		switch b := ev.Body.(type) {
		case engine.ProcessChanged:
			s.look(ctx, last, ev.Seq, b.Process)
		case engine.SandboxChanged:
			if err := s.sandboxChanged(ctx, last, b.Sandbox); err != nil {
				return err
			}
		case engine.SandboxRemoved:
			s.sandboxRemoved(b.ID)
		}
	}
	return ctx.Err()
}

func (s *Supervisor) lookAtAll(ctx, last context.Context) error {
	return s.Store.View(ctx, func(tx *store.Tx) error {
		all, err := tx.Sandboxes()
		if err != nil {
			return err
		}
		s.mu.Lock()
		for _, sb := range all {
			s.sandboxes[sb.ID] = conditionOf(sb)
		}
		s.mu.Unlock()
		live, err := tx.LiveProcesses()
		for _, p := range live {
			s.look(ctx, last, tx.Seq(), p)
		}
		return err
	})
}

// look tells a process's actor of its row, or makes one if there is something
// to do.
func (s *Supervisor) look(ctx, last context.Context, seq engine.Seq, p engine.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.actors[p.ID]; a != nil {
		a.tell(seq, p)
		return
	}
	a := &actor{s: s, id: p.ID, sandbox: p.Sandbox, supervised: p.Kind == engine.Supervised, wake: make(chan struct{}, 1)}
	a.tell(seq, p)
	if next(p, s.outlook(p, a.renewed)) == rest {
		return
	}
	s.actors[p.ID] = a
	s.wg.Go(func() { a.run(ctx, last) })
}

// sandboxChanged looks at a sandbox's processes when it came up, or when the
// healer began or ended.
func (s *Supervisor) sandboxChanged(ctx, last context.Context, sb engine.Sandbox) error {
	now := conditionOf(sb)
	s.mu.Lock()
	was := s.sandboxes[sb.ID]
	s.sandboxes[sb.ID] = now
	if now.broken {
		s.unhold(sb.ID)
	}
	s.mu.Unlock()
	if now == was || !now.up {
		return nil
	}
	return s.Store.View(ctx, func(tx *store.Tx) error {
		procs, err := tx.ProcessesOf(sb.ID)
		for _, p := range procs {
			s.look(ctx, last, tx.Seq(), p)
		}
		return err
	})
}

// sandboxRemoved ends what is left of a sandbox whose rows are gone.
func (s *Supervisor) sandboxRemoved(id engine.SandboxID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, id)
	s.unhold(id)
	for _, a := range s.actors {
		if a.sandbox == id {
			a.poke(engine.WantStopped)
		}
	}
}

// unhold forgets a sandbox's held processes. The caller holds mu.
func (s *Supervisor) unhold(id engine.SandboxID) {
	for ps, sandbox := range s.held {
		if sandbox == id {
			delete(s.held, ps)
		}
	}
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
