package healer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/engine"
	"sbx/store"
)

// Moments of an open run are checkpoints whose note says which they are. They
// go when the run ends.
const (
	noteCall   = "after a call"
	noteOthers = "before a call"
)

// keepMoment writes down a moment of the track.
func (h *heal) keepMoment(ctx context.Context, m moment) error {
	h.moments++
	note := noteOthers
	if m.call {
		note = noteCall
	}
	cp := engine.Checkpoint{
		ID: engine.CheckpointID(engine.NewID(engine.CheckpointPrefix)), Sandbox: h.run.Sandbox, Run: h.id,
		Note: fmt.Sprintf("%s %d %s", note, h.moments, m.own), Tree: m.tree,
	}
	return h.writeEnd(ctx, func(tx *store.Tx, _ *engine.HealRun) error {
		cp.Created = tx.Now
		return tx.PutCheckpoint(cp)
	})
}

// momentOf reads what keepMoment wrote: the moment and its number.
func momentOf(cp engine.Checkpoint) (m moment, n int, ok bool) {
	rest, call := strings.CutPrefix(cp.Note, noteCall+" ")
	if !call {
		if rest, ok = strings.CutPrefix(cp.Note, noteOthers+" "); !ok {
			return m, 0, false
		}
	}
	number, own, _ := strings.Cut(rest, " ")
	if _, err := fmt.Sscanf(number, "%d", &n); err != nil {
		return m, 0, false
	}
	return moment{call: call, own: own, tree: cp.Tree}, n, true
}

// momentsOf are a run's moments in the order in which they happened.
func momentsOf(all []engine.Checkpoint, run engine.RunID) []moment {
	type numbered struct {
		moment
		n int
	}
	var list []numbered
	for _, cp := range all {
		if m, n, ok := momentOf(cp); ok && cp.Run == run {
			list = append(list, numbered{m, n})
		}
	}
	slices.SortFunc(list, func(a, b numbered) int { return cmp.Compare(a.n, b.n) })
	moments := make([]moment, len(list))
	for i, m := range list {
		moments[i] = m.moment
	}
	return moments
}

// dropMoments forgets the moments of a run that ended.
func dropMoments(tx *store.Tx, run engine.HealRun) error {
	all, err := tx.Checkpoints(run.Sandbox)
	if err != nil {
		return err
	}
	for _, cp := range all {
		if _, _, ok := momentOf(cp); !ok || cp.Run != run.ID {
			continue
		}
		if err := tx.DropCheckpoint(cp.ID); err != nil {
			return err
		}
	}
	return nil
}
