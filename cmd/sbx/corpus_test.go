package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	toml "github.com/pelletier/go-toml/v2"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// fault is one directory of the corpus: a workspace that works, what breaks
// it, and what should happen then.
type fault struct {
	What     string            `toml:"what"`
	Needs    []string          `toml:"needs"`    // programs
	Break    string            `toml:"break"`    // run in the sandbox, as its user would
	Hold     string            `toml:"hold"`     // who takes the app's port: "stranger", "own"
	Restart  bool              `toml:"restart"`  // the user restarts the app after breaking it
	Signal   engine.SignalKind `toml:"signal"`   // that must be raised
	Outcome  engine.Outcome    `toml:"outcome"`  // of the run
	FixedBy  string            `toml:"fixed_by"` // a playbook, or "model"
	Changed  []string          `toml:"changed"`  // by the run
	Absent   []string          `toml:"absent"`   // files that a rollback must have removed
	Commit   bool              `toml:"commit"`   // the fix is committed
	Attempts int               `toml:"attempts"` // of the model
}

// TestFaults breaks real dev servers and holds what happens against what each
// directory of the corpus says.
func TestFaults(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("testdata", "corpus", "*", "fault.toml"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			f := readFault(t, file)
			needCommand(t, append(f.Needs, "git")...)
			breakAndWatch(t, dir, f)
		})
	}
}

func readFault(t *testing.T, file string) fault {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f fault
	dec := toml.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return f
}

