package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sbx/engine"
)

// numbering is an app that numbers its lines.
const numbering = `i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done`

// counter makes a sandbox whose app counts.
func (w *world) counter(name string) {
	w.t.Helper()
	dir := filepath.Join(filepath.Dir(w.home), "counter-"+name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.write(dir, "sbx.toml", "[app]\ncommand = "+strconv.Quote(numbering)+"\n")
	w.ok("create", "--from", dir, "--name", name)
	w.eventually(name+" counts", func() bool { return w.counted(name) > 3 })
}

// appOf is a sandbox's app.
func (w *world) appOf(name string) engine.Process {
	w.t.Helper()
	for _, p := range w.shown(name).Processes {
		if p.Name == engine.AppName {
			return p
		}
	}
	w.t.Fatalf("%s has no app", name)
	return engine.Process{}
}

// logOf is what a process has written, line by line.
func (w *world) logOf(sandbox string, args ...string) (lines []engine.LogLine) {
	w.t.Helper()
	for text := range strings.Lines(w.ok(append([]string{"logs", sandbox, "--json"}, args...)...)) {
		var l engine.LogLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			w.t.Fatalf("%v in %q", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

// counted is the number in the last whole line of a counting app.
func (w *world) counted(name string) int {
	w.t.Helper()
	lines := w.logOf(name, "--tail", "2")
	if len(lines) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(lines[0].Text, "line ")) // 0: none yet
	return n
}

// countsOn waits until a counting app has written more.
func (w *world) countsOn(name string) {
	w.t.Helper()
	was := w.counted(name)
	w.eventually(name+" counts on", func() bool { return w.counted(name) > was+3 })
}

// unbroken checks that a counting app's log has each line once, at positions
// that join.
func (w *world) unbroken(name string) {
	w.t.Helper()
	lines := w.logOf(name)
	if len(lines) < 2 {
		w.t.Fatalf("%s has written so little: %+v", name, lines)
	}
	for i, l := range lines {
		if l.Partial && i == len(lines)-1 {
			break
		}
		if want := fmt.Sprintf("line %d", i+1); l.Text != want || l.Lost != 0 {
			w.t.Fatalf("line %d of %s is %+v, want %q", i+1, name, l, want)
		}
		if i > 0 && l.Pos != lines[i-1].Next {
			w.t.Fatalf("%s: a gap between %+v and %+v", name, lines[i-1], l)
		}
	}
}

// goneOn checks that an app lives the same life as before.
func (w *world) goneOn(name string, was engine.Process) {
	w.t.Helper()
	now := w.appOf(name)
	if now.PID != was.PID || now.Starts != was.Starts || now.Restarts != was.Restarts || now.LogStart != was.LogStart ||
		!now.Started.Equal(was.Started) || now.State != engine.ProcessRunning || len(now.Exits) != len(was.Exits) {
		w.t.Errorf("the app of %s is %+v, was %+v", name, now, was)
	}
	w.countsOn(name)
	w.unbroken(name)
}

func TestAKilledEngineLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.counter("api")
	app := w.appOf("api")
	long := strings.TrimSpace(w.ok("spawn", "api", "--", "echo begun; sleep 3600"))
	short := strings.TrimSpace(w.ok("spawn", "api", "--", "echo first; while ! test -e go; do sleep 0.05; done; echo last; exit 7"))
	w.eventually("the command has begun", func() bool {
		return len(w.logOf("api", "--process", short)) == 1 && len(w.logOf("api", "--process", long)) == 1
	})
	was := w.shown("api").Sandbox
	shims := w.shims()

	w.stopEngine(syscall.SIGKILL)
	files, err := filepath.Glob(filepath.Join(w.home, "boxes", "*", "*", "sbx.toml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("where is the workspace? %v %v", files, err)
	}
	w.write(filepath.Dir(files[0]), "go", "")
	w.eventually("the command has ended without an engine", func() bool { return len(w.logOf("api", "--process", short)) == 2 })

	if sb := w.shown("api").Sandbox; sb.State != was.State || sb.Health != engine.Unknown || !strings.Contains(sb.Reason, "no engine watches it") {
		t.Errorf("without an engine the sandbox is %s and %s: %s", sb.State, sb.Health, sb.Reason)
	}
	if p := w.process(long); !p.Running() || p.PID == 0 {
		t.Errorf("without an engine the command is %+v", p)
	}
	w.ok("serve", "--detach")
	w.goneOn("api", app)
	if now := w.shown("api").Sandbox; now.State != was.State || now.Health != was.Health {
		t.Errorf("the sandbox is %s and %s, was %s and %s", now.State, now.Health, was.State, was.Health)
	}
	if now := w.shims(); !slices.Equal(now, shims) {
		t.Errorf("the shims are %v, were %v", now, shims)
	}
	ended := w.process(short)
	if code, ok := ended.ExitCode(); !ok || code != 7 || ended.Exit.Killed {
		t.Errorf("the command that ended meanwhile: %+v", ended)
	}
	if p := w.process(long); !p.Running() || p.Exit != nil {
		t.Errorf("the command that goes on: %+v", p)
	}
	w.stopEngine(syscall.SIGKILL)
	w.ok("kill", long) // it takes an engine
	w.counter("web")
	if r := w.run("stop", "--all"); r.code != exitUsage || !strings.Contains(r.err, "--yes") {
		t.Errorf("nobody was asked: exit %d %s%s", r.code, r.out, r.err)
	}
	w.ok("stop", "--all", "--yes")
	if left := w.processes(); len(left) != 0 {
		t.Errorf("left when the sandbox is stopped: %q", left)
	}
}

// process is a process as sbx ps has it.
func (w *world) process(id string) engine.Process {
	w.t.Helper()
	var list []processJSON
	w.read(&list, "ps", "--all")
	for _, p := range list {
		if string(p.ID) == id {
			return p.Process
		}
	}
	w.t.Fatalf("no process %s in %+v", id, list)
	return engine.Process{}
}

// shimOf is the shim that a process is a descendant of.
func (w *world) shimOf(pid int) int {
	w.t.Helper()
	shims := w.shims()
	for up := pid; up > 1; up = parentOf(up) {
		if slices.Contains(shims, up) {
			return up
		}
	}
	w.t.Fatalf("no shim runs %d: there are %v", pid, shims)
	return 0
}

func TestAKilledShimTakesItsOwnAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, "SBX_SHIM_SANDBOXES=1")
	w.counter("one")
	w.counter("two")
	one, two := w.appOf("one"), w.appOf("two")
	cmd := strings.TrimSpace(w.ok("spawn", "one", "--", "setsid sleep 3600 & sleep 3600"))
	// One that is cut before it runs is told as never started.
	w.eventually("the command runs", func() bool { return w.process(cmd).State == engine.ProcessRunning })
	of, other := w.shimOf(one.PID), w.shimOf(two.PID)
	if of == other {
		t.Fatalf("both are run by %d", of)
	}
	before := w.underneath(of)
	if len(before) < 3 {
		t.Fatalf("so little runs: %v", before)
	}
	if err := syscall.Kill(of, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.eventually("the app runs again", func() bool {
		p := w.appOf("one")
		return p.State == engine.ProcessRunning && p.PID != one.PID
	})
	w.eventually("nothing of the shim's is left", func() bool {
		return !slices.ContainsFunc(before, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
	w.eventually("the command is told as ended", func() bool { p := w.process(cmd); return p.Exit != nil && p.Exit.Killed })
	if shim := w.shimOf(w.appOf("one").PID); shim == of || shim == other {
		t.Errorf("the app is run by %d", shim)
	}
	w.goneOn("two", two)
	if now := w.shimOf(two.PID); now != other {
		t.Errorf("the other sandbox is run by %d, was by %d", now, other)
	}
}

// underneath are the descendants of a process.
func (w *world) underneath(root int) (pids []int) {
	w.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		for up := parentOf(pid); up > 1; up = parentOf(up) {
			if up == root {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

func TestAnUpgradeLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.counter("api")
	app := w.appOf("api")
	cmd := strings.TrimSpace(w.ok("spawn", "api", "--stdin", "--", "read line; exit $line"))
	shim := w.shimOf(app.PID)
	old := runs(t, shim)

	newer := filepath.Join(filepath.Dir(w.home), "sbx-newer")
	build := exec.Command("go", append(append([]string{"build"}, raceFlags...), "-ldflags=-X main.version=newer", "-o", newer, ".")...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	w.stopEngine(syscall.SIGTERM)
	w.binary = newer
	w.ok("serve", "--detach")
	w.goneOn("api", app)
	if now := w.shimOf(app.PID); now != shim {
		t.Errorf("the app is run by %d, was by %d", now, shim)
	}
	if now := runs(t, shim); now == old || now != runs(t, w.enginePID()) {
		t.Errorf("the shim executes %s, the engine %s; it was %s", now, runs(t, w.enginePID()), old)
	}
	feed := w.command("attach", cmd)
	feed.Stdin = strings.NewReader("23\n")
	if out, err := feed.CombinedOutput(); feed.ProcessState == nil || feed.ProcessState.ExitCode() != 23 {
		t.Errorf("its input after the upgrade: %v %s", err, out)
	}
}

// runs is the file that a process executes, as the kernel knows it.
func runs(t *testing.T, pid int) string {
	t.Helper()
	fi, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		t.Fatal(err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func TestATerminalOutlivesTheEngine(t *testing.T) {
	t.Parallel()
	needCommand(t, "bash")
	w := shellWorld(t)
	s := w.sits(90, 25, append([]string{"shell", "api", "--name", "mine", "--record"}, plainBash...)...)
	s.sees(`ready>$`)
	s.does("before=said; clear; echo it was $before", `(?m)^it was said\s*$`)
	id := string(w.terminal().ID)
	pid := w.terminal().PID
	w.stopEngine(syscall.SIGKILL)
	s.sees(`sbx: the engine is away`)
	s.types("\x1d")
	s.ends(0)

	w.ok("serve", "--detach")
	again := w.sits(90, 25, "shell", "--attach", id)
	again.sees(`(?m)^it was said\s*$`)
	again.does("clear; echo still $before", `(?m)^still said\s*$`)
	again.window(70, 18)
	again.does(`until [ "$(stty size)" = "18 70" ]; do sleep 0.1; done; clear; echo it is sma""ll`, `it is small`)
	if now := w.terminal(); now.PID != pid || now.Starts != 1 {
		t.Errorf("the terminal is %+v; its pid was %d", now, pid)
	}
	again.types("exit 5\r")
	again.ends(5)
	if cast := w.ok("shell", "--cast", id); !strings.Contains(cast, "was said") || !strings.Contains(cast, "still said") {
		t.Errorf("the recording has a hole:\n%s", cast)
	}
}

// terminal is the only one.
func (w *world) terminal() processJSON {
	w.t.Helper()
	var list []processJSON
	w.read(&list, "shell", "--list")
	if len(list) != 1 {
		w.t.Fatalf("the terminals are %+v", list)
	}
	return list[0]
}

func TestAStoppedShimGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.counter("api")
	app := w.appOf("api")
	shim := w.shimOf(app.PID)
	if err := syscall.Kill(shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(shim, syscall.SIGCONT) }) // it may have ended
	if r := w.run("exec", "api", "--", "echo here"); r.code != 0 || r.out != "here\n" {
		t.Errorf("a command meanwhile: exit %d %s%s", r.code, r.out, r.err)
	}
	w.goneOn("api", app)

	// And once more while no engine is there.
	w.stopEngine(syscall.SIGKILL)
	if err := syscall.Kill(shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.ok("serve", "--detach")
	w.goneOn("api", app)
}

// TestLimitsOutliveTheEngine by the kernel's groups, or else by those of the
// process itself.
func TestLimitsOutliveTheEngine(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3")
	w := newWorld(t, nil)
	dir := filepath.Join(filepath.Dir(w.home), "limited")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.write(dir, "sbx.toml", "[app]\ncommand = \"sleep 3600\"\n[limits]\nmemory = \"128MB\"\n")
	w.ok("create", "--from", dir, "--name", "api")
	const hog = `python3 -c "b = bytearray(500 << 20); print('got it')"`
	held := func(when string) {
		t.Helper()
		if r := w.run("exec", "api", "--", hog); r.code == 0 || strings.Contains(r.out, "got it") {
			t.Errorf("%s: four times its memory: exit %d %s%s", when, r.code, r.out, r.err)
		}
	}
	held("at first")
	old := strings.TrimSpace(w.ok("spawn", "api", "--", "echo begun; while ! test -e go; do sleep 0.05; done; "+hog))
	w.eventually("it has begun", func() bool { return len(w.logOf("api", "--process", old)) == 1 })
	w.stopEngine(syscall.SIGKILL)
	w.ok("serve", "--detach")
	w.ok("exec", "api", "--", "touch go")
	w.eventually("it has ended", func() bool { return w.process(old).Exit != nil })
	if p := w.process(old); p.Exit.Code == 0 || len(w.logOf("api", "--process", old, "--grep", "got it")) > 0 {
		t.Errorf("what was started before: %+v", p.Exit)
	}
	held("by the next engine")
	w.ok("stop", "api")
}
