//go:build linux

package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sbx/engine/driver/host"
	"sbx/engine/shim"
)

// launcherEnv names the launcher to the copies of this binary that tests run.
const launcherEnv = "SBX_TEST_LAUNCHER"

// TestMain is this test binary as the launcher and as a second engine, as
// cmd/sbx is for an engine.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "shim":
			os.Exit(shim.Main(os.Args[2:]))
		case "confine":
			os.Exit(host.ConfineMain(os.Args[2:]))
		case "engine":
			os.Exit(engineMain(os.Args[2:]))
		}
	}
	remove := buildLauncher()
	code := m.Run()
	remove()
	os.Exit(code)
}

// buildLauncher makes the small launcher that most tests use. Without a Go
// toolchain they use this binary, and take longer.
func buildLauncher() (remove func()) {
	if os.Getenv(launcherEnv) != "" {
		return func() {}
	}
	dir, err := os.MkdirTemp("", "sbx-launcher-")
	if err != nil {
		return func() {}
	}
	path := filepath.Join(dir, "launcher")
	if out, err := exec.Command("go", "build", "-o", path, "./testdata/launcher").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "tests run without the small launcher: %v\n%s", err, out)
	} else if os.Chmod(dir, 0o755) == nil {
		os.Setenv(launcherEnv, path)
	}
	return func() { os.RemoveAll(dir) }
}

// launcher is the helper of hosts in tests.
func launcher() []string {
	if path := os.Getenv(launcherEnv); path != "" {
		return []string{path}
	}
	return []string{"/proc/self/exe"}
}
