package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sbx/engine"
)

// build makes the index of the rows as they are.
func (s *Store) build(ctx context.Context) error {
	var all []engine.Sandbox
	err := s.View(ctx, func(tx *Tx) (err error) {
		all, err = tx.Sandboxes()
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b engine.Sandbox) int {
		return cmp.Or(lastUse(a).Compare(lastUse(b)), cmp.Compare(a.Seq, b.Seq))
	})
	began := time.Now()
	for i := range all {
		s.index.put(&all[i])
		// How long ago that was, by a clock that may have jumped since: never
		// before it happened.
		age := max(0, began.Sub(lastUse(all[i])))
		s.index.places[all[i].ID].since = began.Add(-age)
	}
	s.index.undo = nil
	return nil
}

func lastUse(sb engine.Sandbox) time.Time {
	if sb.StateChanged.After(sb.Active) {
		return sb.StateChanged
	}
	return sb.Active
}

// Taken is how many places of the pool are taken, what this transaction wrote
// included. What is leaving has none. For changes only, as all of the below.
func (tx *Tx) Taken() int { return tx.group.index.total() }

// Victim is who is to be evicted next, by tier (cold, warm, waiting) and then
// least recently used; ok is false if everybody is running, being healed, kept
// or on its way already. Those that not says yes to are passed over; nil: none.
func (tx *Tx) Victim(not func(engine.SandboxID) bool) (id engine.SandboxID, ok bool) {
	for tier := tierCold; tier < tiers; tier++ {
		if p := tx.group.index.oldest(tier, not); p != nil {
			return p.id, true
		}
	}
	return "", false
}

// Resting is the sandbox that has been cold or waiting, unused, the longest of
// those that may be evicted and not doesn't pass over, if that is longer than d
// by the engine's own clock.
func (tx *Tx) Resting(state engine.State, d time.Duration, not func(engine.SandboxID) bool) (id engine.SandboxID, ok bool) {
	tier := map[engine.State]int{engine.Cold: tierCold, engine.Waiting: tierWaiting}[state]
	p := tx.group.index.oldest(tier, not)
	if p == nil || time.Since(p.since) <= d {
		return "", false
	}
	return p.id, true
}

// Restoring reports whether a sandbox is being made of another's archive.
func (tx *Tx) Restoring(id engine.SandboxID) bool { return tx.group.index.restores[id] > 0 }

// PreWarmed are the sandboxes that the pool made ahead and nobody has claimed,
// whatever became of them.
func (tx *Tx) PreWarmed() []engine.SandboxID {
	var ids []engine.SandboxID
	for id, p := range tx.group.index.places {
		if p.warmed {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// WarmOf are the warm sandboxes of a template that may be claimed, the one
// that was made first first.
func (tx *Tx) WarmOf(template string) []engine.SandboxID {
	var found []*place
	for _, p := range tx.group.index.heaps[tierWarm] {
		if p.template == template {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *place) int { return cmp.Compare(a.order, b.order) })
	ids := make([]engine.SandboxID, len(found))
	for i, p := range found {
		ids[i] = p.id
	}
	return ids
}

// touchedRow is how old the time of the last use in a row may be.
const touchedRow = 10 * time.Second

// Touch notes that somebody uses a sandbox: a request, an open terminal, a
// command, a call of its session. Who looks doesn't touch. It costs an event
// every [touchedRow] at most.
func (s *Store) Touch(ctx context.Context, id engine.SandboxID) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.Touch(id) })
}

// Touch is [Store.Touch] in a transaction.
func (tx *Tx) Touch(id engine.SandboxID) error {
	x := tx.group.index
	p := x.places[id]
	if p == nil {
		return noSandbox(id)
	}
	if age := tx.Now.UnixMilli() - p.active; age < 0 || age > touchedRow.Milliseconds() {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return err
		}
		sb.Active = tx.Now
		return tx.PutSandbox(&sb)
	}
	fresh := *p
	fresh.at = -1
	x.uses++
	fresh.order, fresh.since = x.uses, time.Now()
	x.replace(id, &fresh)
	return nil
}