// scriptOf is the model's part, if the fault needs one.
func scriptOf(t *testing.T, dir string) *agenttest.Script {
	t.Helper()
	r, err := os.Open(filepath.Join(dir, "model.json"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := agenttest.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

func breakAndWatch(t *testing.T, dir string, f fault) {
	w := newWorld(t, scriptOf(t, dir))
	// The first start has no dependencies yet: the healer installs them.
	source := w.workspace(filepath.Join(dir, "workspace"))
	var sb sandboxJSON
	w.read(&sb, "create", "--from", source, "--name", "app")
	if sb.Health != engine.Ready {
		t.Fatalf("before it is broken, it is %s: %s", sb.Health, sb.Reason)
	}
	before := w.gitStatus()
	first := w.lastRun()

	if f.Hold != "" {
		defer w.hold(f.Hold, sb.Port)()
	}
	if f.Break != "" {
		w.ok("exec", "app", "--", f.Break)
	}
	broken := w.ok("exec", "app", "--", "sha256sum server.* 2>/dev/null")
	if f.Restart {
		w.run("restart", "app") // its exit code tells the outcome, which the run tells better
	}
	var run engine.HealRun
	w.eventually("a run of this fault ends", func() bool {
		run = w.lastRun()
		return run.ID != first.ID && !run.Open()
	})
	w.judge(f, run)
	if f.Outcome == engine.NotHealed {
		if after := w.ok("exec", "app", "--", "sha256sum server.* 2>/dev/null"); after != broken {
			t.Errorf("the rollback left another file than there was:\n%s\nwas:\n%s", after, broken)
		}
	}
	w.usersWorkIsThere(f, before)
}

// workspace is a copy of a corpus workspace as a user leaves it: a repository
// with a commit, an uncommitted edit, a staged file and an untracked one.
func (w *world) workspace(from string) string {
	w.t.Helper()
	dir := filepath.Join(filepath.Dir(w.home), "source")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		w.t.Fatal(err)
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
	return w.ok("exec", "app", "--", "git status --porcelain; cat notes.md scratch.txt; git diff --cached --stat")
}

func (w *world) lastRun() engine.HealRun {
	w.t.Helper()
	var s showJSON
	w.read(&s, "show", "app")
	if s.Run == nil {
		return engine.HealRun{}
	}
	return *s.Run
}

// hold takes the app's port: as a program of the host, or as a command that
// somebody left running in the sandbox. The app is restarted onto it after.
func (w *world) hold(who string, port int) (release func()) {
	w.t.Helper()
	if who == "stranger" {
		w.ok("stop", "app")
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			w.t.Fatal(err)
		}
		w.run("start", "app")
		return func() { l.Close() }
	}
	script := fmt.Sprintf(`import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
print("trying", flush=True)
while True:
    try:
        s.bind(("127.0.0.1", %d)); break
    except OSError:
        time.sleep(0.01)
s.listen()
print("held", flush=True)
time.sleep(600)
`, port)
	cmd := w.command("exec", "app", "--", "python3", "-c", script)
	trying, held := newWaitFor("trying"), newWaitFor("held")
	cmd.Stdout = io.MultiWriter(trying, held)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.wait(trying)
	// The app leaves the port for a moment; the command is faster than its next start.
	restart := w.command("restart", "app")
	if err := restart.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.wait(held)
	return func() {
		_ = restart.Wait() // its exit code tells the outcome, which the run tells better
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			w.t.Error(err)
		}
		_ = cmd.Wait() // interrupted
	}
}

// waitFor is a writer that tells when a text went by.
type waitFor struct {
	text string
	seen chan struct{}
	had  strings.Builder
	told bool
}

func newWaitFor(text string) *waitFor { return &waitFor{text: text, seen: make(chan struct{})} }

func (w *world) wait(f *waitFor) {
	w.t.Helper()
	select {
	case <-f.seen:
	case <-time.After(time.Minute):
		w.t.Fatalf("%q was not said within a minute", f.text)
	}
}

func (w *waitFor) Write(b []byte) (int, error) {
	w.had.Write(b)
	if !w.told && strings.Contains(w.had.String(), w.text) {
		w.told = true
		close(w.seen)
	}
	return len(b), nil
}

// judge holds a run against the fault's verdict.
func (w *world) judge(f fault, run engine.HealRun) {
	w.t.Helper()
	story := w.ok("logs", "--healer", "app", "--full")
	if run.Outcome != f.Outcome {
		w.t.Fatalf("outcome %q, want %q (%s)\n%s", run.Outcome, f.Outcome, run.Summary, story)
	}
	if run.FixedBy != f.FixedBy {
		w.t.Errorf("fixed by %q, want %q\n%s", run.FixedBy, f.FixedBy, story)
	}
	if f.Attempts != 0 && run.Attempt != f.Attempts {
		w.t.Errorf("%d attempts, want %d\n%s", run.Attempt, f.Attempts, story)
	}
	if got := run.Commit != ""; got != f.Commit {
		w.t.Errorf("committed: %v, want %v (%s)\n%s", got, f.Commit, run.NotCommitted, story)
	}
	if f.Changed != nil && !slices.Equal(run.Changed, f.Changed) {
		w.t.Errorf("changed %v, want %v\n%s", run.Changed, f.Changed, story)
	}
	var sb showJSON
	w.read(&sb, "show", "app")
	want := engine.Ready
	if f.Outcome != engine.Healed {
		want = engine.Broken
		if run.Summary == "" || run.Next == "" {
			w.t.Errorf("broken without a summary (%q) or what to do next (%q)", run.Summary, run.Next)
		}
	}
	if sb.Sandbox.Health != want {
		w.t.Errorf("it is %s (%s), want %s\n%s", sb.Sandbox.Health, sb.Sandbox.Reason, want, story)
	}
	if !strings.Contains(story, "signal") || !strings.Contains(story, "verdict") {
		w.t.Errorf("the story lacks signal or verdict:\n%s", story)
	}
}

// usersWorkIsThere checks that the user's unrelated work is as it was: in the
// files, in the index and untracked.
func (w *world) usersWorkIsThere(f fault, before string) {
	w.t.Helper()
	after := w.gitStatus()
	for line := range strings.Lines(before) {
		if !strings.Contains(after, line) {
			w.t.Errorf("of the user's work %q is gone:\n%s", line, after)
		}
	}
	for _, name := range f.Absent {
		if r := w.run("exec", "app", "--", "test ! -e "+name); r.code != 0 {
			w.t.Errorf("%s is still there", name)
		}
	}
}
