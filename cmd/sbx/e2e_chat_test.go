package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// TestAChatRepairsWhatTheHealerGaveUp is a whole conversation through the real
// binary: over the socket, with a model over HTTP, and an engine that is killed
// in the middle of an answer.
func TestAChatRepairsWhatTheHealerGaveUp(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3", "git")
	hangs := agenttest.Turn{Last: "hang please", Text: "Let me think about this for a while, and then for a while longer", Fail: &agenttest.Failure{Kind: agenttest.Silence, After: 7}}
	script := agenttest.Script{Turns: append([]agenttest.Turn{
		{When: "needs repair", Text: "Cause: unknown\nFix: nothing", Repeat: true},
		hangs,
		{Last: "go on", Text: "Here I am again."},
		{When: "hello again", Text: "We spoke of a colon."},
	}, repair()...)}
	w := newWorld(t, &script)
	source := w.patient()
	w.ok("create", "--from", source, "--name", "shop")
	w.ok("exec", "shop", "--", infection)
	if r := w.run("restart", "shop"); r.code != exitBroken {
		t.Fatalf("the healer was to give up: exit %d\n%s%s", r.code, r.out, r.err)
	}

	out := w.ok("chat", "shop", "please put it right")
	for _, want := range []string{"The colon is missing.", "> edit server.py", "+1 -1", "> restart", "healthy", "a colon was missing"} {
		if !strings.Contains(out, want) {
			t.Errorf("the answer lacks %q:\n%s", want, out)
		}
	}
	w.becomes("shop", engine.Ready)

	cmd := w.command("chat", "shop", "hang please", "--json")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(pipe)
	for m := (engine.Message{}); m.Kind != engine.MessageAnswer; {
		if err := dec.Decode(&m); err != nil {
			t.Fatalf("no answer began: %v", err)
		}
	}
	w.stopEngine(syscall.SIGKILL)
	_ = cmd.Process.Kill() // it would wait for an engine that nobody starts
	_ = cmd.Wait()
	w.ok("start", "shop") // another engine

	history := w.ok("chat", "shop", "--history")
	for _, want := range []string{"please put it right", "Let me", "interrupted: the engine stopped in it"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
	if out := w.ok("chat", "shop", "go on"); !strings.Contains(out, "Here I am again.") {
		t.Errorf("after a restart: %s", out)
	}
	if out := w.ok("chat", "shop", "hello again"); !strings.Contains(out, "We spoke of a colon.") {
		t.Errorf("the next turn: %s", out)
	}
}

// becomes waits until a sandbox has a health.
func (w *world) becomes(name string, want engine.Health) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		s := w.shown(name)
		if s.Sandbox.Health == want {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s is %s (%s), want %s", name, s.Sandbox.Health, s.Sandbox.Reason, want)
		}
	}
}
