package enginetest

import (
	"strings"
	"testing"

	"sbx/engine"
)

var triageCases = []testCase{
	{"AFleetThatIsWellHasNoIncidents", noIncidents},
	{"BudgetsAreOfToday", budgetsOfToday},
	{"ANoteIsInTheHealersHistory", noteInHistory},
}

func noIncidents(t *testing.T, s *suite) {
	list, err := s.Engine.Incidents(s.ctx(t), engine.IncidentQuery{Sandbox: s.home.ID, Open: true, Limit: 10})
	if err != nil || len(list) != 0 {
		t.Errorf("incidents of a sandbox that is well: %+v, %v", list, err)
	}
	_, err = s.Engine.Incidents(s.ctx(t), engine.IncidentQuery{ID: "in-aaaaaaaaaa"})
	wantCode(t, "an incident that isn't there", err, engine.NotFound)
}

func budgetsOfToday(t *testing.T, s *suite) {
	b, err := s.Engine.Budgets(s.ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	day, next := engine.DayOf(b.Resets.Add(-1))
	if b.Day != day || !b.Resets.Equal(next) || b.Sandboxes == nil {
		t.Errorf("the budgets are %+v, want those of the day that ends when they reset", b)
	}
}

func noteInHistory(t *testing.T, s *suite) {
	after := s.snapshot(t).Position
	s.do(t, engine.NoteHeal{Sandbox: s.home.ID, Text: "the port is fine, look at the cache"})
	for rec, err := range s.Engine.Heals(s.ctx(t), engine.HealQuery{Sandbox: s.home.ID, After: after.Seq}) {
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := rec.Body.(engine.HealNoted); ok && n.Note.Text == "the port is fine, look at the cache" && n.Note.By.Kind != "" {
			for _, bad := range []string{"", " \n", strings.Repeat("x", engine.MaxNote+1)} {
				_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.NoteHeal{Sandbox: s.home.ID, Text: bad}))
				wantCode(t, "a note that is empty or too long", err, engine.Invalid)
			}
			return
		}
	}
	t.Error("the note is not in the healer's history")
}
