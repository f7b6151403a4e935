package local

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx/engine"
)

// ticker is a process that says when it starts, and waits.
const ticker = "echo started; exec sleep 3600"

// benchApp is an engine with one sandbox whose app is ticker.
func benchApp(b *testing.B, isolation string) (*Engine, engine.Sandbox) {
	b.Helper()
	e := open(b, config(b, openDir(b), isolation))
	sb, err := engine.Create(b.Context(), e, engine.CreateSandbox{
		Keep: true, Origin: source(b),
		SpecTOML: "[app]\ncommand = \"" + ticker + "\"\nmax_restarts = 1000\nmin_uptime = \"0s\"\nrestart_delay = \"0s\"\n",
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := e.Do(b.Context(), engine.NewAction(engine.SetMaintenance{Sandbox: sb.ID, On: true})); err != nil {
		b.Fatal(err)
	}
	runningApp(b, e, sb.ID, 0)
	return e, sb
}

// openDir is a temporary directory that a sandbox's own user can reach: without
// confinement it is not mounted anywhere else.
func openDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "sbx-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	return dir
}

// runningApp waits until the app runs as another process than not.
func runningApp(b *testing.B, e *Engine, id engine.SandboxID, not int) engine.Process {
	b.Helper()
	var app engine.Process
	err := engine.Until(b.Context(), e, time.Minute, func(s *engine.Snapshot) bool {
		app = s.App(id)
		return app.State == engine.ProcessRunning && app.PID != not && app.PID != 0
	})
	if err != nil {
		b.Fatal(err)
	}
	return app
}

// BenchmarkExitToEvent is from the kill of an app to its exit, read from the
// journal.
func BenchmarkExitToEvent(b *testing.B) {
	e, sb := benchApp(b, "none")
	app := runningApp(b, e, sb.ID, 0)
	for b.Loop() {
		b.StopTimer()
		snap, err := e.Snapshot(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		kill(b, app.PID)
		waitExit(b, e, snap.Position, app)
		b.StopTimer()
		app = runningApp(b, e, sb.ID, app.PID)
		b.StartTimer()
	}
}

func waitExit(b *testing.B, e *Engine, pos engine.Position, app engine.Process) {
	b.Helper()
	for ev, err := range e.Events(b.Context(), pos) {
		if err != nil {
			b.Fatal(err)
		}
		if p, ok := ev.Body.(engine.ProcessChanged); ok && p.Process.ID == app.ID && p.Process.PID != app.PID {
			return
		}
	}
}

// BenchmarkFloorExitSeen is the least: a child is killed and waited for, and a
// line about it is on the disk.
func BenchmarkFloorExitSeen(b *testing.B) {
	f, err := os.Create(filepath.Join(openDir(b), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for b.Loop() {
		b.StopTimer()
		cmd := exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		kill(b, cmd.Process.Pid)
		err := cmd.Wait() // killed
		if _, err := fmt.Fprintln(f, err); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkKillToFirstLine is from the kill of an app to the first line of its
// successor, read from its log.
func BenchmarkKillToFirstLine(b *testing.B) {
	for _, isolation := range []string{"none", "bubblewrap"} {
		b.Run(isolation, func(b *testing.B) { killToFirstLine(b, isolation) })
	}
}

func killToFirstLine(b *testing.B, isolation string) {
	e, sb := benchApp(b, isolation)
	app := runningApp(b, e, sb.ID, 0)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	lines := make(chan struct{}, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for l, err := range e.Logs(ctx, engine.LogQuery{Sandbox: sb.ID, Follow: true}) {
			if err != nil {
				return
			}
			if strings.HasPrefix(l.Text, "started") {
				lines <- struct{}{}
			}
		}
	}()
	<-lines
	for b.Loop() {
		kill(b, app.PID)
		<-lines
		b.StopTimer()
		app = runningApp(b, e, sb.ID, app.PID)
		b.StartTimer()
	}
	cancel()
	<-done
}

// BenchmarkFloorSpawnToFirstLine is the least: a child is killed, waited for,
// started again and read from.
func BenchmarkFloorSpawnToFirstLine(b *testing.B) {
	start := func() (*exec.Cmd, *bufio.Reader) {
		cmd := exec.Command("/bin/sh", "-c", ticker)
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		return cmd, bufio.NewReader(out)
	}
	cmd, out := start()
	if _, err := out.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		kill(b, cmd.Process.Pid)
		_ = cmd.Wait() // killed
		cmd, out = start()
		if _, err := out.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	kill(b, cmd.Process.Pid)
	_ = cmd.Wait()
}

func kill(b *testing.B, pid int) {
	b.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
}
