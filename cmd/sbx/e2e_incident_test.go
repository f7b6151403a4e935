package main

import (
	"path/filepath"
	"strings"
	"testing"

	"sbx/engine"
)

// TestOneFaultInThreeSandboxesIsAnIncident goes by what an operator types: what
// has happened, who takes over, who gives back, and what is left to spend.
func TestOneFaultInThreeSandboxesIsAnIncident(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, "SBX_TIMINGS_SCALE=1") // five minutes are long enough on a slow machine
	dir := filepath.Join(filepath.Dir(w.home), "app")
	writeApp(t, dir, "echo 'Error: the schema is of yesterday' >&2; exit 1")
	for _, name := range []string{"one", "two", "three"} {
		w.run("create", "--from", dir, "--name", name)
		w.becomes(name, engine.Broken)
	}
	var all []engine.Incident
	w.eventually("one incident of three has ended", func() bool {
		w.read(&all, "incidents", "ls", "--all", "--json")
		return len(all) == 1 && len(all[0].Members) == 3 && !all[0].Open()
	})
	id := string(all[0].ID)
	if !strings.Contains(all[0].Title, "the schema is of yesterday") {
		t.Errorf("the incident is about %q", all[0].Title)
	}
	show := w.ok("incidents", "show", engine.Short(all[0].ID))
	for _, want := range []string{id, "one", "two", "three", "healed first", "not healed"} {
		if !strings.Contains(show, want) {
			t.Errorf("show lacks %q:\n%s", want, show)
		}
	}
	if story := w.ok("logs", "--healer"); !strings.Contains(story, "incident "+engine.Short(all[0].ID)) {
		t.Errorf("the healer's log lacks the incident:\n%s", story)
	}
	if out := w.ok("maintenance", "on", "one", "--for", "2h", "--reason", "mine"); !strings.Contains(out, "paused for 2h") {
		t.Errorf("maintenance on: %s", out)
	}
	if out := w.ok("show", "one"); !strings.Contains(out, "mine") {
		t.Errorf("show lacks the maintenance:\n%s", out)
	}
	if out := w.ok("maintenance", "off", "one"); !strings.Contains(out, "auto-heal goes on") {
		t.Errorf("maintenance off: %s", out)
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitNotFound, []string{"incidents", "show", "in-aaaa"}},
		{exitNotFound, []string{"maintenance", "on", "nobody"}},
		{exitNotFound, []string{"heal", "--resume", "nobody"}},
		{exitNotFound, []string{"logs", "--healer", "--run", "ru-aaaa"}},
		{exitBusy, []string{"incidents", "watch", id}}, // it has ended
		{exitUsage, []string{"maintenance", "on"}},
		{exitBroken, []string{"heal", "--resume", "--note", "the schema was renamed", "two"}},
	} {
		if r := w.run(c.args...); r.code != c.code {
			t.Errorf("sbx %s: exit %d, want %d\n%s%s", strings.Join(c.args, " "), r.code, c.code, r.out, r.err)
		}
	}
	if story := w.ok("logs", "--healer", "two"); !strings.Contains(story, "the schema was renamed") {
		t.Errorf("the healer's log lacks the note:\n%s", story)
	}
	var st statusJSON
	w.read(&st, "status", "--json")
	if st.Budgets.Day == "" || st.Budgets.Fleet.Limit.Dollars == 0 || st.Budgets.Run.Attempts == 0 {
		t.Errorf("status has the budgets %+v", st.Budgets)
	}
}
