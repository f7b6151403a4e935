package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sbx/engine"
)

var handleCases = []testCase{
	{"AHandleTellsHowACommandEndedAndWhatItWrote", handleResult},
	{"AHandleKnowsWhatItIs", handleFacts},
	{"AHandleCallsBackLineByLine", handleCallbacks},
	{"AHandleKeepsTheBeginningAndTheEnd", handleBounds},
	{"AHandleKillsTheTree", handleKills},
	{"TheEndOfItsContextKillsACommand", handleAborts},
	{"AHandleTellsATimeout", handleTimesOut},
	{"WhatACommandLeavesRunningDoesNotHoldItsEnd", handleLeaves},
	{"TenThousandLinesComeInOrder", handleOrder},
	{"TheLastWordsBeforeAnExitAreRead", handleLastWords},
	{"StdinIsTakenUntilItIsClosed", handleStdin},
	{"StdinOfWhatHasExitedIsAnError", handleStdinAfterExit},
	{"AProcessIsFoundByIDPrefixAndPID", processIsFound},
	{"ProcessesAreListedWithTheirExits", processesAreListed},
}

// spawn starts a command in home.
func (s *suite) spawn(t *testing.T, shell string, o engine.SpawnOptions) *engine.Handle {
	t.Helper()
	h, err := engine.SpawnHandle(s.ctx(t), s.Engine, s.home.ID, engine.Command{Shell: shell}, o)
	if err != nil {
		t.Fatalf("spawn %q: %v", shell, err)
	}
	return h
}

// wait waits for its end.
func (s *suite) wait(t *testing.T, h *engine.Handle) engine.Result {
	t.Helper()
	res, err := h.Wait(s.ctx(t))
	if err != nil {
		t.Fatalf("wait for %q: %v", h.Command().Shell, err)
	}
	return res
}

func handleResult(t *testing.T, s *suite) {
	h := s.spawn(t, "echo one; echo two >&2; printf three; exit 3", engine.SpawnOptions{})
	res := s.wait(t, h)
	if res.ExitCode != 3 || res.Success || res.TimedOut || res.Killed || res.Process != h.ID() {
		t.Errorf("the result is %+v, want exit code 3 of %s", res.ExecResult, h.ID())
	}
	if !strings.HasPrefix(res.Stdout, "one\nthree") || res.Stderr != "two\n" {
		t.Errorf("it wrote %q and %q", res.Stdout, res.Stderr)
	}
	if code, ok := h.ExitCode(); !ok || code != 3 {
		t.Errorf("the exit code is %d, %t", code, ok)
	}
	if again := s.wait(t, h); again != res {
		t.Errorf("waited again: %+v, want %+v", again, res)
	}
	if res := s.wait(t, s.spawn(t, "kill -KILL $$", engine.SpawnOptions{})); res.ExitCode != 128+9 || res.Killed {
		t.Errorf("the result of a SIGKILL of its own is %+v, want 137", res.ExecResult)
	}
}

func handleFacts(t *testing.T, s *suite) {
	h := s.spawn(t, "echo $$; exec sleep 60", engine.SpawnOptions{})
	pid, err := h.PID(s.ctx(t))
	if err != nil || pid <= 0 {
		t.Errorf("the pid is %d, %v", pid, err)
	}
	if _, ok := h.ExitCode(); ok {
		t.Error("what runs has an exit code")
	}
	if h.Command().Shell != "echo $$; exec sleep 60" {
		t.Errorf("the command is %q", h.Command().Shell)
	}
	ctx, cancel := context.WithCancel(s.ctx(t))
	cancel()
	if _, err := h.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting no longer: %v", err)
	}
	if killed, err := h.Kill(s.ctx(t)); !killed || err != nil {
		t.Errorf("kill: %t, %v: waiting no longer must not have ended it", killed, err)
	}
}

func handleCallbacks(t *testing.T, s *suite) {
	var got []string // callbacks come one at a time
	add := func(prefix string) func(engine.LogLine) {
		return func(l engine.LogLine) { got = append(got, prefix+l.Text) }
	}
	s.wait(t, s.spawn(t, "echo a; echo b >&2; echo c", engine.SpawnOptions{OnStdout: add("out "), OnStderr: add("err ")}))
	slices.Sort(got)
	if want := []string{"err b", "out a", "out c"}; !slices.Equal(got, want) {
		t.Errorf("called back with %q, want %q", got, want)
	}
}

