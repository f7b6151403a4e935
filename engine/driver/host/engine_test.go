//go:build linux

package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

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
		cfg.Dir = filepath.Join(tempDir(t), "data")
	}
	cfg.Helper = launcher()
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
			t.Parallel()
			requireMeans(t, name)
			test(t, name)
		})
	}
}

// requireMeans skips where a means isn't there at all, and CI has them all.
func requireMeans(t *testing.T, name string) {
	t.Helper()
	missing := ""
	switch name {
	case "bubblewrap":
		if _, err := exec.LookPath("bwrap"); err != nil {
			missing = err.Error()
		}
	case "landlock":
		if v, err := ll.LandlockGetABIVersion(); err != nil || v < 2 {
			missing = "the kernel has none"
		}
	}
	if missing == "" {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("CI must have %s: %s", name, missing)
	}
	t.Skipf("this machine has no %s: %s", name, missing)
}

// tempDir is one that sandboxes of an engine that runs as root can reach;
// t.TempDir is closed to other users.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbx-host-")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestHostIsADriver(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		h := openHost(t, host.Config{Isolation: isolation})
		drivertest.Suite{Shell: true, Open: func(*testing.T) driver.Driver { return h }}.Run(t)
	})
}

func TestHostIsADriverWithoutCgroups(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		h := openHost(t, host.Config{Isolation: isolation, NoCgroups: true})
		drivertest.Suite{Shell: true, Open: func(*testing.T) driver.Driver { return h }}.Run(t)
	})
}

// TestEverythingHoldsForAnOrdinaryUser runs the tests of this package that
// matter to it again, as nobody.
func TestEverythingHoldsForAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("the others have run as an ordinary user already")
		return
	}
	t.Parallel()
	binary := filepath.Join(tempDir(t), "test") // the one that runs lies in a closed directory
	data, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(binary, data, 0o755))
	cmd := exec.CommandContext(t.Context(), binary, "-test.count=1", "-test.parallel=2",
		"-test.run=^(TestHostIsADriver$|TestNothing|TestProtected|TestAMissing|TestTheAgent|TestStrangers|TestReap)")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "SBX_SECRET=S3CRET", "HOME=/nonexistent", "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// asOwner makes a command of ours run as the owner of a file.
func asOwner(fi os.FileInfo) *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	st := fi.Sys().(*syscall.Stat_t)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
}
