//go:build torture

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sbx/engine"
)

// TestTorture kills engines and shims under load, as often as
// SBX_TORTURE_ENGINE and SBX_TORTURE_SHIM say, and checks after each that what
// must live does and that nothing is left or doubled. make torture runs it.
func TestTorture(t *testing.T) {
	w := newWorld(t, nil, "SBX_SHIM_SANDBOXES=2")
	tr := &torture{world: w, names: []string{"a", "b", "c", "d", "e"}}
	for _, name := range tr.names {
		w.counter(name)
	}
	began := time.Now()
	engines, shims := times(t, "SBX_TORTURE_ENGINE", 20), times(t, "SBX_TORTURE_SHIM", 10)
	for i := range engines {
		tr.killEngine(i)
	}
	for _, name := range tr.names {
		w.unbroken(name)
	}
	t.Logf("%d kills of the engine in %s: %d commands of %d told no exit code", engines, time.Since(began).Round(time.Second), tr.cut, engines*len(tr.names))
	began = time.Now()
	for i := range shims {
		tr.killShim(i)
	}
	t.Logf("%d kills of a shim in %s; until all ran again: %s at most", shims, time.Since(began).Round(time.Second), tr.worst.Round(time.Millisecond))
	began = time.Now()
	w.ok("stop", "--all", "--yes")
	w.eventually("nothing is left", func() bool { return len(w.processes()) == 0 })
	t.Logf("all stopped in %s", time.Since(began).Round(time.Second))
	w.stopEngine(syscall.SIGTERM)
	began = time.Now()
	w.eventually("the shims end by themselves", func() bool { return len(w.shims()) == 0 })
	t.Logf("the shims have ended after %s", time.Since(began).Round(time.Second))
}

func times(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

type torture struct {
	*world
	names []string
	cut   int
	worst time.Duration
}

// killEngine kills it while commands are being ordered.
func (tr *torture) killEngine(round int) {
	tr.t.Helper()
	if tr.enginePID() == 0 {
		tr.ok("serve", "--detach")
	}
	before := map[string]engine.Process{}
	for _, name := range tr.names {
		before[name] = tr.appOf(name)
	}
	pid := tr.enginePID()
	var load sync.WaitGroup
	var mu sync.Mutex
	for _, name := range tr.names {
		load.Go(func() {
			if r := tr.run("exec", name, "--", fmt.Sprintf("echo round %d; seq 1 2000; exit 3", round)); r.code != 3 {
				mu.Lock()
				tr.cut++
				mu.Unlock()
			}
		})
	}
	time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // where it hits is to be anywhere
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		tr.t.Fatal(err)
	}
	if r := tr.run("serve", "--detach"); r.code != 0 && !strings.Contains(r.err, "owns") { // a command was faster
		tr.t.Fatalf("no engine starts: %s", r.err)
	}
	load.Wait()
	for _, name := range tr.names {
		was, now := before[name], tr.appOf(name)
		if now.PID != was.PID || now.Starts != was.Starts || now.Restarts != was.Restarts {
			tr.t.Fatalf("round %d: the app of %s is %+v, was %+v", round, name, now, was)
		}
	}
}

// killShim kills one of them, and looks at the apps of all.
func (tr *torture) killShim(round int) {
	tr.t.Helper()
	if tr.enginePID() == 0 {
		tr.ok("serve", "--detach")
	}
	before, of := map[string]engine.Process{}, map[string]int{}
	for _, name := range tr.names {
		before[name] = tr.appOf(name)
		of[name] = tr.shimOf(before[name].PID)
	}
	victim := of[tr.names[rand.IntN(len(tr.names))]]
	tree := tr.underneath(victim)
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		tr.t.Fatal(err)
	}
	began, lost := time.Now(), 0
	for _, name := range tr.names {
		was := before[name]
		if of[name] != victim {
			if now := tr.appOf(name); now.PID != was.PID || now.Starts != was.Starts {
				tr.t.Fatalf("round %d: the app of %s is %+v, was %+v", round, name, now, was)
			}
			continue
		}
		lost++
		tr.eventually(name+" runs again", func() bool {
			p := tr.appOf(name)
			return p.State == engine.ProcessRunning && p.PID != was.PID
		})
	}
	tr.worst = max(tr.worst, time.Since(began))
	tr.eventually("nothing of it is left", func() bool {
		return !slices.ContainsFunc(tree, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
	if lost == 0 || lost > 2 {
		tr.t.Fatalf("round %d: %d sandboxes were that shim's", round, lost)
	}
	for _, name := range tr.names { // one of each, no more
		if n := strings.Count(strings.Join(tr.processes(), "\n"), strings.TrimPrefix(string(tr.appOf(name).Sandbox), engine.SandboxPrefix)); n == 0 {
			tr.t.Fatalf("round %d: nothing of %s runs", round, name)
		}
	}
}
