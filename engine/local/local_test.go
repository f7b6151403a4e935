package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/enginetest"
	"sbx/engine/healer"
	"sbx/engine/server"
	"sbx/store"
)

func TestLocalIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Harness {
		return enginetest.Harness{Engine: open(t, config(t, t.TempDir(), "")), Origin: source(t)}
	})
}

func TestAClientOfALocalIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Harness {
		e := open(t, config(t, t.TempDir(), ""))
		srv := &server.Server{Engine: e, Version: "test", Authenticate: func(_ context.Context, token string) (engine.Actor, engine.Role, error) {
			if token != "right" {
				return engine.Actor{}, "", engine.Errorf(engine.Unauthorized, "no such token")
			}
			return engine.Actor{Kind: engine.ActorClient, Name: "suite"}, engine.Admin, nil
		}}
		h := httptest.NewServer(srv.Handler())
		t.Cleanup(h.Close)
		t.Cleanup(func() { _ = srv.Shutdown(context.Background()) }) // hangs up; nothing to wait for
		c, err := client.Dial(t.Context(), client.Config{URL: h.URL, Token: "right"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return enginetest.Harness{Engine: c, Origin: source(t)}
	})
}

func TestCapacityIsReservedWithTheRow(t *testing.T) {
	cfg := config(t, t.TempDir(), "")
	cfg.MaxSandboxes = 3
	e := open(t, cfg)
	origin := source(t)
	var wg sync.WaitGroup
	codes := make([]engine.Code, 20)
	for i := range codes {
		wg.Go(func() {
			_, err := engine.Create(t.Context(), e, engine.CreateSandbox{Origin: origin, Keep: true})
			codes[i] = engine.AsCode(err)
		})
	}
	wg.Wait()
	slices.Sort(codes)
	if got := len(slices.Compact(slices.Clone(codes))); codes[2] != "" || codes[3] != engine.Exhausted || got != 2 {
		t.Errorf("20 creates at capacity 3 gave %v", codes)
	}
}

func TestASecondEngineIsToldWhoOwnsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	open(t, config(t, dir, ""))
	_, err := Open(t.Context(), config(t, dir, ""))
	var owned *store.OwnedError
	if !errors.As(err, &owned) || owned.PID != os.Getpid() {
		t.Errorf("got %v, want the owner's pid %d", err, os.Getpid())
	}
}

func TestWhatWasUpComesUpAgainAndWhatWasStoppedStaysDown(t *testing.T) {
	dir := t.TempDir()
	origin := source(t)
	e, err := Open(t.Context(), config(t, dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	up := ready(t, e, engine.CreateSandbox{Name: "up", Origin: origin, Keep: true})
	down := ready(t, e, engine.CreateSandbox{Name: "down", Origin: origin, Keep: true})
	if _, err := engine.StopAll(t.Context(), e, down.ID); err != nil {
		t.Fatal(err)
	}
	until(t, e, down.ID, "be cold", func(sb engine.Sandbox) bool { return sb.State == engine.Cold })
	port := portOf(t, e, up.ID)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/health", port)); err == nil {
		t.Error("the app outlived its engine")
	}
	look, err := Look(t.Context(), dir, "test", healer.Policy{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	s, err := look.Snapshot(t.Context())
	if err != nil || s.Sandboxes[up.ID].State != engine.Cold || s.Sandboxes[up.ID].Wanted != engine.Up {
		t.Errorf("without an engine: %+v, %v", s.Sandboxes[up.ID], err)
	}
	e = open(t, config(t, dir, ""))
	until(t, e, up.ID, "come up again", func(sb engine.Sandbox) bool { return sb.Health == engine.Ready })
	snap, err := e.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sb := snap.Sandboxes[down.ID]; sb.State != engine.Cold {
		t.Errorf("what an operator stopped is %s", sb.State)
	}
}

func portOf(t *testing.T, e engine.Engine, id engine.SandboxID) int {
	t.Helper()
	s, err := e.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.App(id).Port
}

func TestARefusalIsInTheAuditLogToo(t *testing.T) {
	e := open(t, config(t, t.TempDir(), ""))
	_, err := engine.Create(t.Context(), e, engine.CreateSandbox{Origin: engine.Origin{Kind: engine.FromTemplate, Ref: "nope"}})
	if err == nil {
		t.Fatal("an unknown template was taken")
	}
	for entry, err := range e.Audit(t.Context(), engine.AuditQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Kind == "sandbox.create" && entry.Result != "ok" && entry.By.Name == "tester" {
			return
		}
	}
	t.Error("the refusal is not there")
}

func TestARefusalIsInTheAuditLogEvenIfWhoAskedHangsUp(t *testing.T) {
	cfg := config(t, t.TempDir(), "")
	ctx, hangUp := context.WithCancel(t.Context())
	cfg.Redact = func(s string) string {
		hangUp()
		return s
	}
	e := open(t, cfg)
	if _, err := e.Do(ctx, engine.NewAction(engine.StopSandbox{Sandbox: "sb-nosuchone"})); engine.AsCode(err) != engine.NotFound {
		t.Fatalf("got %v", err)
	}
	for entry, err := range e.Audit(t.Context(), engine.AuditQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Subject == "sb-nosuchone" && entry.Result != "ok" {
			return
		}
	}
	t.Error("the refusal is not there")
}

func TestRemovingLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	e := open(t, config(t, dir, ""))
	sb := ready(t, e, engine.CreateSandbox{Origin: source(t), Keep: true})
	if _, err := engine.Destroy(t.Context(), e, sb.ID); err != nil {
		t.Fatal(err)
	}
	if err := engine.Until(t.Context(), e, time.Minute, func(s *engine.Snapshot) bool {
		_, there := s.Sandboxes[sb.ID]
		return !there && len(s.Processes) == 0
	}); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"boxes/sb-*", "logs/*"} {
		left, err := filepath.Glob(filepath.Join(dir, sub))
		if err != nil || len(left) > 0 {
			t.Errorf("%s still has %v (%v)", sub, left, err)
		}
	}
}

func TestStagesLeaveInTheReverseOrderAndOnce(t *testing.T) {
	var left []string
	var s stages
	for _, name := range []string{"store", "pool", "healer"} {
		s.push(name, time.Second, func(context.Context) error {
			left = append(left, name)
			if name == "pool" {
				return errors.New("stuck")
			}
			return nil
		})
	}
	err := s.leaveAll(t.Context())
	if want := []string{"healer", "pool", "store"}; !slices.Equal(left, want) {
		t.Errorf("left in the order %v, want %v", left, want)
	}
	if err == nil || err.Error() != "stop pool: stuck" {
		t.Errorf("got %v, want the stage that failed", err)
	}
	if err := s.leaveAll(t.Context()); err != nil || len(left) != 3 {
		t.Errorf("leaving twice left more: %v, %v", left, err)
	}
}
