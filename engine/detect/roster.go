package detect

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"sbx/engine"
	"sbx/store"
)

// A change is a new snapshot, or an event after it.
type change struct {
	snap *engine.Snapshot
	ev   engine.Event
}

// follow sends the fleet as it is and then what happens to it, until send says
// no or ctx ends.
func follow(ctx context.Context, st *store.Store, send func(change) bool) error {
	for {
		snap, err := st.Snapshot(ctx)
		if err != nil {
			return err
		}
		from := snap.Position.Seq // before it has another owner
		if !send(change{snap: snap}) {
			return ctx.Err()
		}
		for ev, e := range st.Events(ctx, from) {
			if err = e; err != nil {
				break
			}
			if !send(change{ev: ev}) {
				return ctx.Err()
			}
		}
		if !errors.Is(err, engine.Compacted) {
			return err
		}
	}
}

// roster is the fleet's rows as a detector needs them: kept from the journal,
// so that looking at a thousand sandboxes asks the store nothing.
type roster struct {
	sandboxes map[engine.SandboxID]engine.Sandbox
	apps      map[engine.SandboxID]engine.Process
}

func (r *roster) apply(c change) {
	if c.snap != nil {
		r.sandboxes, r.apps = c.snap.Sandboxes, map[engine.SandboxID]engine.Process{}
		for _, p := range c.snap.Processes {
			if isApp(p) {
				r.apps[p.Sandbox] = p
			}
		}
		return
	}
	switch b := c.ev.Body.(type) {
	case engine.SandboxChanged:
		r.sandboxes[b.Sandbox.ID] = b.Sandbox
	case engine.ProcessChanged:
		if isApp(b.Process) {
			r.apps[b.Process.Sandbox] = b.Process
		}
	case engine.SandboxRemoved:
		delete(r.sandboxes, b.ID)
		delete(r.apps, b.ID)
	}
}

// life is one start of an app: what was seen of another one counts no more.
type life struct {
	app    engine.ProcessID
	starts int
}

func lifeOf(app engine.Process) life { return life{app.ID, app.Starts} }

// working reports whether an app runs as it should and nobody else is at work
// on its sandbox: the healer, or an operator who was told that it is broken.
func working(sb engine.Sandbox, app engine.Process) bool {
	return sb.State.Live() && sb.Health != engine.Healing && sb.Health != engine.Broken &&
		app.State == engine.ProcessRunning && app.Wanted == engine.WantRunning
}

// patrol looks at the fleet every so often until ctx ends. gap is how long
// nobody could look beyond that: the host slept, or this process was stopped.
func patrol(ctx context.Context, st *store.Store, every time.Duration, slept func() time.Duration, look func(ctx context.Context, r roster, gap time.Duration)) error {
	ctx, cancel := context.WithCancel(ctx)
	changes := make(chan change)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var failed error
	wg.Go(func() {
		failed = follow(ctx, st, func(c change) bool {
			select {
			case changes <- c:
				return true
			case <-ctx.Done():
				return false
			}
		})
		close(changes)
	})
	var r roster
	b := newBeat(every, slept)
	defer b.timer.Stop()
	for {
		select {
		case c, ok := <-changes:
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case !ok:
				return failed // written before changes was closed
			}
			r.apply(c)
		case <-b.timer.C:
			late, slept := b.late()
			b.next() // before the look: a stop in the middle of it is a gap, too
			look(ctx, r, late+slept)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// beats is a timer that knows how late it is.
type beats struct {
	every  time.Duration
	slept  func() time.Duration
	timer  *time.Timer
	due    time.Time
	asleep time.Duration
}

func newBeat(every time.Duration, slept func() time.Duration) *beats {
	if slept == nil {
		slept = Suspended
	}
	return &beats{
		every: every, slept: slept, timer: time.NewTimer(every),
		due: time.Now().Add(every), asleep: slept(),
	}
}

// late is how much later than planned it is by a clock that only stops while
// the host sleeps, and how long the host slept.
func (b *beats) late() (late, slept time.Duration) {
	return max(0, time.Since(b.due)), max(0, b.slept()-b.asleep)
}

func (b *beats) next() {
	b.due, b.asleep = time.Now().Add(b.every), b.slept()
	b.timer.Reset(b.every)
}

// forgetGone drops what is known of sandboxes that are no more.
func forgetGone[T any](known map[engine.SandboxID]T, r roster) {
	maps.DeleteFunc(known, func(id engine.SandboxID, _ T) bool {
		_, ok := r.sandboxes[id]
		return !ok
	})
}

// raise writes a signal about an app, unless the rows say that it is not what
// it was when it was looked at.
func raise(ctx context.Context, st *store.Store, seen life, sig engine.Signal) error {
	return st.Update(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(sig.Sandbox)
		if err != nil {
			return err
		}
		app, err := tx.Process(seen.app)
		if err != nil {
			return err
		}
		if lifeOf(app) != seen || !working(sb, app) {
			return engine.Errorf(engine.Conflict, "sandbox %s has moved on", sb.ID)
		}
		sig.Process = app.ID
		_, err = tx.RaiseSignal(sig)
		return err
	})
}

// movedOn reports whether a signal was not raised because there is nothing to
// say any more.
func movedOn(err error) bool {
	return errors.Is(err, engine.Conflict) || errors.Is(err, engine.NotFound)
}
