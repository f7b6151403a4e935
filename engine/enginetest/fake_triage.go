package enginetest

import (
	"context"
	"slices"
	"strings"

	"sbx/engine"
)

// PutIncident has the fake say that there is an incident.
func (f *Fake) PutIncident(i engine.Incident) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.incidents[i.ID] = i
	f.append(itself, engine.IncidentChanged{Incident: i})
}

// Incidents are those that q selects.
func (f *Fake) Incidents(_ context.Context, q engine.IncidentQuery) ([]engine.Incident, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.incidents[q.ID]; q.ID != "" && !ok {
		return nil, engine.Errorf(engine.NotFound, "no incident %q", q.ID)
	}
	var list []engine.Incident
	for _, i := range f.incidents {
		_, member := i.Member(q.Sandbox)
		switch {
		case q.ID != "" && q.ID != i.ID, q.Open && !i.Open(), q.Sandbox != "" && !member, i.Opened.Before(q.Since) && !i.Open():
			continue
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b engine.Incident) int {
		if c := a.Opened.Compare(b.Opened); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return newest(list, q.Limit), nil
}

// Budgets: a fake uses nothing.
func (f *Fake) Budgets(context.Context) (engine.Budgets, error) {
	day, next := engine.DayOf(now())
	return engine.Budgets{Day: day, Resets: next, Sandboxes: map[engine.SandboxID]engine.Use{}}, nil
}

func (f *Fake) watch(by author, b engine.WatchIncident, r *engine.Receipt) error {
	i, ok := f.incidents[b.Incident]
	if !ok {
		return engine.Errorf(engine.NotFound, "no incident %q", b.Incident)
	}
	i.Watcher, i.Watched = by.by, now()
	if b.Off {
		i.Watcher, i.Watched = engine.Actor{}, engine.Incident{}.Watched
	}
	f.incidents[i.ID] = i
	f.append(by, engine.IncidentChanged{Incident: i})
	r.Incident = i.ID
	return nil
}

func (f *Fake) noteHeal(by author, b engine.NoteHeal) error {
	if strings.TrimSpace(b.Text) == "" || len(b.Text) > engine.MaxNote {
		return engine.Errorf(engine.Invalid, "a note is 1 to %d bytes", engine.MaxNote)
	}
	id := int64(f.snap.Position.Seq + 1)
	f.append(by, engine.HealNoted{Note: engine.HealNote{ID: id, Sandbox: b.Sandbox, By: by.by, Text: b.Text, At: now()}})
	return nil
}
