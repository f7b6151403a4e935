package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"sbx/engine"
)

// hold takes the app's port: as a program of the host, or as a command that
// somebody left running in the sandbox. The app is restarted onto it after.
func (w *world) hold(who string, port int) (release func()) {
	w.t.Helper()
	if who == "stranger" {
		w.ok("stop", w.app)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			w.t.Fatal(err)
		}
		w.run("start", w.app)
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
	cmd := w.command("exec", w.app, "--", "python3", "-c", script)
	trying, held := newWaitFor("trying"), newWaitFor("held")
	cmd.Stdout = io.MultiWriter(trying, held)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.wait(trying)
	// The app leaves the port for a moment; the command is faster than its next start.
	restart := w.command("restart", w.app)
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
	story := w.ok("logs", "--healer", w.app, "--full")
	if run.Outcome != f.Outcome {
		w.t.Fatalf("outcome %q, want %q (%s)\n%s", run.Outcome, f.Outcome, run.Summary, story)
	}
	if run.FixedBy != f.FixedBy {
		w.t.Errorf("fixed by %q, want %q\n%s", run.FixedBy, f.FixedBy, story)
	}
	if f.Says != "" && !strings.Contains(story, f.Says) {
		w.t.Errorf("its story lacks %q:\n%s", f.Says, story)
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
	w.read(&sb, "show", w.app)
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
		if r := w.run("exec", w.app, "--", "test ! -e "+name); r.code != 0 {
			w.t.Errorf("%s is still there", name)
		}
	}
}
