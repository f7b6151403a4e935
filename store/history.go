package store

import (
	"context"
	"iter"

	"sbx/engine"
)

// past is what the healer's history is asked by.
type past struct {
	sandbox engine.SandboxID
	run     engine.RunID
	attempt *int
}

func pastOf(id engine.SandboxID, run engine.RunID) *past { return &past{sandbox: id, run: run} }

func (p *past) at(attempt int) *past {
	p.attempt = &attempt
	return p
}

// remember writes an event to the healer's history too, under its number.
func (g *group) remember(r *record) error {
	var attempt any
	if r.past.attempt != nil {
		attempt = *r.past.attempt
	}
	_, err := g.conn.exec(`INSERT INTO history
		(seq, time, kind, by_kind, by_name, by_from, action, sandbox, run, attempt, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		int64(r.seq), r.time, r.kind, string(r.by.Kind), r.by.Name, r.by.From, string(r.action),
		string(r.past.sandbox), string(r.past.run), attempt, r.body)
	return err
}

// Heals yields the healer's history that q selects, oldest first: the events
// as they stood in the journal, but for those that later ones repeat.
func (s *Store) Heals(ctx context.Context, q engine.HealQuery) iter.Seq2[engine.HealRecord, error] {
	where := " FROM history WHERE seq > ? AND time >= ? "
	args := func(after int64) []any {
		list := []any{after, ms(q.Since)}
		if q.Sandbox != "" {
			list = append(list, string(q.Sandbox))
		}
		if q.Run != "" {
			list = append(list, string(q.Run))
		}
		if q.Attempt != nil {
			list = append(list, *q.Attempt)
		}
		return list
	}
	if q.Sandbox != "" {
		where += "AND sandbox = ? "
	}
	if q.Run != "" {
		where += "AND run = ? AND run <> '' "
	}
	if q.Attempt != nil {
		where += "AND attempt = ? "
	}
	return pages(s, ctx, int64(q.After),
		func(tx *Tx) (int64, error) {
			return newest(tx, "SELECT seq"+where+"ORDER BY seq DESC", args(int64(q.After)), q.Limit)
		},
		func(tx *Tx, after int64) ([]engine.HealRecord, error) {
			recs, err := tx.records("SELECT seq, time, kind, by_kind, by_name, by_from, action, body"+where+
				"ORDER BY seq LIMIT ?", append(args(after), batch)...)
			if err != nil {
				return nil, err
			}
			return decodeAll(recs)
		},
		func(r engine.HealRecord) int64 { return int64(r.Seq) })
}

func decodeAll(recs []*record) ([]engine.Event, error) {
	list := make([]engine.Event, len(recs))
	for i, r := range recs {
		ev, err := r.event()
		if err != nil {
			return nil, err
		}
		list[i] = ev
	}
	return list, nil
}
