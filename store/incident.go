package store

import (
	"context"
	"time"

	"sbx/engine"
)

// PutIncident writes an incident, new or changed. What did not change is no
// event.
func (tx *Tx) PutIncident(i engine.Incident) error {
	text, err := encode(i)
	if err != nil {
		return err
	}
	n, err := tx.write(`INSERT INTO incidents (id, open, opened, body) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body WHERE body <> excluded.body`,
		string(i.ID), i.Open(), ms(i.Opened), text)
	if err != nil || n == 0 {
		return err
	}
	tx.append(engine.KindIncidentChanged, `{"incident":`+text+`}`, pastOf("", ""))
	return nil
}

// Incident is an incident.
func (tx *Tx) Incident(id engine.IncidentID) (engine.Incident, error) {
	i, ok, err := body[engine.Incident](tx, "SELECT body FROM incidents WHERE id = ?", string(id))
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "no incident %q", id).WithHint("see them with: sbx incidents")
	}
	return i, err
}

// OpenIncidents are those that have not ended, oldest first.
func (tx *Tx) OpenIncidents() ([]engine.Incident, error) {
	return bodies[engine.Incident](tx, "SELECT body FROM incidents WHERE open = 1 ORDER BY num", nil)
}

// Incidents are those that q selects, oldest first.
func (s *Store) Incidents(ctx context.Context, q engine.IncidentQuery) (list []engine.Incident, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		list, err = tx.incidents(q)
		return err
	})
	return list, err
}

func (tx *Tx) incidents(q engine.IncidentQuery) ([]engine.Incident, error) {
	if q.ID != "" {
		i, err := tx.Incident(q.ID)
		if err != nil {
			return nil, err
		}
		return []engine.Incident{i}, nil
	}
	all, err := bodies[engine.Incident](tx,
		"SELECT body FROM incidents WHERE (open = 1 OR (? = 0 AND opened >= ?)) ORDER BY num", []any{q.Open, ms(q.Since)})
	if err != nil {
		return nil, err
	}
	list := all[:0]
	for _, i := range all {
		if _, ok := i.Member(q.Sandbox); ok || q.Sandbox == "" {
			list = append(list, i)
		}
	}
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[len(list)-q.Limit:]
	}
	return list, nil
}

// RunsLike are the runs of the fleet with a fingerprint that started since a
// time, oldest first.
func (tx *Tx) RunsLike(fingerprint string, since time.Time) ([]engine.HealRun, error) {
	if fingerprint == "" {
		return nil, nil
	}
	return bodies[engine.HealRun](tx, "SELECT body FROM runs WHERE fingerprint = ? AND fingerprint <> '' AND started >= ? ORDER BY num",
		[]any{fingerprint, ms(since)})
}

func (tx *Tx) snapIncidents(s *engine.Snapshot) error {
	list, err := tx.OpenIncidents()
	for _, i := range list {
		s.Incidents[i.ID] = i
	}
	return err
}
