package local

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver/host"
)

// TestNothingIsRestoredUnderWhatOutlivedTheEngine: the processes that another
// engine started use the files as much as this one's.
func TestNothingIsRestoredUnderWhatOutlivedTheEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { endShims(t, dir) })
	cfg := func() Config {
		cfg := configWith(t, dir, "", &host.Shims{Args: []string{"shim"}, Logs: filepath.Join(dir, "logs"), Idle: time.Second})
		cfg.Leave = true
		return cfg
	}
	first, err := Open(context.Background(), cfg())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close() // twice is once
	sb := ready(t, first, engine.CreateSandbox{Name: "kept", Origin: source(t), Keep: true})
	if _, err := first.Do(t.Context(), engine.NewAction(engine.SaveArchive{Sandbox: sb.ID})); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Do(t.Context(), engine.NewAction(engine.WriteFile{Sandbox: sb.ID, Name: "later", Data: []byte("x")})); err != nil {
		t.Fatal(err)
	}
	app := appOf(t, first, sb.ID)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	e := open(t, cfg())
	if now := appOf(t, e, sb.ID); now.State != engine.ProcessRunning || now.PID != app.PID {
		t.Fatalf("the app was process %d and is %s as %d", app.PID, now.State, now.PID)
	}
	restore := engine.RestoreArchive{Sandbox: sb.ID}
	if _, err := e.Do(t.Context(), engine.NewAction(restore)); engine.AsCode(err) != engine.Conflict {
		t.Errorf("an operator's restore: %v, want a conflict", err)
	}
	box, err := e.cfg.Driver.Attach(t.Context(), sb.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.keeper.Restore(t.Context(), sb.ID, box.Archives(), ""); engine.AsCode(err) != engine.Conflict {
		t.Errorf("the driver's restore: %v, want a conflict", err)
	}
	later := filepath.Join(box.Location(), "later")
	if _, err := os.Stat(later); err != nil {
		t.Errorf("the workspace was changed: %v", err)
	}
	if _, err := engine.StopAll(t.Context(), e, sb.ID); err != nil {
		t.Fatal(err)
	}
	until(t, e, sb.ID, "be cold", func(sb engine.Sandbox) bool { return sb.State == engine.Cold })
	if _, err := e.Do(t.Context(), engine.NewAction(restore)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(later); !os.IsNotExist(err) {
		t.Errorf("stopped and restored, it still has what came after the archive: %v", err)
	}
}

func appOf(t *testing.T, e engine.Engine, id engine.SandboxID) engine.Process {
	t.Helper()
	snap, err := e.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap.App(id)
}

// endShims ends what kept processes for engines of a directory.
func endShims(t *testing.T, dir string) {
	t.Helper()
	wait(t, "the shims to end", func() bool {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		left := false
		for _, file := range files {
			cmdline, _ := os.ReadFile(file) // it may have ended meanwhile
			if strings.Contains(string(cmdline), "\x00"+filepath.Join(dir, "shims")+"/") {
				pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
				left = syscall.Kill(pid, syscall.SIGTERM) == nil || left
			}
		}
		return !left
	})
}
