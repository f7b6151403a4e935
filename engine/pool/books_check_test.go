package pool

import (
	"sbx/engine"
	"sbx/store"
)

// check holds the rows against what must be true of them.
func (b *books) check() {
	all := b.all()
	there := map[engine.SandboxID]engine.Sandbox{}
	counts, places := map[engine.State]int{}, 0
	for _, sb := range all {
		there[sb.ID] = sb
		if !sb.Leaving {
			counts[sb.State]++
			places++
		}
	}
	if places > capacity {
		b.r.Fatalf("%d places are taken of %d", places, capacity)
	}
	for id := range b.runs {
		sb, ok := there[id]
		if !ok || sb.State != engine.Running || sb.Wanted != engine.Up || sb.Leaving {
			b.r.Fatalf("%s works, and it is there: %t, %s, wanted %s, leaving %t (%s)", id, ok, sb.State, sb.Wanted, sb.Leaving, sb.Ending)
		}
	}
	for id := range b.seen {
		if _, ok := there[id]; !ok && !b.toldGone(id) {
			b.r.Fatalf("%s is lost", id)
		}
	}
	b.must(b.p.Store.Update(b.ctx, func(tx *store.Tx) error {
		if tx.Taken() != places {
			b.r.Fatalf("the index has %d places, the rows %d", tx.Taken(), places)
		}
		l, err := tx.Levels()
		if l.Total != places || l.Cold != counts[engine.Cold] || l.Waiting != counts[engine.Waiting] || l.Running != counts[engine.Running] {
			b.r.Fatalf("the levels are %+v, the rows %v", l, counts)
		}
		for not := map[engine.SandboxID]bool{}; ; {
			id, ok := tx.Victim(func(id engine.SandboxID) bool { return not[id] })
			if !ok {
				return err
			}
			sb := there[id]
			not[id] = true
			if sb.Keep || sb.Leaving || sb.State == engine.Running || sb.State == engine.Warming || sb.Health == engine.Healing {
				b.r.Fatalf("%s would be evicted, and is %s, kept %t, leaving %t", id, sb.State, sb.Keep, sb.Leaving)
			}
		}
	}))
}

// toldGone reports whether somebody wanted a sandbox away before it went.
func (b *books) toldGone(id engine.SandboxID) bool {
	gone := false
	for ev, err := range b.p.Store.Events(b.ctx, 0) {
		if err != nil {
			b.r.Fatal(err)
		}
		if c, ok := ev.Body.(engine.SandboxChanged); ok && c.Sandbox.ID == id {
			gone = c.Sandbox.Wanted == engine.Removed
		}
		if c, ok := ev.Body.(engine.SandboxRemoved); ok && c.ID == id {
			delete(b.seen, id)
			return gone
		}
	}
	return false
}
