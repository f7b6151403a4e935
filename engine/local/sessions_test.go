package local

import (
	"context"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/server"
	"sbx/store"
)

// overAPI is an engine, and a client of it over HTTP and WebSocket.
func overAPI(t *testing.T, cfg Config) (*Engine, *client.Client) {
	t.Helper()
	e := open(t, cfg)
	srv := &server.Server{
		Engine: e, Version: "test", Metrics: e.WriteMetrics,
		Authenticate: func(context.Context, string) (engine.Actor, engine.Role, error) {
			return engine.Actor{Kind: engine.ActorClient, Name: "platform"}, engine.Operator, nil
		},
	}
	h := httptest.NewServer(srv.Handler())
	t.Cleanup(h.Close)
	t.Cleanup(func() { _ = srv.Shutdown(context.Background()) }) // hangs up; nothing to wait for
	c, err := client.Dial(t.Context(), client.Config{URL: h.URL, Token: "any"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return e, c
}

func session(t *testing.T, e engine.Engine, origin engine.Origin) engine.Session {
	t.Helper()
	s, err := engine.OpenSession(t.Context(), e, engine.CreateSession{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// says runs a command that must end with its result, within a minute.
func says(t *testing.T, e engine.Engine, id engine.SessionID, remembered engine.SandboxID, command, want string) engine.SessionExec {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end, err := engine.ExecInSession(ctx, e, id, remembered, engine.Command{Shell: command}, engine.SpawnOptions{})
	if err != nil || end.Terminated != "" || end.Stdout != want {
		t.Fatalf("%q: %+v, %v, want %q", command, end, err, want)
	}
	return end
}

// working begins a command that never ends, and returns where its end comes.
func working(t *testing.T, e engine.Engine, id engine.SessionID) <-chan engine.SessionExec {
	t.Helper()
	began, ended := make(chan struct{}, 1), make(chan engine.SessionExec, 1)
	go func() {
		end, err := engine.ExecInSession(t.Context(), e, id, "", engine.Command{Shell: "echo began; sleep 3600"},
			engine.SpawnOptions{OnStdout: func(engine.LogLine) { began <- struct{}{} }})
		if err != nil {
			t.Errorf("the command that goes on: %v", err)
		}
		ended <- end
	}()
	arrives(t, "the command to begin", began)
	return ended
}

func arrives[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}

// TestAConversationThatIsAbortedGoesOn: the client aborts what runs, and its
// next message has a sandbox and a result. Another's goes on undisturbed.
func TestAConversationThatIsAbortedGoesOn(t *testing.T) {
	t.Parallel()
	_, c := overAPI(t, config(t, t.TempDir(), ""))
	origin := source(t)
	mine, theirs := session(t, c, origin), session(t, c, origin)
	says(t, c, mine.ID, "", "echo draft > note; echo ok", "ok\n")
	other := working(t, c, theirs.ID)
	ended := working(t, c, mine.ID)
	if _, err := c.Do(t.Context(), engine.NewAction(engine.PauseSession{Session: mine.ID, Abort: true})); err != nil {
		t.Fatal(err)
	}
	if end := arrives(t, "the aborted command to end", ended); end.Terminated != engine.EndedByAbort || end.Sandbox != mine.Sandbox {
		t.Errorf("the aborted command ended with %+v", end)
	}
	says(t, c, mine.ID, mine.Sandbox, "cat note", "draft\n")
	select {
	case end := <-other:
		t.Errorf("another's command ended with %+v", end)
	default:
	}
	snap, err := c.Snapshot(t.Context())
	if err != nil || snap.Sandboxes[theirs.Sandbox].State != engine.Running || !snap.Sessions[theirs.ID].Live {
		t.Errorf("another's sandbox is %s, its session %+v, %v", snap.Sandboxes[theirs.Sandbox].State, snap.Sessions[theirs.ID], err)
	}
	if _, err := c.Do(t.Context(), engine.NewAction(engine.EndSession{Session: theirs.ID})); err != nil {
		t.Error(err)
	}
	if end := arrives(t, "another's command to end", other); end.Terminated != engine.EndedByEnd {
		t.Errorf("another's command ended with %+v", end)
	}
}

// TestAConversationThatIsSwitchedHasItsOwn: a client that goes from one
// conversation to the other still holds the first one's sandbox.
func TestAConversationThatIsSwitchedHasItsOwn(t *testing.T) {
	t.Parallel()
	_, c := overAPI(t, config(t, t.TempDir(), ""))
	origin := source(t)
	first, second := session(t, c, origin), session(t, c, origin)
	says(t, c, first.ID, first.Sandbox, "echo first > who; echo ok", "ok\n")
	says(t, c, second.ID, first.Sandbox, "test -e who || echo none", "none\n")
	says(t, c, second.ID, first.Sandbox, "echo second > who; echo ok", "ok\n")
	if end := says(t, c, first.ID, second.Sandbox, "cat who", "first\n"); end.Sandbox != first.Sandbox {
		t.Errorf("back in the first it ran in %s, want %s", end.Sandbox, first.Sandbox)
	}
}

// TestAConversationWithAStaleIDHasAnotherSandbox: what the client remembers was
// removed, or never was.
func TestAConversationWithAStaleIDHasAnotherSandbox(t *testing.T) {
	t.Parallel()
	_, c := overAPI(t, config(t, t.TempDir(), ""))
	s := session(t, c, source(t))
	says(t, c, s.ID, "", "echo ok", "ok\n")
	from, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := working(t, c, s.ID)
	if _, err := engine.Destroy(t.Context(), c, s.Sandbox); err != nil {
		t.Fatal(err)
	}
	if end := arrives(t, "the command in a removed sandbox to end", ended); end.Terminated != engine.EndedByRemoval {
		t.Errorf("it ended with %+v", end)
	}
	end := says(t, c, s.ID, s.Sandbox, "echo again", "again\n")
	if end.Sandbox == s.Sandbox {
		t.Error("it ran in the sandbox that was removed")
	}
	var told []engine.SessionEvent
	for ev, err := range engine.SessionEvents(t.Context(), c, s.ID, from.Position) {
		if err != nil {
			t.Fatal(err)
		}
		if told = append(told, ev); len(told) == 2 {
			break
		}
	}
	if told[0].Kind != engine.SandboxTerminated || told[0].Sandbox != s.Sandbox || told[0].Reason != engine.EndedByRemoval ||
		told[1].Kind != engine.SandboxActive || told[1].Sandbox != end.Sandbox {
		t.Errorf("its clients were told %+v", told)
	}
}

// TestAWorkspaceDeletedBehindTheEnginesBackIsNoticed: the session's next call
// gets a sandbox that works, and what nobody can restore is said.
func TestAWorkspaceDeletedBehindTheEnginesBackIsNoticed(t *testing.T) {
	t.Parallel()
	cfg := config(t, t.TempDir(), "")
	e := open(t, cfg)
	origin := source(t)
	s := session(t, e, origin)
	says(t, e, s.ID, "", "echo ok", "ok\n")
	lose := func(id engine.SandboxID) {
		box, err := cfg.Driver.Attach(t.Context(), id)
		if err == nil {
			err = os.RemoveAll(box.Location())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lose(s.Sandbox)
	says(t, e, s.ID, s.Sandbox, "test -e sbx.toml && echo whole", "whole\n")

	kept := ready(t, e, engine.CreateSandbox{Name: "kept", Origin: origin, Keep: true})
	if _, err := engine.StopAll(t.Context(), e, kept.ID); err != nil {
		t.Fatal(err)
	}
	until(t, e, kept.ID, "be cold", func(sb engine.Sandbox) bool { return sb.State == engine.Cold })
	lose(kept.ID)
	if _, err := engine.Start(t.Context(), e, kept.ID); err != nil {
		t.Fatal(err)
	}
	sb := until(t, e, kept.ID, "be said lost", func(sb engine.Sandbox) bool { return sb.State == engine.Cold && sb.Wanted == engine.Down })
	if !contains(sb.Reason, "its workspace is gone") {
		t.Errorf("the reason is %q", sb.Reason)
	}
}

func contains(s, part string) bool {
	for i := range len(s) - len(part) + 1 {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// TestLookingNeitherWakesNorExtends: lists, logs, files, history and events
// leave a cold sandbox cold, and an idle one as idle as it was.
func TestLookingNeitherWakesNorExtends(t *testing.T) {
	t.Parallel()
	e := open(t, config(t, t.TempDir(), ""))
	sb := ready(t, e, engine.CreateSandbox{Name: "looked at", Origin: source(t), Keep: true})
	lookAt := func() {
		ctx := t.Context()
		_, err1 := e.Snapshot(ctx)
		_, err2 := e.ListProcesses(ctx, sb.ID)
		_, err3 := e.ReadDir(ctx, sb.ID, "")
		_, err4 := e.Checkpoints(ctx, sb.ID)
		for _, err := range []error{err1, err2, err3, err4} {
			if err != nil {
				t.Error(err)
			}
		}
		for _, err := range e.Logs(ctx, engine.LogQuery{Sandbox: sb.ID}) {
			if err != nil {
				t.Error(err)
			}
		}
		for _, err := range e.Heals(ctx, engine.HealQuery{Sandbox: sb.ID}) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	was := until(t, e, sb.ID, "be ready", func(sb engine.Sandbox) bool { return sb.Health == engine.Ready })
	lookAt()
	if now := until(t, e, sb.ID, "be there", func(engine.Sandbox) bool { return true }); !now.Active.Equal(was.Active) {
		t.Errorf("looking moved its last use from %s to %s", was.Active, now.Active)
	}
	if _, err := engine.StopAll(t.Context(), e, sb.ID); err != nil {
		t.Fatal(err)
	}
	cold := until(t, e, sb.ID, "be cold", func(sb engine.Sandbox) bool { return sb.State == engine.Cold })
	lookAt()
	if now := until(t, e, sb.ID, "be there", func(engine.Sandbox) bool { return true }); now.State != engine.Cold || !now.Active.Equal(cold.Active) {
		t.Errorf("looking made it %s", now.State)
	}
}

// TestTwentyCreatesAtCapacityThreeGiveThree, many times over, for sandboxes
// that are kept and for sessions that work.
func TestTwentyCreatesAtCapacityThreeGiveThree(t *testing.T) {
	t.Parallel()
	cfg := config(t, t.TempDir(), "")
	cfg.MaxSandboxes = 3
	e := open(t, cfg)
	origin := source(t)
	for round := range 15 {
		var wg sync.WaitGroup
		made := make([]engine.SandboxID, 20)
		codes := make([]engine.Code, 20)
		for i := range made {
			wg.Go(func() {
				r, err := e.Do(t.Context(), engine.NewAction(engine.CreateSandbox{Origin: origin, Keep: true}))
				made[i], codes[i] = r.Sandbox, engine.AsCode(err)
			})
		}
		wg.Wait()
		got := map[engine.Code]int{}
		for _, c := range codes {
			got[c]++
		}
		if got[""] != 3 || got[engine.Exhausted] != 17 {
			t.Fatalf("round %d: 20 creates at capacity 3 gave %v, want 3 made and 17 exhausted", round, got)
		}
		for _, id := range made {
			if id == "" {
				continue
			}
			if _, err := engine.Destroy(t.Context(), e, id); err != nil {
				t.Fatal(err)
			}
			if err := engine.Until(t.Context(), e, time.Minute, func(s *engine.Snapshot) bool { return s.Sandboxes[id].ID == "" }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestASpecThatAsksForMoreThanTheHostHasIsRefused(t *testing.T) {
	t.Parallel()
	e := open(t, config(t, t.TempDir(), ""))
	for _, limits := range []string{"cpu = 1000.0", "memory = \"900TiB\""} {
		_, err := engine.Create(t.Context(), e, engine.CreateSandbox{Origin: source(t), SpecTOML: "[app]\ncommand = \"true\"\n[limits]\n" + limits + "\n"})
		if engine.AsCode(err) != engine.Invalid || engine.Hint(err) == "" {
			t.Errorf("%s: %v, want it refused with what to ask for", limits, err)
		}
	}
}

// TestASessionClaimsAWarmSandboxWithItsOwnEnvironment: and the pool makes
// another.
func TestASessionClaimsAWarmSandboxWithItsOwnEnvironment(t *testing.T) {
	t.Parallel()
	cfg := config(t, t.TempDir(), "")
	cfg.Pool.Warm = map[string]int{"static": 1}
	e := open(t, cfg)
	warm := func() (id engine.SandboxID) {
		err := engine.Until(t.Context(), e, time.Minute, func(s *engine.Snapshot) bool {
			for _, sb := range s.Sandboxes {
				if sb.State == engine.Warm {
					id = sb.ID
				}
			}
			return id != ""
		})
		if err != nil {
			t.Fatal("nothing is warm: ", err)
		}
		return id
	}
	first := warm()
	s, err := engine.OpenSession(t.Context(), e, engine.CreateSession{
		Owner: "dana", Origin: engine.Origin{Kind: engine.FromTemplate, Ref: "static"}, Env: map[string]string{"WHO": "dana"},
	})
	if err != nil || s.Sandbox != first || s.Path != engine.PathPreWarm || !s.Live {
		t.Fatalf("the session is %+v, %v, want it to have claimed %s", s, err, first)
	}
	says(t, e, s.ID, s.Sandbox, "echo $WHO", "dana\n")
	if next := warm(); next == first {
		t.Error("the claimed one is still warm")
	}
	err = e.store.View(t.Context(), func(tx *store.Tx) error {
		l, err := e.pool.Levels(tx)
		if l.PreWarmHits != 1 || l.ResumeWarmHits != 1 {
			t.Errorf("the counters are %+v", l.PoolCounters)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
