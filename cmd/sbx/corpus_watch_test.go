package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"sbx/engine"
)

func (w *world) breakAndWatch(f fault) {
	from := filepath.Join(f.dir, "workspace")
	if f.From != "" {
		from = filepath.Join("testdata", "workspaces", f.From)
	}
	// The first start may have no dependencies yet: the healer installs them.
	source := w.workspace(from)
	var sb sandboxJSON
	if r := w.run("create", "--from", source, "--name", w.app); r.code != 0 {
		w.t.Fatalf("before it is broken: exit %d\n%s%s\n%s", r.code, r.out, r.err, w.run("logs", "--healer", w.app, "--full").out)
	}
	var shown showJSON
	w.read(&shown, "show", w.app)
	sb.Sandbox = shown.Sandbox
	for _, p := range shown.Processes {
		if p.Name == engine.AppName {
			sb.Port = p.Port
		}
	}
	if sb.Health != engine.Ready {
		w.t.Fatalf("before it is broken, it is %s: %s", sb.Health, sb.Reason)
	}
	before := w.gitStatus()
	first := w.lastRun()

	if f.Hold != "" {
		defer w.hold(f.Hold, sb.Port)()
	}
	if f.Break != "" {
		w.ok("exec", w.app, "--", f.Break)
	}
	broken := w.ok("exec", w.app, "--", "sha256sum server.* 2>/dev/null || true")
	if f.Restart {
		w.run("restart", w.app) // its exit code tells the outcome, which the run tells better
	}
	if f.Quiet > 0 {
		w.staysQuiet(f, first)
		return
	}
	var run engine.HealRun
	w.eventually("a run of this fault ends", func() bool {
		run = w.lastRun()
		return run.ID != first.ID && !run.Open()
	})
	w.judge(f, run)
	if f.Outcome == engine.NotHealed {
		if after := w.ok("exec", w.app, "--", "sha256sum server.* 2>/dev/null || true"); after != broken {
			w.t.Errorf("the rollback left another file than there was:\n%s\nwas:\n%s", after, broken)
		}
	}
	w.usersWorkIsThere(f, before)
}

// staysQuiet waits until the app has been probed often enough since, and then
// nothing may have been healed.
func (w *world) staysQuiet(f fault, first engine.HealRun) {
	w.t.Helper()
	w.eventually("it is probed", func() bool {
		return strings.Count(w.ok("logs", w.app), "GET /health") >= f.Quiet
	})
	if run := w.lastRun(); run.ID != first.ID {
		w.t.Errorf("a run was opened for nothing: %s\n%s", run.Cause, w.ok("logs", "--healer", w.app, "--full"))
	}
	var sb showJSON
	w.read(&sb, "show", w.app)
	if sb.Sandbox.Health != engine.Ready {
		w.t.Errorf("it is %s (%s)", sb.Sandbox.Health, sb.Sandbox.Reason)
	}
}

// workspace is a copy of a corpus workspace as a user leaves it: a repository
// with a commit, an uncommitted edit, a staged file and an untracked one.
func (w *world) workspace(from string) string {
	w.t.Helper()
	dir := filepath.Join(filepath.Dir(w.home), "source-"+w.app)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		w.t.Fatal(err)
	}
	for _, script := range []string{"start.sh"} { // embedded in no archive, a mode is kept by git alone
		if fileThere(filepath.Join(dir, script)) {
			if err := os.Chmod(filepath.Join(dir, script), 0o755); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if fileThere(filepath.Join(dir, "go.mod")) {
		w.buildGo(dir)
	}
	w.write(dir, "notes.md", "first\n")
	w.git(dir, "init", "-q", "-b", "main")
	w.git(dir, "config", "user.name", "Dana")
	w.git(dir, "config", "user.email", "dana@example.com")
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-qm", "as it was")
	w.write(dir, "notes.md", "first\nsecond, not committed\n")
	w.write(dir, "staged.txt", "staged\n")
	w.git(dir, "add", "staged.txt")
	w.write(dir, "scratch.txt", "untracked\n")
	return dir
}

func fileThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// builtGo is the Go workspaces' server, built once and as sbx itself is, so that
// nothing of the standard library is compiled for it alone.
var builtGo = sync.OnceValues(func() ([]byte, error) {
	out := filepath.Join(filepath.Dir(binary), "server")
	cmd := exec.Command("go", append(append([]string{"build"}, raceFlags...), "-mod=mod", "-o", out, ".")...)
	cmd.Dir = filepath.Join("testdata", "workspaces", "go")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, text)
	}
	return os.ReadFile(out)
})

// buildGo puts the built server where its owner would have it.
func (w *world) buildGo(dir string) {
	w.t.Helper()
	data, err := builtGo()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "server"), data, 0o755); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(dir, name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) git(dir string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (w *world) gitStatus() string {
	w.t.Helper()
	return w.ok("exec", w.app, "--", "git status --porcelain; cat notes.md scratch.txt; git diff --cached --stat")
}

func (w *world) lastRun() engine.HealRun {
	w.t.Helper()
	var s showJSON
	w.read(&s, "show", w.app)
	if s.Run == nil {
		return engine.HealRun{}
	}
	return *s.Run
}
