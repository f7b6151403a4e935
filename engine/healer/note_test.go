package healer

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/store"
)

// told counts how often a text stands in a conversation.
func told(t agent.Transcript, text string) (n int) {
	for _, m := range t.Messages {
		n += strings.Count(m.Text, text)
	}
	return n
}

func TestANoteIsGivenOncePerConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }
		id := r.sandbox("api", broken)
		dana := engine.Actor{Kind: engine.ActorOperator, Name: "dana"}
		note := func(text string) {
			r.update(func(tx *store.Tx) error {
				_, err := Note(tx, id, dana, text, r.h.Redact)
				return err
			})
		}
		note("before: the password is hunter2")
		r.model.will(
			call("read", in{"path": "app.js"}),
			do(func() { note("meanwhile: look at line 1") }, call("read", in{"path": "README.md"})),
			say("I give up."), // the end of the first attempt
			say("I give up."), say("I give up."),
		)
		r.start()
		r.heal(id)
		asked := r.model.requests()
		if len(asked) != 5 {
			t.Fatalf("%d requests, want 5", len(asked))
		}
		for n, want := range [][2]int{{1, 0}, {1, 0}, {1, 1}, {1, 1}, {1, 1}} {
			before, meanwhile := told(asked[n], "before: the password is [redacted]"), told(asked[n], "meanwhile: look at line 1")
			if before != want[0] || meanwhile != want[1] {
				t.Errorf("request %d has the notes %d and %d times, want %v", n+1, before, meanwhile, want)
			}
			if told(asked[n], "hunter2") > 0 {
				t.Errorf("request %d has the secret", n+1)
			}
		}
	})
}

func TestWhoGivesASandboxBackForgivesItsHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		stop := r.start()
		for range 3 { // a restart is all that it needs
			if run := r.heal(id); run.Outcome != engine.Healed {
				t.Fatalf("the run: %s (%s)", run.Outcome, run.Summary)
			}
			stop() // counted across engines
			stop = r.start()
		}
		r.crash(id)
		r.awaitHealth(id, engine.Broken)
		sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
		if !strings.Contains(sb.Reason, "flapping") {
			t.Fatalf("broken because: %s, want it quarantined", sb.Reason)
		}
		time.Sleep(time.Minute)
		r.update(func(tx *store.Tx) error {
			if err := Resume(tx, id); err != nil {
				return err
			}
			_, _, err := Open(tx, Policy{}, id, engine.Actor{Kind: engine.ActorOperator, Name: "dana"})
			return err
		})
		r.awaitHealth(id, engine.Ready)
		if run := r.heal(id); run.Outcome != engine.Healed {
			t.Errorf("the next crash: %s (%s), want the loop to heal it again", run.Outcome, run.Summary)
		}
	})
}

func TestMaintenanceTakesASandboxOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		dana := engine.Actor{Kind: engine.ActorOperator, Name: "dana"}
		r.model.will(
			call("read", in{"path": "app.js"}), call("edit", in{"path": "app.js", "old": "bug()", "new": "bug(1)"}),
			do(func() {
				r.change(id, func(sb *engine.Sandbox) { sb.Maintenance = engine.Maintenance{On: true, By: "dana"} })
				r.update(func(tx *store.Tx) error {
					_, err := TakeOver(tx, id, dana)
					return err
				})
			}, call("run", in{"command": "sleep 1d", "timeout": 600})),
		)
		r.start()
		run := r.heal(id)
		if run.Outcome != engine.Cancelled || !strings.Contains(run.Summary, "dana") {
			t.Errorf("the run: %s (%s), want it cut by who took over", run.Outcome, run.Summary)
		}
		if got, _ := r.box(id).file("app.js"); got != "bug()" {
			t.Errorf("the file is %q, want it as it was", got)
		}
		time.Sleep(10 * time.Minute)
		if _, open := openRunOf(r, id); open {
			t.Error("it is healed although it is in maintenance")
		}
	})
}

func openRunOf(r *rig, id engine.SandboxID) (run engine.HealRun, open bool) {
	r.t.Helper()
	run = view(r, func(tx *store.Tx) (engine.HealRun, error) {
		got, is, err := tx.OpenRun(id)
		open = is
		return got, err
	})
	return run, open
}
