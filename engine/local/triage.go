package local

import (
	"context"
	"time"

	"sbx/engine"
	"sbx/engine/healer"
	"sbx/store"
)

// Incidents are those that q selects, oldest first.
func (e *Engine) Incidents(ctx context.Context, q engine.IncidentQuery) ([]engine.Incident, error) {
	return e.store.Incidents(ctx, q)
}

// Budgets are the bounds on models' work, and what of them was used today.
func (e *Engine) Budgets(ctx context.Context) (engine.Budgets, error) {
	return budgets(ctx, e.store, e.cfg.Heal)
}

func budgets(ctx context.Context, st *store.Store, p healer.Policy) (b engine.Budgets, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		b, err = healer.Budgets(tx, p)
		return err
	})
	return b, err
}

// noteHeal tells the model that heals a sandbox something.
func (e *Engine) noteHeal(by engine.Actor, b engine.NoteHeal) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		n, err := healer.Note(tx, b.Sandbox, by, b.Text, e.cfg.Redact)
		r.Run = n.Run
		if err == nil && n.Run == "" {
			r.Note = "no heal is open: the next one is told"
		}
		return err
	}
}

func watchIncident(by engine.Actor, b engine.WatchIncident) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Incident = b.Incident
		i, err := tx.Incident(b.Incident)
		if err != nil {
			return err
		}
		switch {
		case !i.Open():
			return engine.Errorf(engine.Conflict, "incident %s has ended: %s", engine.Short(i.ID), i.Reason)
		case b.Off:
			i.Watcher, i.Watched = engine.Actor{}, time.Time{}
		case i.Watcher != by:
			i.Watcher, i.Watched = by, tx.Now
		}
		return tx.PutIncident(i)
	}
}

// Incidents are those that q selects, oldest first.
func (l *Looker) Incidents(ctx context.Context, q engine.IncidentQuery) ([]engine.Incident, error) {
	if l.store == nil {
		if q.ID != "" {
			return nil, engine.Errorf(engine.NotFound, "no incident %q", q.ID)
		}
		return nil, nil
	}
	return l.store.Incidents(ctx, q)
}

// Budgets are what was used today, against the bounds of the configuration.
func (l *Looker) Budgets(ctx context.Context) (engine.Budgets, error) {
	if l.store == nil {
		return engine.Budgets{}, errNotRunning
	}
	return budgets(ctx, l.store, l.heal)
}

// applyPlan opens a run that does what a plan found, unless the workspace has
// moved on since. The run looks at that once more when it begins.
func (e *Engine) applyPlan(ctx context.Context, by engine.Actor, b engine.ApplyPlan) (effect, error) {
	find := func(tx *store.Tx) (healer.Plan, string, error) { return healer.FindPlan(tx, b.Sandbox, b.Run) }
	var p healer.Plan
	note := ""
	err := e.store.View(ctx, func(tx *store.Tx) (err error) {
		p, note, err = find(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if note == "" {
		bx, err := e.box(ctx, b.Sandbox)
		if err != nil {
			return nil, err
		}
		if err := p.MovedOn(ctx, bx.Checkpoints()); err != nil {
			return nil, err
		}
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		now, note, err := find(tx)
		if r.Note = note; err != nil || note != "" {
			return err
		}
		if now.Run.ID != p.Run.ID {
			return engine.Errorf(engine.Conflict, "another plan was made for %s meanwhile", p.Name).
				WithHint("look at it with: sbx logs --healer %s", p.Name)
		}
		run, err := now.Open(tx, by)
		r.Run = run.ID
		return err
	}, nil
}
