package healer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

func TestTrackedFileThatIsMissingIsPutBack(t *testing.T) {
	for _, from := range []string{"git", "the last good checkpoint"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				id := r.sandbox("api", map[string]string{"app.js": "ok", "src/routes.js": "routes", "other.js": "other"})
				b := r.box(id)
				r.works = func(files map[string]string) error {
					if files["src/routes.js"] == "" {
						return errors.New("Error: Cannot find module './routes'")
					}
					return nil
				}
				if from != "git" {
					b.head = nil
				}
				r.start()
				time.Sleep(2 * time.Minute) // a good checkpoint
				synctest.Wait()
				b.remove("src/routes.js")
				b.remove("other.js") // nobody asks for it
				b.put("app.js", "ok, edited")
				r.log[id] = "Error: Cannot find module './routes'"
				run := r.heal(id)
				if run.Outcome != engine.Healed || run.FixedBy != "put back" {
					t.Errorf("run ended %q by %q: %s", run.Outcome, run.FixedBy, run.Summary)
				}
				if got, _ := b.file("src/routes.js"); got != "routes" {
					t.Errorf("routes.js is %q", got)
				}
				if _, ok := b.file("other.js"); ok {
					t.Error("a file that nobody asked for came back")
				}
				if got, _ := b.file("app.js"); got != "ok, edited" {
					t.Errorf("app.js is %q", got)
				}
				if from == "git" && (len(b.commits) != 0 || run.NotCommitted != "") {
					t.Errorf("commits %+v, not committed %q; the file is as it was committed", b.commits, run.NotCommitted)
				}
			})
		})
	}
}

func TestPortOfAStrangerIsLeftToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		r.sandbox("neighbour", nil)
		r.update(func(tx *store.Tx) error {
			procs, err := tx.LiveProcesses()
			if err != nil {
				return err
			}
			for _, p := range procs {
				if p.Sandbox != id {
					p.Port = 5000 // the first that would be free
				}
				err = errors.Join(err, tx.PutProcess(p))
			}
			return err
		})
		r.box(id).holder = driver.Holder{Held: true, PID: 9, Name: "nginx"}
		r.start()
		run := r.heal(id)
		p := view(r, func(tx *store.Tx) (engine.Process, error) { return tx.Process(procOf(id)) })
		if run.FixedBy != "another port" || p.Port != 5001 {
			t.Errorf("fixed by %q, port %d, want another port: 5001", run.FixedBy, p.Port)
		}
	})
}

func TestStaleHolderOfThePortIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		r.box(id).holder = driver.Holder{Held: true, Own: true, PID: 77, Name: "node"}
		r.start()
		run := r.heal(id)
		if run.FixedBy != "kill stray" || r.box(id).strays != 1 {
			t.Errorf("fixed by %q, killed %d times", run.FixedBy, r.box(id).strays)
		}
	})
}

func TestExitDuringVerificationIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		r.change(id, func(sb *engine.Sandbox) { sb.Spec.Heal.Attempts = 0 })
		starts := 0
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error {
			if starts++; starts > 1 {
				return errors.New("no more")
			}
			if err := r.restart(ctx, id); err != nil {
				return err
			}
			time.AfterFunc(7*time.Second, func() { r.crash(id) })
			return nil
		}
		r.start()
		run := r.heal(id)
		if run.Outcome != engine.NotHealed || !strings.Contains(run.Summary, "healthy at first, then app exited again: exit 1") {
			t.Errorf("run ended %q: %s", run.Outcome, run.Summary)
		}
	})
}

func TestExitBetweenVerificationAndTheEndIsASignalOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.model.will(
			call("read", in{"path": "app.js"}),
			call("edit", in{"path": "app.js", "old": "bug()", "new": "fine()"}),
			call("restart", in{}),
			say("Fix: done."),
		)
		r.box(id).onCommit = func() { r.crash(id) }
		r.start()
		r.crash(id)
		r.await("two runs, the second by restart", func(tx *store.Tx) (bool, error) {
			runs, err := tx.RunsOf(id, time.Time{})
			return len(runs) == 2 && runs[1].FixedBy == "restart", err
		})
		r.awaitHealth(id, engine.Ready)
	})
}