func handleBounds(t *testing.T, s *suite) {
	res := s.wait(t, s.spawn(t, "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done", engine.SpawnOptions{Keep: 1000}))
	if !strings.HasPrefix(res.Stdout, "line 1\nline 2\n") || !strings.HasSuffix(res.Stdout, "line 1999\nline 2000\n") {
		t.Errorf("kept %q, want the beginning and the end", res.Stdout)
	}
	whole := int64(len("line \n")*2000 + 9 + 2*90 + 3*900 + 4*1001)
	if kept := int64(1000); res.StdoutCut != whole-kept || len(res.Stdout) > 1100 {
		t.Errorf("%d of %d bytes were cut, %d are left", res.StdoutCut, whole, len(res.Stdout))
	}
}

func handleKills(t *testing.T, s *suite) {
	h := s.spawn(t, "(sleep 60; echo never) & wait", engine.SpawnOptions{})
	if _, err := h.PID(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	if killed, err := h.Kill(s.ctx(t)); !killed || err != nil {
		t.Fatalf("kill: %t, %v", killed, err)
	}
	if res := s.wait(t, h); !res.Killed || res.ExitCode <= engine.ExitSignalBase {
		t.Errorf("the result is %+v, want that it was killed", res.ExecResult)
	}
	if killed, err := h.Kill(s.ctx(t)); killed || err != nil {
		t.Errorf("killed what has exited: %t, %v", killed, err)
	}
	if killed, err := engine.KillTree(s.ctx(t), s.Engine, "ps-aaaaaaaaaa"); killed || err != nil {
		t.Errorf("killed what is not there: %t, %v", killed, err)
	}
}

func handleAborts(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(s.ctx(t))
	defer cancel()
	h, err := engine.SpawnHandle(ctx, s.Engine, s.home.ID, engine.Command{Shell: "echo begun; exec sleep 60"},
		engine.SpawnOptions{OnStdout: func(engine.LogLine) { cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	if res := s.wait(t, h); !res.Killed || res.Stdout != "begun\n" {
		t.Errorf("the result is %+v, want it killed after its first line", res)
	}
	ctx, cancel = context.WithCancel(s.ctx(t))
	defer cancel()
	res, err := engine.Exec(ctx, s.Engine, s.home.ID, engine.Command{Shell: "echo begun; exec sleep 60"}, func(engine.LogLine) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("exec: %v, want that it was cancelled", err)
	}
	if p := s.over(t, res.Process); p.Exit == nil || !p.Exit.Killed {
		t.Errorf("the exit is %+v, want that it was killed", p.Exit)
	}
}

func handleTimesOut(t *testing.T, s *suite) {
	h, err := engine.SpawnHandle(s.ctx(t), s.Engine, s.home.ID,
		engine.Command{Shell: "echo early; sleep 60", Timeout: engine.Duration(200 * time.Millisecond)}, engine.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res := s.wait(t, h); res.ExitCode != engine.ExitTimeout || !res.TimedOut || res.Killed || res.Stdout != "early\n" {
		t.Errorf("the result is %+v, want a timeout's", res)
	}
}

func handleLeaves(t *testing.T, s *suite) {
	h := s.spawn(t, "sleep 60 & echo $!", engine.SpawnOptions{})
	res := s.wait(t, h)
	if res.ExitCode != 0 || strings.TrimSpace(res.Stdout) == "" {
		t.Errorf("the result is %+v, want what it wrote and 0", res)
	}
	s.exec(t, engine.Command{Shell: "kill " + strings.TrimSpace(res.Stdout) + " 2>/dev/null"}) // where it can be seen from there
}

func handleOrder(t *testing.T, s *suite) {
	const n = 10_000
	next := 1
	o := engine.SpawnOptions{OnStdout: func(l engine.LogLine) {
		if l.Text != strconv.Itoa(next) && next <= n {
			t.Errorf("line %d is %q", next, l.Text)
			next = n // once is enough
		}
		next++
	}}
	res := s.wait(t, s.spawn(t, fmt.Sprintf("seq %d", n), o))
	if got := strings.Count(res.Stdout, "\n"); next != n+1 || got != n {
		t.Errorf("%d lines were told and %d kept, want %d", next-1, got, n)
	}
}

func handleLastWords(t *testing.T, s *suite) {
	for i := range 8 {
		want := fmt.Sprintf("last words %d", i)
		res := s.wait(t, s.spawn(t, "printf '"+want+"'; printf '"+want+"' >&2; kill -KILL $$", engine.SpawnOptions{}))
		if strings.TrimSpace(res.Stdout) != want || strings.TrimSpace(res.Stderr) != want || res.ExitCode != 137 {
			t.Fatalf("round %d: %+v, want %q on both streams", i, res, want)
		}
	}
}

func handleStdin(t *testing.T, s *suite) {
	h := s.spawn(t, "cat; echo over", engine.SpawnOptions{Stdin: true})
	for _, part := range []string{"one\n", "two", "\n"} {
		if err := h.SendStdin(s.ctx(t), []byte(part)); err != nil {
			t.Fatalf("send %q: %v", part, err)
		}
	}
	if err := h.CloseStdin(s.ctx(t)); err != nil {
		t.Fatalf("close: %v", err)
	}
	wantCode(t, "sending to what is closed", h.SendStdin(s.ctx(t), []byte("x")), engine.Conflict)
	if res := s.wait(t, h); res.Stdout != "one\ntwo\nover\n" {
		t.Errorf("it wrote %q", res.Stdout)
	}
	deaf := s.spawn(t, "exec sleep 60", engine.SpawnOptions{})
	wantCode(t, "sending to what reads no input", deaf.SendStdin(s.ctx(t), []byte("x")), engine.Conflict)
	if _, err := deaf.Kill(s.ctx(t)); err != nil {
		t.Error(err)
	}
}

func handleStdinAfterExit(t *testing.T, s *suite) {
	h := s.spawn(t, "head -n 1", engine.SpawnOptions{Stdin: true})
	if err := h.SendStdin(s.ctx(t), []byte("enough\n")); err != nil {
		t.Fatal(err)
	}
	if res := s.wait(t, h); res.Stdout != "enough\n" {
		t.Errorf("it wrote %q", res.Stdout)
	}
	wantCode(t, "sending to what has exited", h.SendStdin(s.ctx(t), []byte("x")), engine.Conflict)
	again, err := engine.FindHandle(s.ctx(t), s.Engine, string(h.ID()), engine.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res := s.wait(t, again); res.Stdout != "enough\n" || !res.Success {
		t.Errorf("a handle on what is over tells %+v", res)
	}
	wantCode(t, "sending to what has exited", again.SendStdin(s.ctx(t), []byte("x")), engine.Conflict)
}

func processIsFound(t *testing.T, s *suite) {
	h := s.spawn(t, "exec sleep 60", engine.SpawnOptions{})
	pid, err := h.PID(s.ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{string(h.ID()), string(h.ID())[:10], strconv.Itoa(pid)} {
		if p, err := engine.FindProcess(s.ctx(t), s.Engine, ref); err != nil || p.ID != h.ID() || !p.Running() {
			t.Errorf("%q finds %s, %v; want %s running", ref, p.ID, err, h.ID())
		}
	}
	for _, ref := range []string{"", "ps-", "ps-aaaaaaaaaa", "-1", "999999999", "nonsense"} {
		_, err := engine.FindProcess(s.ctx(t), s.Engine, ref)
		wantCode(t, "finding "+strconv.Quote(ref), err, engine.NotFound)
	}
	other, err := engine.FindHandle(s.ctx(t), s.Engine, strconv.Itoa(pid), engine.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if killed, err := other.Kill(s.ctx(t)); !killed || err != nil {
		t.Errorf("kill: %t, %v", killed, err)
	}
	if res := s.wait(t, h); !res.Killed {
		t.Errorf("the result is %+v, want that it was killed by the other handle", res)
	}
	_, err = engine.FindHandle(s.ctx(t), s.Engine, string(s.snapshot(t).App(s.home.ID).ID), engine.SpawnOptions{})
	wantCode(t, "a handle on an app", err, engine.Invalid)
}

func processesAreListed(t *testing.T, s *suite) {
	done, runs := s.spawn(t, "exit 5", engine.SpawnOptions{}), s.spawn(t, "exec sleep 60", engine.SpawnOptions{})
	s.wait(t, done)
	if _, err := runs.PID(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	app := s.snapshot(t).App(s.home.ID).ID
	for _, of := range []engine.SandboxID{s.home.ID, ""} {
		list, err := s.Engine.ListProcesses(s.ctx(t), of)
		if err != nil {
			t.Fatal(err)
		}
		at := func(id engine.ProcessID) int {
			return slices.IndexFunc(list, func(p engine.Process) bool { return p.ID == id })
		}
		a, d, r := at(app), at(done.ID()), at(runs.ID())
		if a < 0 || d < a || r < d {
			t.Fatalf("in %q the app is at %d, the command that is over at %d, the one that runs at %d", of, a, d, r)
		}
		if code, ok := list[d].ExitCode(); !ok || code != 5 || list[d].Running() || list[d].Command.Shell != "exit 5" {
			t.Errorf("the command that is over is %+v", list[d])
		}
		if _, ok := list[r].ExitCode(); ok || !list[r].Running() || list[r].PID == 0 {
			t.Errorf("the command that runs is %+v", list[r])
		}
	}
	if _, err := runs.Kill(s.ctx(t)); err != nil {
		t.Error(err)
	}
	_, err := s.Engine.ListProcesses(s.ctx(t), "sb-aaaaaaaaaa")
	wantCode(t, "the processes of an unknown sandbox", err, engine.NotFound)
}
