package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// gate is a scripted model that answers only when the test lets it.
type gate struct {
	t       *testing.T
	model   http.Handler
	arrived chan struct{} // a request waits
	open    chan struct{}
}

func newGate(t *testing.T, turns ...agenttest.Turn) (g *gate, env []string) {
	g = &gate{t: t, arrived: make(chan struct{}, 64), open: make(chan struct{})}
	g.model = agenttest.NewServer(agenttest.Script{Turns: turns})
	h := httptest.NewServer(g)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return g, []string{"ANTHROPIC_BASE_URL=" + h.URL, "ANTHROPIC_API_KEY=test-key-of-nobody"}
}

// ServeHTTP holds a request until it may pass or its client is gone. The body
// is read first: only then does net/http notice the latter.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return // the client is gone
	}
	g.arrived <- struct{}{}
	select {
	case <-g.open:
		r.Body = http.NoBody
		again := r.Clone(r.Context())
		again.Body = readCloser{&body}
		g.model.ServeHTTP(w, again)
	case <-r.Context().Done():
	}
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

// pass lets a request that waits, or the next one, through.
func (g *gate) pass(w *world) {
	w.t.Helper()
	g.wait(w)
	g.let(w)
}

// let lets the request through that waits.
func (g *gate) let(w *world) {
	w.t.Helper()
	w.eventually("the model's answer goes out", func() bool {
		select {
		case g.open <- struct{}{}:
			return true
		default:
			return false
		}
	})
}

// wait waits until a request waits.
func (g *gate) wait(w *world) {
	w.t.Helper()
	w.eventually("the model is asked", func() bool {
		select {
		case <-g.arrived:
			return true
		default:
			return false
		}
	})
}

