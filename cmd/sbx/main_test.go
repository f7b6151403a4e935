package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sbx/engine/agent/agenttest"
)

// binary is the sbx that the end-to-end tests run: the real one.
var binary string

const goRace = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sbx-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// A sandbox's own user must be able to run it: it is its launcher.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// A binary with the race detector sleeps a second at its exit otherwise.
	if err := os.Setenv("GORACE", goRace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "sbx")
	build := exec.Command("go", append(append([]string{"build"}, raceFlags...), "-o", binary, ".")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// needCommand fails a test whose program is missing in CI, and leaves the test
// out elsewhere: make test has said so before.
func needCommand(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed, and CI leaves nothing out", name)
		}
		t.Skipf("%s is not installed", name)
	}
}

// worlds counts them, so that each has ports of its own, also where the tests
// run twice on a host: an engine knows which ports its own apps have been
// given, and nothing of another engine's.
var worlds atomic.Int64

// world is a data directory with the real binary and a scripted model.
type world struct {
	t    *testing.T
	home string
	env  []string
	app  string // the sandbox in question
	// binary is the sbx that commands run.
	binary string
	reqs   func() []agenttest.Request
}

// newWorld makes an empty data directory. Intervals are a tenth of the real
// ones unless a test says otherwise.
func newWorld(t *testing.T, script *agenttest.Script, env ...string) *world {
	t.Helper()
	base, err := os.MkdirTemp("", "sbx-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(base, "data"), binary: binary}
	w.env = append(cleanEnv(), "SBX_HOME="+w.home, "HOME="+base, "SBX_TIMINGS_SCALE=0.1", "SBX_SERVE_LISTEN=none", "SBX_SHIM_IDLE=5s")
	first := 20400 + 100*((13*int64(os.Getpid())+worlds.Add(1))%96)
	w.env = append(w.env, fmt.Sprint("SBX_PORTS_FROM=", first), fmt.Sprint("SBX_PORTS_TO=", first+99))
	if script != nil {
		srv := agenttest.NewServer(*script)
		h := httptest.NewServer(srv)
		t.Cleanup(h.Close)
		w.env = append(w.env, "ANTHROPIC_BASE_URL="+h.URL, "ANTHROPIC_API_KEY=test-key-of-nobody")
		w.reqs = srv.Requests
	}
	w.env = append(w.env, env...)
	t.Cleanup(func() {
		w.stopEngine(syscall.SIGTERM)
		w.endShims()
		if t.Failed() {
			if b, err := os.ReadFile(engineLog(w.home)); err == nil {
				t.Logf("engine.log:\n%s", b)
			}
		}
		if err := os.RemoveAll(base); err != nil {
			t.Errorf("the data directory can't be removed: %v", err)
		}
	})
	return w
}

// cleanEnv is this process's environment without what would reach sbx.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "SBX_") && !strings.HasPrefix(name, "ANTHROPIC_") && name != "HOME" && name != "NO_COLOR" {
			env = append(env, kv)
		}
	}
	return env
}

// result is how one command line ended.
type result struct {
	out, err string
	code     int
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.binary, args...)
	cmd.Env = w.env
	cmd.Dir = filepath.Dir(w.home)
	return cmd
}

// run runs sbx to its end.
func (w *world) run(args ...string) result {
	w.t.Helper()
	var out, errb strings.Builder
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errb
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Start()
	if err != nil {
		w.t.Fatal(err)
	}
	stop := time.AfterFunc(3*time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	defer stop.Stop()
	_ = cmd.Wait() // the exit code says it
	return result{out.String(), errb.String(), cmd.ProcessState.ExitCode()}
}

// ok runs sbx and fails the test unless it exits 0.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	r := w.run(args...)
	if r.code != 0 {
		w.t.Fatalf("sbx %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// read runs sbx with --json into v.
func (w *world) read(v any, args ...string) {
	w.t.Helper()
	out := w.ok(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		w.t.Fatalf("sbx %s: %v in %q", strings.Join(args, " "), err, out)
	}
}

// enginePID is the pid of the engine that runs on the data directory, or 0.
func (w *world) enginePID() int {
	w.t.Helper()
	var st statusJSON
	r := w.run("status", "--json")
	if r.code != 0 || json.Unmarshal([]byte(r.out), &st) != nil {
		return 0
	}
	return st.About.PID
}

// stopEngine ends the engine with a signal and waits until it is gone.
func (w *world) stopEngine(sig syscall.Signal) {
	w.t.Helper()
	pid := w.enginePID()
	if pid == 0 {
		return
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return
	}
	w.eventually("the engine is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

func (w *world) shims() []int { return shimsOf(w.home) }

// shimsOf are the processes that run what outlives a data directory's engine.
func shimsOf(home string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is a good one
	for _, file := range files {
		cmdline, _ := os.ReadFile(file) // it may have ended meanwhile
		if strings.Contains(string(cmdline), "\x00--dir\x00"+filepath.Join(home, "shims")+"/") {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// endShims ends them with all that they run, when no engine is there to start
// it again.
func (w *world) endShims() {
	w.t.Helper()
	for _, pid := range w.shims() {
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended by itself
	}
	w.eventually("the shims are gone", func() bool { return len(w.shims()) == 0 })
}

// eventually waits for something that only another process can make true.
func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within a minute: %s", what)
		}
		<-tick.C
	}
}
