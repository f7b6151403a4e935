package tui

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

// tellRuns gives the fake's history some runs: api healed in two attempts,
// web-7 and web-8 on the same fault.
func tellRuns(f *fakeEngine, now time.Time) {
	add := func(id engine.SandboxID, name string, began, took time.Duration, outcome engine.Outcome, summary string) {
		r := engine.HealRun{
			ID: engine.RunID("ru-" + name), Sandbox: id, Cause: "exit 1", By: engine.System, State: engine.RunModel, MaxAttempts: 3,
			Started: now.Add(-began),
		}
		attempt := engine.Attempt{Run: r.ID, Sandbox: id, Number: 1, Started: r.Started, Why: "a missing import"}
		f.records = append(f.records,
			engine.HealRecord{Seq: 1, Time: r.Started, Body: engine.HealStarted{Run: r}},
			engine.HealRecord{Seq: 2, Time: r.Started, Body: engine.HealAttempted{Attempt: attempt}})
		if outcome == "" {
			return
		}
		r.State, r.Outcome, r.Attempt, r.Summary, r.Ended = engine.RunEnded, outcome, 1, summary, r.Started.Add(took)
		attempt.Outcome, attempt.Ended = outcome, r.Ended
		f.records = append(f.records,
			engine.HealRecord{Seq: 3, Time: r.Ended, Body: engine.HealAttempted{Attempt: attempt}},
			engine.HealRecord{Seq: 4, Time: r.Ended, Body: engine.HealFinished{Run: r}})
	}
	add(seedID(10), "api-10", 40*time.Minute, 4*time.Minute, engine.Healed, "put the import back")
	add(seedID(11), "web-11", 30*time.Minute, 2*time.Minute, engine.NotHealed, "connect ECONNREFUSED 127.0.0.1:5432")
	add(seedID(12), "web-12", 20*time.Minute, 2*time.Minute, engine.NotHealed, "connect ECONNREFUSED 127.0.0.1:5433")
	add(seedID(13), "old-13", 5*time.Hour, time.Minute, engine.Healed, "a restart")
}

func onIncidentsDesk(t *testing.T, w, h int, f func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(14 * time.Hour)
		fake := seeded(40, time.Now())
		fake.records = nil
		clear(fake.snap.Runs)
		tellRuns(fake, time.Now())
		d := liveDesk(t, fake, w, h, nil)
		d.press("#")
		f(d)
	})
}

func TestIncidentsShowALaneForEachRun(t *testing.T) {
	for _, size := range [][2]int{{160, 45}, {120, 32}, {80, 24}, {60, 15}} {
		onIncidentsDesk(t, size[0], size[1], func(d *desk) {
			d.fits()
			d.sees("Timeline")
			d.sees("1━")
			d.misses("web-13")
			if size[1] >= 24 {
				d.sees("fail on “connect ECONNREFUSED #.#.#.#:#”")
			}
			d.press("-")
			if size[1] >= 24 {
				d.sees("web-13")
			}
		})
	}
}

func TestAnIncidentOpensItsHealerAndEscComesBack(t *testing.T) {
	onIncidentsDesk(t, 160, 45, func(d *desk) {
		want := d.incidents.selected().run.Sandbox
		d.press("enter")
		if d.screen != onSandbox || d.sandbox.id != want || d.sandbox.tab != tabHealer {
			t.Fatalf("it shows %v", d.sandbox.id)
		}
		d.press("esc")
		if d.screen != onIncidents {
			t.Error("Esc did not come back to the incidents")
		}
		d.press("esc")
		if d.screen != onFleet {
			t.Error("Esc did not come back to the fleet")
		}
	})
}

func TestWatchingAnIncidentTellsTheEngineOrSaysWhyNot(t *testing.T) {
	onIncidentsDesk(t, 160, 45, func(d *desk) {
		d.press("w")
		d.asked()
		d.sees("w: this run is of no open incident")
		in := engine.Incident{ID: "in-aaaaaaaaaa", Title: "ECONNREFUSED", State: engine.IncidentCanary, Opened: time.Now()}
		run := d.incidents.selected().run
		run.Incident = in.ID
		for i, body := range []engine.EventBody{engine.IncidentChanged{Incident: in}, engine.HealChanged{Run: run}} {
			d.send(frameMsg{events: []engine.Event{{Seq: d.w.snap.Position.Seq + engine.Seq(i) + 1, Time: time.Now(), Body: body}}})
		}
		d.press("w")
		d.asked(engine.WatchIncident{Incident: in.ID})
	})
}

func TestIncidentsAreExportedAsMarkdown(t *testing.T) {
	onIncidentsDesk(t, 160, 45, func(d *desk) {
		_, all := d.incidents.texts()
		for _, want := range []string{"| web-11 |", "| gave up |", "connect ECONNREFUSED", "2 sandboxes fail on"} {
			if !strings.Contains(all, want) {
				t.Errorf("the export lacks %q:\n%s", want, all)
			}
		}
		d.press(">")
		d.sees("incidents-")
	})
}

func TestNoIncidentIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(14 * time.Hour)
		fake := seeded(3, time.Now())
		fake.records = nil
		clear(fake.snap.Runs)
		d := liveDesk(t, fake, 120, 32, nil)
		d.press("#")
		d.sees("no heal run in the last 1 h")
		d.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		d.fits()
	})
}

func TestAPatternNeedsTwoSandboxesWithinAnHour(t *testing.T) {
	at := func(id engine.SandboxID, min int, summary string) *episode {
		return &episode{run: engine.HealRun{ID: engine.RunID(string(id) + summary), Sandbox: id, Summary: summary, Started: time.Unix(int64(60*min), 0)}}
	}
	for _, c := range []struct {
		name string
		list []*episode
		want int
	}{
		{"two", []*episode{at("a", 0, "port 1"), at("b", 59, "port 2")}, 2},
		{"one twice", []*episode{at("a", 0, "port 1"), at("a", 5, "port 2")}, 0},
		{"too far apart", []*episode{at("a", 0, "port 1"), at("b", 61, "port 2")}, 0},
		{"different", []*episode{at("a", 0, "no zod"), at("b", 1, "no left-pad")}, 0},
		{"the densest hour", []*episode{at("a", 0, "x"), at("b", 50, "x"), at("c", 90, "x"), at("d", 100, "x")}, 3},
	} {
		got := 0
		if found := patternsOf(c.list); len(found) > 0 {
			got = found[0].sandboxes
		}
		if got != c.want {
			t.Errorf("%s: %d sandboxes, want %d", c.name, got, c.want)
		}
	}
}