// processes are those that run of this data directory's sandboxes: by their
// environment, or as what confines them by their command line.
func (w *world) processes() (left []string) {
	w.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(w.home))
	mark, boxes := []byte("SBX_BOX="+hex.EncodeToString(sum[:6])+"/"), []byte(filepath.Join(w.home, "boxes")+"/")
	for _, dir := range dirs {
		environ, _ := os.ReadFile(dir + "/environ") // it may have ended meanwhile
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		if bytes.Contains(environ, mark) || bytes.Contains(environ, boxes) || bytes.Contains(cmdline, boxes) {
			left = append(left, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return left
}

// ofTheEngine are those of processes that no shim runs: they end with the
// engine, as what a model had it run does.
func (w *world) ofTheEngine() (left []string) {
	w.t.Helper()
	shims := map[int]bool{}
	for _, pid := range w.shims() {
		shims[pid] = true
	}
	for _, line := range w.processes() {
		pid, _ := strconv.Atoi(strings.Fields(line)[0])
		for pid > 1 && !shims[pid] {
			pid = parentOf(pid)
		}
		if !shims[pid] {
			left = append(left, line)
		}
	}
	return left
}

// parentOf is a process's parent; 0 if it has ended.
func parentOf(pid int) int {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// kill ends the engine with a signal, waits until it is gone, and sees that
// nothing outlives it but what shims run.
func (w *world) kill(sig syscall.Signal) {
	w.t.Helper()
	if len(w.processes()) < 2 { // the worker, and what confines it
		w.t.Fatalf("so little runs that nothing could be left over: %q", w.processes())
	}
	if w.enginePID() == 0 {
		w.t.Fatal("no engine runs")
	}
	w.stopEngine(sig)
	w.eventually("nothing outlives the engine but what shims run", func() bool { return len(w.ofTheEngine()) == 0 })
}

// interrupted are the attempts of a sandbox that the journal says so of.
func (w *world) interrupted(name string) (attempts, runs int) {
	w.t.Helper()
	for line := range strings.Lines(w.ok("logs", "--healer", name, "--json")) {
		var ev engine.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			w.t.Fatalf("%v in %q", err, line)
		}
		switch b := ev.Body.(type) {
		case engine.HealAttempted:
			if b.Attempt.Outcome == engine.Interrupted {
				attempts++
			}
		case engine.HealFinished:
			if b.Run.Outcome == engine.Interrupted {
				runs++
			}
		}
	}
	return attempts, runs
}

// breakApp breaks the sandbox "app" and restarts it in the background: the
// command waits until it is ready, however many engines that takes.
func (w *world) breakApp() (files string, ended func()) {
	w.t.Helper()
	dir := w.patient()
	spec, err := os.ReadFile(filepath.Join(dir, "sbx.toml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(dir, "sbx.toml", string(spec)+"[[process]]\nname = \"worker\"\ncommand = \"sleep 3600\"\n")
	w.ok("create", "--from", dir, "--name", "app")
	w.ok("exec", "app", "--", infection)
	files = w.files("app")
	cmd := w.command("restart", "app")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return files, func() {
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("sbx restart did not see its sandbox through to ready: %v", err)
		}
	}
}

// sameFiles holds the workspace against what it was.
func (w *world) sameFiles(want string) {
	w.t.Helper()
	if got := w.files("app"); got != want {
		w.t.Errorf("the workspace is\n%s\nwant\n%s", got, want)
	}
}

func (w *world) healedAnew(cuts int) {
	w.t.Helper()
	w.eventually("it is healed anew", func() bool {
		s := w.shown("app")
		return s.Sandbox.Health == engine.Ready && s.Run != nil && s.Run.Outcome == engine.Healed && s.Run.FixedBy == "model"
	})
	if attempts, runs := w.interrupted("app"); attempts != cuts || runs != cuts {
		w.t.Errorf("%d attempts and %d runs read interrupted, want %d", attempts, runs, cuts)
	}
	story := w.ok("logs", "--healer", "app")
	if n := strings.Count(story, ": interrupted after"); n != cuts {
		w.t.Errorf("the story tells %d interrupted attempts, want %d:\n%s", n, cuts, story)
	}
	if left := w.ok("exec", "app", "--", "cat notes.md; ls"); strings.Contains(left, "guess") || strings.Contains(left, "junk") {
		w.t.Errorf("something of a cut run is left: %s", left)
	}
}

// TestKilledInAnAttempt kills the engine twice in a row: while the model is
// silent after an edit, and while a command of the model is at work.
func TestKilledInAnAttempt(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3", "git")
	const toil = "echo junk > junk.txt; echo '# more' >> server.py; (sleep 600 &) ; sleep 600"
	turns := append([]agenttest.Turn{harm(), {Calls: []agenttest.Call{call("run", map[string]string{"command": toil})}}}, repair()...)
	g, env := newGate(t, turns...)
	w := newWorld(t, nil, env...)
	before, ended := w.breakApp()
	g.pass(w)
	g.wait(w)
	if w.files("app") == before {
		t.Fatal("the model has edited nothing yet")
	}
	w.kill(syscall.SIGKILL)

	// The user saves a file of their own while no engine runs.
	notes, err := filepath.Glob(filepath.Join(w.home, "boxes", "*", "*", "notes.md"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("where is the workspace? %v %v", notes, err)
	}
	f, err := os.OpenFile(notes[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("and more of it\n"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}

	w.ok("serve", "--detach")
	g.wait(w)
	if attempts, runs := w.interrupted("app"); attempts != 1 || runs != 1 {
		t.Errorf("%d attempts and %d runs read interrupted, want 1", attempts, runs)
	}
	if text := w.ok("exec", "app", "--", "cat notes.md"); text != "the user's own\nand more of it\n" {
		t.Errorf("the user's file is %q", text)
	}
	w.ok("exec", "app", "--", "printf \"the user's own\\n\" > notes.md")
	w.sameFiles(before)
	g.let(w) // to the command that never ends
	w.eventually("the command is at work", func() bool { return w.run("exec", "app", "--", "test -s junk.txt").code == 0 })
	w.kill(syscall.SIGKILL)

	w.ok("exec", "app", "--", "true") // it changes nothing, but it needs an engine
	g.wait(w)
	w.sameFiles(before)
	g.let(w)
	g.pass(w)
	w.healedAnew(2)
	ended()
}

// TestStoppedInAnAttempt ends the engine as an operator does, in the middle.
func TestStoppedInAnAttempt(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3", "git")
	g, env := newGate(t, append([]agenttest.Turn{harm()}, repair()...)...)
	w := newWorld(t, nil, env...)
	before, ended := w.breakApp()
	g.pass(w)
	g.wait(w)
	if w.files("app") == before {
		t.Fatal("the model has edited nothing yet")
	}
	w.kill(syscall.SIGTERM)
	w.ok("serve", "--detach")
	g.wait(w)
	w.sameFiles(before)
	g.let(w)
	g.pass(w)
	w.healedAnew(1)
	ended()
	if pid := w.shown("app").Processes[0].PID; syscall.Kill(pid, 0) != nil {
		t.Errorf("the app's process %s is not there", strconv.Itoa(pid))
	}
}
