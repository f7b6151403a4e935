package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sbx/engine/agent/agenttest"
)

// TestExitCodes is the table of exit codes, each of a command that must have it.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3", "git")
	turn := func(name string, t agenttest.Turn) agenttest.Turn {
		t.When = "The sandbox " + name + " needs repair"
		return always(t)
	}
	w := newWorld(t, &agenttest.Script{Turns: []agenttest.Turn{
		turn("refused", status(401, "authentication_error", "no")),
		turn("dear", agenttest.Turn{Calls: []agenttest.Call{readFile()}, Usage: &agenttest.Usage{Input: 6_000_000, Output: 1}}),
		turn("silent", stream(agenttest.Silence, 0)),
	}}, "SBX_POOL_MAX_SANDBOXES=4", "SBX_HEAL_INCIDENT_SIZE=1000")
	source := w.patient()
	for _, name := range []string{"fine", "refused", "dear", "silent"} {
		w.ok("create", "--from", source, "--name", name)
	}
	for _, name := range []string{"refused", "dear"} {
		w.ok("exec", name, "--", infection)
		w.run("restart", name) // the loop heals it first; by hand comes after
	}
	w.ok("exec", "silent", "--", infection)
	restart := w.start(nil, "restart", "silent")
	w.eventually("the silent model is asked", func() bool { return w.asked("silent") > 0 })

	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"ls"}},
		{0, []string{"heal", "fine"}},
		{exitFailed, []string{"create", "--from", source, "--name", "fifth"}},
		{exitUsage, []string{"ls", "--nonsense"}},
		{exitUsage, []string{"rm", "fine"}},
		{exitBroken, []string{"heal", "refused"}},
		{exitBroken, []string{"restart", "refused"}},
		{exitNotFound, []string{"show", "nobody"}},
		{exitNotFound, []string{"heal", "nobody"}},
		{exitBusy, []string{"heal", "silent"}},
		{exitBudget, []string{"heal", "dear"}},
		{exitUnreachable, []string{"ls", "--engine", "http://127.0.0.1:1"}},
		{exitRefused, []string{"serve", "--listen", "0.0.0.0:0"}},
		{exitTimeout, []string{"exec", "fine", "--timeout", "200ms", "--", "sleep 60"}},
		{17, []string{"exec", "fine", "--", "exit 17"}},
		{128 + 15, []string{"exec", "fine", "--", "kill -TERM $$"}},
	} {
		if r := w.run(c.args...); r.code != c.code {
			t.Errorf("sbx %s: exit %d, want %d\n%s%s", strings.Join(c.args, " "), r.code, c.code, r.out, r.err)
		}
	}
	if code := restart.interrupt(w); code != exitInterrupted {
		t.Errorf("an interrupted restart: exit %d, want %d", code, exitInterrupted)
	}
	w.ok("heal", "--cancel", "silent")
	w.waitingExits()
}

// waitingExits are the codes of commands that wait, and are cut by time or by
// Ctrl-C.
func (w *world) waitingExits() {
	t := w.t
	t.Helper()
	var sb showJSON
	w.eventually("nothing is being healed", func() bool {
		sb = w.shown("silent")
		return sb.Run != nil && !sb.Run.Open()
	})
	if r := w.run("heal", "silent", "--timeout", "1s"); r.code != exitTimeout || !strings.Contains(r.err, "timed out") {
		t.Errorf("heal --timeout: exit %d, want %d (%s: %s)\n%s%s", r.code, exitTimeout, sb.Sandbox.Health, sb.Sandbox.Reason, r.out, r.err)
	}
	for _, args := range [][]string{
		{"logs", "fine", "--follow"}, {"logs", "--healer", "--follow", "--json"}, {"events", "--follow"}, {"exec", "fine", "--", "echo up; sleep 60"},
	} {
		b := w.start(nil, args...)
		if args[0] == "logs" && args[1] == "fine" {
			w.eventually("the log is followed", func() bool { return w.run("exec", "fine", "--", "true").code == 0 })
		} else {
			w.eventually("it is at work", func() bool { return len(b.out.now()) > 0 })
		}
		if code := b.interrupt(w); code != exitInterrupted {
			t.Errorf("sbx %s, interrupted: exit %d, want %d", strings.Join(args, " "), code, exitInterrupted)
		}
	}
	var st statusJSON
	if err := json.Unmarshal([]byte(w.ok("status", "--json")), &st); err != nil || !st.Running {
		t.Errorf("the engine did not live through it: %v %+v", err, st)
	}
}
