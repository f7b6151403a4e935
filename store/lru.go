package store

import (
	"container/heap"
	"time"

	"sbx/engine"
)

// The tiers of eviction, in order (SPEC §4). Who is in none can't be evicted.
const (
	tierNone = iota
	tierCold
	tierWarm
	tierWaiting
	tiers
)

// A place is what the index knows of a sandbox.
type place struct {
	id       engine.SandboxID
	state    engine.State
	leaving  bool
	tier     int
	template string
	warmed   bool             // PreWarmed
	restore  engine.SandboxID // whose archive it is made of
	active   int64            // the row's, to tell a use from another change
	order    uint64           // of its last use
	since    time.Time        // likewise, by the monotonic clock
	at       int              // in its tier's heap; -1: in none
}

// An index says at once who is to be evicted, who is idle and how many there
// are. It mirrors the rows as the writer sees them, what is not committed yet
// included, and is used by the writer alone. It costs nothing on disk: it is
// made anew from the rows when the store is opened.
//
// Who was used longest ago is told by a number that grows with each use, and
// how long ago by the monotonic clock: a wall clock that jumps evicts nobody.
type index struct {
	places map[engine.SandboxID]*place
	heaps  [tiers]placeHeap
	counts map[engine.State]int // without those that leave
	// restores are whose archives are being restored, by how many.
	restores map[engine.SandboxID]int
	uses     uint64
	undo     []placeUndo
}

// A placeUndo brings back what a place was before a change.
type placeUndo struct {
	id  engine.SandboxID
	was *place // nil: it was not there
}

func newIndex() *index {
	return &index{places: map[engine.SandboxID]*place{}, counts: map[engine.State]int{}, restores: map[engine.SandboxID]int{}}
}

// tierOf is the tier that a row may be evicted from.
func tierOf(sb *engine.Sandbox) int {
	if sb.Keep || sb.Leaving || sb.Wanted == engine.Removed || sb.Health == engine.Healing {
		return tierNone
	}
	switch sb.State {
	case engine.Cold:
		return tierCold
	case engine.Warm:
		if sb.Wanted == engine.Up {
			return tierWarm
		}
	case engine.Waiting:
		if sb.Wanted == engine.Up {
			return tierWaiting
		}
	}
	return tierNone
}

// put takes note of a row that was written.
func (x *index) put(sb *engine.Sandbox) {
	was := x.places[sb.ID]
	if was != nil && was.state == sb.State && was.active == ms(sb.Active) && was.tier == tierOf(sb) &&
		was.leaving == sb.Leaving && was.warmed == sb.PreWarmed && was.restore == sb.Restore {
		return
	}
	p := &place{
		id: sb.ID, state: sb.State, leaving: sb.Leaving, tier: tierOf(sb), template: sb.Template,
		warmed: sb.PreWarmed, restore: sb.Restore,
		active: ms(sb.Active), at: -1,
	}
	if was != nil && was.state == p.state && was.active == p.active {
		p.order, p.since = was.order, was.since
	} else {
		x.uses++
		p.order, p.since = x.uses, time.Now()
	}
	x.replace(sb.ID, p)
}

func (x *index) remove(id engine.SandboxID) { x.replace(id, nil) }

func (x *index) replace(id engine.SandboxID, p *place) {
	was := x.places[id]
	if was == nil && p == nil {
		return
	}
	x.undo = append(x.undo, placeUndo{id, was})
	x.set(id, p)
}

func (x *index) set(id engine.SandboxID, p *place) {
	if was := x.places[id]; was != nil {
		if was.at >= 0 {
			heap.Remove(&x.heaps[was.tier], was.at)
		}
		if !was.leaving {
			x.counts[was.state]--
		}
		x.restoring(was.restore, -1)
		delete(x.places, id)
	}
	if p == nil {
		return
	}
	x.places[id] = p
	if !p.leaving {
		x.counts[p.state]++
	}
	x.restoring(p.restore, 1)
	if p.tier != tierNone {
		heap.Push(&x.heaps[p.tier], p)
	}
}

func (x *index) restoring(id engine.SandboxID, n int) {
	if id == "" {
		return
	}
	if x.restores[id] += n; x.restores[id] == 0 {
		delete(x.restores, id)
	}
}

// oldest is the place of a tier that was used longest ago, of those that not
// doesn't pass over; nil if there is none.
func (x *index) oldest(tier int, not func(engine.SandboxID) bool) *place {
	h := x.heaps[tier]
	if len(h) == 0 {
		return nil
	}
	if not == nil || !not(h[0].id) {
		return h[0]
	}
	var found *place
	for _, p := range h {
		if (found == nil || p.order < found.order) && !not(p.id) {
			found = p
		}
	}
	return found
}

// back undoes all that was changed since a mark.
func (x *index) back(mark int) {
	for i := len(x.undo) - 1; i >= mark; i-- {
		u := x.undo[i]
		x.set(u.id, u.was)
	}
	x.undo = x.undo[:mark]
}

// total is how many places of the pool are taken.
func (x *index) total() int {
	n := 0
	for _, c := range x.counts {
		n += c
	}
	return n
}

// placeHeap has the place that was used longest ago on top.
type placeHeap []*place

func (h placeHeap) Len() int           { return len(h) }
func (h placeHeap) Less(i, j int) bool { return h[i].order < h[j].order }
func (h placeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push and Pop are container/heap's.
func (h *placeHeap) Push(v any) {
	p := v.(*place)
	p.at = len(*h)
	*h = append(*h, p)
}

// Pop is container/heap's.
func (h *placeHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	p.at = -1
	return p
}
