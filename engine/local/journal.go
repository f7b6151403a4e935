package local

import (
	"context"
	"iter"

	"sbx/engine"
	"sbx/store"
)

// Snapshot is everything at one position.
func (e *Engine) Snapshot(ctx context.Context) (*engine.Snapshot, error) {
	s, err := e.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	s.About = e.about
	return s, nil
}

// Events yields every event after a position of this journal's epoch.
func (e *Engine) Events(ctx context.Context, after engine.Position) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		pos, err := e.store.Position(ctx)
		if err == nil && (after.Epoch != pos.Epoch || after.Seq > pos.Seq) {
			err = engine.Errorf(engine.Compacted, "position %s is of another journal (this one is at %s)", after, pos).
				WithHint("take a new snapshot and go on from there")
		}
		if err != nil {
			yield(engine.Event{}, err)
			return
		}
		for ev, err := range e.store.Events(ctx, after.Seq) {
			if !yield(ev, err) {
				return
			}
		}
	}
}

// Heals yields the healer's records, oldest first.
func (e *Engine) Heals(ctx context.Context, q engine.HealQuery) iter.Seq2[engine.HealRecord, error] {
	return e.store.Heals(ctx, q)
}

// Audit yields the audit log.
func (e *Engine) Audit(ctx context.Context, q engine.AuditQuery) iter.Seq2[engine.AuditEntry, error] {
	return e.store.Audit(ctx, q)
}

// Checkpoints are a sandbox's, newest first.
func (e *Engine) Checkpoints(ctx context.Context, id engine.SandboxID) (list []engine.Checkpoint, err error) {
	err = e.store.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Sandbox(id); err != nil {
			return err
		}
		list, err = tx.Checkpoints(id)
		return err
	})
	return list, err
}

// Diff is what changed between two checkpoints of a sandbox, or up to now.
func (e *Engine) Diff(ctx context.Context, id engine.SandboxID, from, to engine.CheckpointID) (engine.Diff, error) {
	bx, err := e.box(ctx, id)
	if err != nil {
		return engine.Diff{}, err
	}
	a, err := e.treeOf(ctx, id, from)
	if err != nil {
		return engine.Diff{}, err
	}
	var b string
	if to == "" {
		b, err = bx.Checkpoints().Save(ctx, "to compare")
	} else {
		b, err = e.treeOf(ctx, id, to)
	}
	if err != nil {
		return engine.Diff{}, err
	}
	return bx.Checkpoints().Diff(ctx, a, b)
}

func (e *Engine) treeOf(ctx context.Context, id engine.SandboxID, cp engine.CheckpointID) (tree string, err error) {
	err = e.store.View(ctx, func(tx *store.Tx) error {
		c, err := tx.Checkpoint(cp)
		if err == nil && c.Sandbox != id {
			err = engine.Errorf(engine.NotFound, "checkpoint %s is not of sandbox %s", cp, id)
		}
		tree = c.Tree
		return err
	})
	return tree, err
}

// Store is what the server's door looks tokens up in; cmd wires it.
func (e *Engine) Store() *store.Store { return e.store }
