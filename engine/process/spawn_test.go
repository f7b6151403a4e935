package process_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/logs"
	"sbx/store"
)

const command = engine.ProcessID("ps-cccccccccc")

func TestACommandRunsOnceAndItsLogsEnd(t *testing.T) {
	says := func(_ context.Context, p *proc) int {
		io.WriteString(p.out, "hello\n")
		return 3
	}
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, spec(), lives)
		w.wait(appID, is(engine.ProcessRunning))
		w.box.plays(says)
		w.spawn(command, engine.Command{Shell: "greet", Env: map[string]string{"A": "b"}}, false)
		p := w.wait(command, is(engine.ProcessExited))
		equal(t, "code", p.Exit.Code, 3)
		equal(t, "starts", p.Starts, 1)
		env := w.box.procs()[1].cmd.Env
		if env["PORT"] != "20000" || env["MODE"] != "test" || env["A"] != "b" {
			t.Errorf("its environment is %v", env)
		}
		w.ends(command)
		time.Sleep(time.Minute)
		equal(t, "starts", len(w.box.procs()), 2)
		equal(t, "signals", len(w.signals()), 0)
	})
}

// ends follows both streams to their ends.
func (w *world) ends(id engine.ProcessID) {
	w.t.Helper()
	for _, st := range []engine.Stream{engine.Stdout, engine.Stderr} {
		for _, err := range w.logs.Lines(w.t.Context(), id, st, logs.Query{Follow: true}) {
			if err != nil {
				w.t.Error(err)
			}
		}
	}
}

func TestATimeoutEndsACommandWith124(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		w.spawn(command, engine.Command{Shell: "sleep 60", Timeout: engine.Duration(3 * time.Second)}, false)
		p := w.wait(command, is(engine.ProcessExited))
		equal(t, "exit", *p.Exit, engine.Exit{Code: 124, TimedOut: true, At: p.Exit.At, Uptime: engine.Duration(3 * time.Second)})
		equal(t, "the driver's own timeout", w.box.procs()[len(w.box.procs())-1].cmd.Timeout, 0)
	})
}

func TestAKilledCommandIsKilled(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		w.spawn(command, engine.Command{Shell: "sleep 60"}, false)
		w.wait(command, is(engine.ProcessRunning))
		w.want(command, engine.WantStopped)
		p := w.wait(command, is(engine.ProcessExited))
		if !p.Exit.Killed || p.Exit.Code != 143 || p.Reason != "killed" {
			t.Errorf("%+v, %q", p.Exit, p.Reason)
		}
		w.ends(command)
	})
}

func TestACommandThatCannotBeStartedEndsWithItsLogs(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessRunning))
		w.box.setRefuse(errors.New("no more processes"))
		w.spawn(command, engine.Command{Shell: "true"}, false)
		p := w.wait(command, is(engine.ProcessExited))
		equal(t, "code", p.Exit.Code, engine.ExitNotExecutable)
		equal(t, "error", p.Exit.Error, "no more processes")
		w.ends(command)
		equal(t, "signals", len(w.signals()), 0)
	})
}

func TestACommandKilledBeforeItsStartNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, spec(), lives)
		w.wait(appID, is(engine.ProcessRunning))
		w.update(func(tx *store.Tx) error {
			return tx.PutProcess(engine.Process{
				ID: command, Sandbox: sandboxID, Kind: engine.Spawned,
				Wanted: engine.WantStopped, State: engine.ProcessStarting,
			})
		})
		p := w.wait(command, is(engine.ProcessExited))
		equal(t, "starts", p.Starts, 0)
		equal(t, "killed", p.Exit.Killed, true)
		w.ends(command)
	})
}

func TestInputReachesACommandThatReads(t *testing.T) {
	reads := func(_ context.Context, p *proc) int {
		if p.stdin == nil {
			return 0
		}
		b, err := io.ReadAll(p.stdin)
		if err != nil || string(b) != "hello" {
			return 1
		}
		return 42
	}
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, spec(), lives)
		w.wait(appID, is(engine.ProcessRunning))
		if _, err := w.sup.Input(appID); !errors.Is(err, engine.Conflict) {
			t.Errorf("input of an app: %v", err)
		}
		w.box.plays(reads)
		w.spawn(command, engine.Command{Shell: "cat"}, true)
		w.wait(command, is(engine.ProcessRunning))
		in, err := w.sup.Input(command)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, "hello"); err != nil {
			t.Fatal(err)
		}
		in.Close()
		equal(t, "code", w.wait(command, is(engine.ProcessExited)).Exit.Code, 42)
		synctest.Wait()
		if _, err := w.sup.Input(command); !errors.Is(err, engine.Conflict) {
			t.Errorf("input of one that has exited: %v", err)
		}
	})
}
