package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// planned is the run that the last line of a plan's or an apply's JSON tells.
func (w *world) planned(r result) engine.HealRun {
	w.t.Helper()
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var ev engine.Event
	err := json.Unmarshal([]byte(lines[len(lines)-1]), &ev)
	end, ok := ev.Body.(engine.HealFinished)
	if err != nil || !ok {
		w.t.Fatalf("exit %d, and last came %T (%v):\n%s%s", r.code, ev.Body, err, r.out, r.err)
	}
	return end.Run
}

// TestAPlanIsShownAndThenApplied goes from a broken app to a plan that changes
// nothing, to its refusal while a file has changed, to the heal.
func TestAPlanIsShownAndThenApplied(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3", "git")
	w := newWorld(t, &agenttest.Script{Turns: []agenttest.Turn{
		{Text: "Cause: unknown\nFix: nothing, no idea"}, // the heal's three attempts
		{Text: "Cause: unknown\nFix: nothing, no idea"},
		{Text: "Cause: unknown\nFix: nothing, no idea"},
		{Text: "Cause: unknown\nFix: nothing, no idea"}, // the first plan
		{Calls: []agenttest.Call{readFile(), call("run", map[string]string{"command": "touch escaped"}), edit(broken, fixed)}},
		{Text: "Cause: a colon was missing\nFix: put it back"},
	}})
	w.ok("create", "--from", w.patient(), "--name", "api")
	if out := w.ok("heal", "--plan", "api"); !strings.Contains(out, "healthy") {
		t.Errorf("a plan for a healthy sandbox says %q", out)
	}
	if r := w.run("heal", "--apply", "api"); r.code != exitNotFound || !strings.Contains(r.err, "sbx heal --plan api") {
		t.Errorf("without a plan: exit %d, %s", r.code, r.err)
	}
	w.ok("exec", "api", "--", infection)
	if r := w.run("restart", "api"); r.code != exitBroken {
		t.Fatalf("restart: exit %d\n%s%s", r.code, r.out, r.err)
	}
	before, files := w.shown("api"), w.files("api")

	if r := w.run("heal", "--plan", "api"); r.code != exitBroken || !strings.Contains(r.out, "No plan: the model would change nothing") {
		t.Errorf("no plan: exit %d\n%s%s", r.code, r.out, r.err)
	}
	r := w.run("heal", "--plan", "api")
	for _, want := range []string{"a colon was missing", "would: change server.py; restart the app", "+    def do_GET(self):", "sbx heal --apply api"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("plan: exit %d, without %q\n%s%s", r.code, want, r.out, r.err)
		}
	}
	after := w.shown("api")
	if after.Run == nil || after.Run.Outcome != engine.Planned || after.Sandbox.Health != engine.Broken {
		t.Errorf("after the plan: %+v", after)
	}
	if was, is := before.Processes[0], after.Processes[0]; was.Starts != is.Starts || !was.Started.Equal(is.Started) { // it may still have been about to exit
		t.Errorf("the app was touched: %+v, was %+v", is, was)
	}
	if now := w.files("api"); now != files {
		t.Errorf("the files are\n%s\nwere\n%s", now, files)
	}

	w.ok("exec", "api", "--", "echo more >> notes.md")
	if r := w.run("heal", "--apply", "api"); r.code != exitBusy || !strings.Contains(r.err, "moved on since the plan was made: notes.md") {
		t.Errorf("moved on: exit %d, %s", r.code, r.err)
	}
	w.ok("exec", "api", "--", "sed -i '$d' notes.md")
	r = w.run("heal", "--apply", "api", "--json")
	if run := w.planned(r); r.code != 0 || run.Outcome != engine.Healed || run.FixedBy != "plan" || run.Applies != after.Run.ID {
		t.Errorf("apply: exit %d, %+v\n%s", r.code, run, r.err)
	}
	if now := w.shown("api"); now.Sandbox.Health != engine.Ready {
		t.Errorf("after it: %+v", now.Sandbox)
	}
	if out := w.ok("exec", "api", "--", "cat server.py notes.md; ls"); !strings.Contains(out, fixed) || strings.Contains(out, "escaped") {
		t.Errorf("the files are\n%s", out)
	}
}
