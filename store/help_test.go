package store

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"sbx/engine"
)

// seed is a database that was made and closed: to migrate one for each test
// takes half a second under the race detector.
var seed []byte

func makeSeed() error {
	dir, err := os.MkdirTemp("", "sbx-store-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := Open(context.Background(), dir, Options{})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	seed, err = os.ReadFile(pathIn(dir))
	return err
}

// plant puts the seed where there is no database.
func plant(t testing.TB, dir string) string {
	t.Helper()
	if _, err := os.Stat(pathIn(dir)); err == nil {
		return dir
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(pathIn(dir), seed, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// openStore opens a store that is closed with the test.
func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	plant(t, dir)
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sampleSandbox is a sandbox of the usual size, claimed and ready.
func sampleSandbox(name string) engine.Sandbox {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return engine.Sandbox{
		ID:       engine.SandboxID(engine.NewID(engine.SandboxPrefix)),
		Name:     name,
		Owner:    "ada",
		Labels:   map[string]string{"team": "shop"},
		Template: "node",
		Spec: engine.Spec{
			App: engine.ProcessSpec{
				Command: "pnpm dev", Health: "/health", MaxRestarts: 1,
				StartTimeout: engine.Duration(engine.DefaultStartTimeout), MinUptime: engine.Duration(engine.DefaultMinUptime),
				RestartDelay: engine.Duration(engine.DefaultRestartDelay), StopGrace: engine.Duration(engine.DefaultStopGrace),
				Install: "pnpm install --frozen-lockfile", Env: map[string]string{"NODE_ENV": "development"},
			},
			Limits: engine.Limits{Memory: 2 * engine.GiB, CPU: 1, Processes: 64},
			Heal:   engine.HealSpec{Attempts: 3, Protected: []string{"src/engine"}},
		},
		Origin: engine.Origin{Kind: engine.FromTemplate, Ref: "node"},
		Wanted: engine.Up, State: engine.Waiting, Health: engine.Ready,
		Isolation: "bubblewrap",
		Created:   at, StateChanged: at, HealthChanged: at, Active: at,
	}
}

func putSample(t testing.TB, s *Store, name string) engine.Sandbox {
	t.Helper()
	sb := sampleSandbox(name)
	update(t, s, func(tx *Tx) error { return tx.PutSandbox(&sb) })
	return sb
}

func update(t testing.TB, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// fire may be called from any goroutine.
func fire(t testing.TB, s *Store, id engine.SandboxID, on engine.LifeTrigger) {
	err := s.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.Fire(id, on)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)*p/100, len(d)-1)]
}