func TestAppThatRunsAndNeverAnswersIsNotHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		r.h.Model = nil
		r.sick[id] = true
		began := time.Now()
		r.start()
		run := r.heal(id)
		if run.Outcome != engine.NotHealed || !strings.Contains(run.Summary, "not healthy within 20s: GET /health: 500") {
			t.Errorf("run ended %q: %s", run.Outcome, run.Summary)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestProcessBesideTheAppIsStartedAgainToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		watcher := engine.Process{
			ID: "ps-watcherabc", Sandbox: id, Name: "watcher", Kind: engine.Supervised, Wanted: engine.WantRunning, State: engine.ProcessFailed,
		}
		r.update(func(tx *store.Tx) error {
			if err := tx.PutProcess(watcher); err != nil {
				return err
			}
			_, err := tx.RaiseSignal(engine.Signal{Sandbox: id, Process: watcher.ID, Kind: engine.ExitSignal, Observed: "watcher: exit 1 twice"})
			return err
		})
		r.h.Restart = func(ctx context.Context, id engine.SandboxID) error { // the supervisor sees the watcher's row
			err := r.store.Update(ctx, func(tx *store.Tx) error {
				p, err := tx.Process(watcher.ID)
				if err != nil || p.Wanted != engine.WantRestart {
					return err
				}
				p.Wanted, p.State, p.Started = engine.WantRunning, engine.ProcessRunning, tx.Now
				return tx.PutProcess(p)
			})
			return errors.Join(err, r.restart(ctx, id))
		}
		r.start()
		r.awaitHealth(id, engine.Healing)
		if run := r.ended(id); run.Outcome != engine.Healed {
			t.Errorf("run ended %q: %s", run.Outcome, run.Summary)
		}
	})
}

func TestDependenciesAreInstalledAgainAfterARollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) { sb.Spec.Heal.Attempts = 1 })
		b := r.box(id)
		installs := 0
		b.commands["npm ci"] = func(context.Context, *box) (string, int) { installs++; return "ok", 0 }
		b.commands["npm rm express"] = func(_ context.Context, b *box) (string, int) { b.put("package.json", "{}"); return "", 0 }
		r.model.will(call("run", in{"command": "npm rm express"}), say("no idea"))
		r.start()
		r.heal(id)
		if _, ok := b.file("package.json"); ok || installs != 1 {
			t.Errorf("package.json is there: %v; installed %d times, want once after the rollback", ok, installs)
		}
	})
}

func TestSecretsAreInNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.change(id, func(sb *engine.Sandbox) { sb.Spec.Heal.Attempts = 1 })
		r.h.Redact = func(s string) string { return strings.ReplaceAll(s, "sk-secret", "[hidden]") }
		r.box(id).commands["env sk-secret"] = func(context.Context, *box) (string, int) { return "KEY=sk-secret", 0 }
		r.model.will(
			call("run", in{"command": "env sk-secret"}),
			call("write", in{"path": "x.txt", "content": "sk-secret"}),
			say("Cause: sk-secret.\nFix: sk-secret"),
		)
		r.start()
		run := r.heal(id)
		for ev, err := range r.store.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if text := eventText(ev); strings.Contains(text, "sk-secret") {
				t.Errorf("#%d has it: %s", ev.Seq, text)
			}
			if b, ok := ev.Body.(engine.HealFinished); ok && b.Run.ID == run.ID {
				break
			}
		}
		for i, req := range r.model.requests() {
			for _, m := range req.Messages {
				for _, res := range m.Results {
					if strings.Contains(res.Text, "sk-secret") {
						t.Errorf("request %d has it in a result: %s", i, res.Text)
					}
				}
			}
		}
	})
}

// eventText is all that an event says.
func eventText(ev engine.Event) string {
	b, err := json.Marshal(ev.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
