package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestStories runs the stories of testdata/script through the real binary.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setupStory,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
		},
	})
}

func setupStory(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "data")
	for k, v := range map[string]string{
		"PATH":              filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME":              env.WorkDir,
		"SBX_HOME":          home,
		"SBX_TIMINGS_SCALE": "0.1",
		"SBX_SERVE_LISTEN":  "none",
		"GORACE":            goRace,
		"USER":              "tester",
	} {
		env.Setenv(k, v)
	}
	// A sandbox's user must be able to reach what is in the story's directory.
	for dir := env.WorkDir; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	env.Defer(func() { endStory(home) })
	return nil
}

// endStory ends what a story left running: the engine, then the shims, which
// outlive it.
func endStory(home string) {
	stopOwner(home)
	for _, pid := range shimsOf(home) {
		if syscall.Kill(pid, syscall.SIGTERM) == nil {
			waitGone(pid)
		}
	}
}

// stopOwner ends the engine of a data directory, if one runs.
func stopOwner(home string) {
	w := &world{home: home, binary: binary, env: append(cleanEnv(), "SBX_HOME="+home, "HOME="+filepath.Dir(home))}
	out, err := w.command("status", "--json").Output()
	if err != nil {
		return
	}
	if _, rest, ok := strings.Cut(string(out), `"pid":`); ok {
		pid := 0
		for _, r := range rest {
			if r < '0' || r > '9' {
				break
			}
			pid = pid*10 + int(r-'0')
		}
		if pid > 0 && syscall.Kill(pid, syscall.SIGTERM) == nil {
			waitGone(pid)
		}
	}
}

func waitGone(pid int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		<-tick.C
	}
}

// eventually runs a command until it succeeds and its output has a text:
// eventually TEXT COMMAND ARGS...
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually TEXT COMMAND [ARGS...]")
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 600 {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		<-tick.C
	}
	ts.Fatalf("%q never came from %v", args[0], args[1:])
}
