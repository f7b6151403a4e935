package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

// means are all there are; those that this machine lacks are shown as skipped
// where they are opened by name, and fail where CI must have them.
var means = []string{"bubblewrap", "landlock", "none"}

// openHost opens a driver of its own.
func openHost(t *testing.T, cfg host.Config) *host.Host {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(t.TempDir(), "data")
	}
	cfg.Helper = []string{"/proc/self/exe"}
	h := host.New(cfg)
	if err := h.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// each runs a test under every means that the machine offers.
func each(t *testing.T, names []string, test func(t *testing.T, isolation string)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			requireMeans(t, name)
			test(t, name)
		})
	}
}

// requireMeans skips where a means is not installed, and says so.
func requireMeans(t *testing.T, name string) {
	t.Helper()
	h := host.New(host.Config{Dir: t.TempDir(), Helper: []string{"/proc/self/exe"}, Isolation: name})
	if err := h.Open(context.Background()); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI must have %s: %v", name, err)
		}
		t.Skipf("this machine has no %s: %v", name, err)
	}
	h.Close()
}

func TestHostIsADriver(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		drivertest.Suite{Shell: true, Open: func(t *testing.T) driver.Driver {
			return openHost(t, host.Config{Isolation: isolation})
		}}.Run(t)
	})
}

// engineMain is an engine of its own process, to be killed.
func engineMain(args []string) int {
	_ = args
	return len(os.Args)
}
