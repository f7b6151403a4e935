package process_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/logs"
	"sbx/engine/process"
	"sbx/store"
)

func bubble(t *testing.T, sp engine.ProcessSpec, run func(context.Context, *proc) int, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, begin(t, sp, run)) })
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestAWantedProcessIsStartedWithItsEnvironment(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		p := w.wait(appID, is(engine.ProcessRunning))
		equal(t, "pid", p.PID, 1001)
		equal(t, "port", p.Port, 20000)
		equal(t, "starts", p.Starts, 1)
		equal(t, "restarts", p.Restarts, 0)
		equal(t, "environment", w.box.procs()[0].cmd.Env, map[string]string{"MODE": "test", "PORT": "20000", "PYTHONUNBUFFERED": "1"})
	})
}

func TestAnExitIsAnsweredAndThenGivenUp(t *testing.T) {
	bubble(t, spec(), livesFor(400*time.Millisecond, 1), func(t *testing.T, w *world) {
		p := w.wait(appID, is(engine.ProcessBackoff))
		equal(t, "reason", p.Reason, "exit 1 after 0.4s: again in 2s (restart 1 of 1)")
		equal(t, "pid", p.PID, 0)
		p = w.wait(appID, is(engine.ProcessFailed))
		equal(t, "reason", p.Reason, "exit 1 after 0.4s: start 2 of 2 failed")
		equal(t, "starts", p.Starts, 2)
		equal(t, "restarts", p.Restarts, 1)
		equal(t, "uptime", p.Exit.Uptime.D(), 400*time.Millisecond)
		equal(t, "exits", len(p.Exits), 2)
		equal(t, "between the starts", w.box.procs()[1].at.Sub(w.box.procs()[0].at), 2400*time.Millisecond)

		sig := w.waitForSignal()
		equal(t, "observed", sig.Observed, "exit 1 after 0.4s, 2 failed starts in a row")
		equal(t, "of", sig.Process, appID)
		time.Sleep(time.Hour)
		equal(t, "starts after an hour", len(w.box.procs()), 2)
		equal(t, "signals", len(w.signals()), 1)
	})
}

func TestAnExitOfZeroIsAnExitToo(t *testing.T) {
	bubble(t, spec(), livesFor(time.Second, 0), func(t *testing.T, w *world) {
		equal(t, "reason", w.wait(appID, is(engine.ProcessFailed)).Reason, "exit 0 after 1s: start 2 of 2 failed")
		equal(t, "signals", len(w.signals()), 1)
	})
}

func TestALongLifeResetsTheCount(t *testing.T) {
	bubble(t, spec(), livesFor(3*time.Minute, 1), func(t *testing.T, w *world) {
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		p := w.process(appID)
		equal(t, "state", p.State, engine.ProcessRunning)
		equal(t, "restarts", p.Restarts, 6)
		equal(t, "signals", len(w.signals()), 0)
	})
}

func TestAClockThatWasPutBackHidesNoCrashLoop(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessRunning))
		w.box.mu.Lock()
		w.box.run, w.box.back = livesFor(400*time.Millisecond, 1), time.Hour
		w.box.mu.Unlock()
		w.want(appID, engine.WantRestart)
		time.Sleep(time.Minute)
		synctest.Wait()
		p := w.process(appID)
		equal(t, "state", p.State, engine.ProcessFailed)
		equal(t, "restarts", p.Restarts, 1)
		equal(t, "signals", len(w.signals()), 1)
	})
}

func TestAnOperatorsStopIsNoCrash(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		for range 5 {
			w.want(appID, engine.WantRunning)
			w.wait(appID, is(engine.ProcessRunning))
			w.want(appID, engine.WantStopped)
			p := w.wait(appID, is(engine.ProcessStopped))
			if !p.Exit.Killed || len(p.Exits) != 0 || p.PID != 0 {
				t.Errorf("after a stop: %+v, %d crashes, pid %d", p.Exit, len(p.Exits), p.PID)
			}
		}
		for i := range 5 {
			w.want(appID, engine.WantRestart)
			p := w.wait(appID, func(p engine.Process) bool { return p.State == engine.ProcessRunning && p.Starts == 6+i })
			equal(t, "wanted", p.Wanted, engine.WantRunning)
		}
		equal(t, "restarts by the supervisor", w.process(appID).Restarts, 0)
		equal(t, "signals", len(w.signals()), 0)
	})
}

func TestAnExitInTheMomentOfAStopIsNoCrash(t *testing.T) {
	bubble(t, spec(), livesFor(time.Second, 1), func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessRunning))
		time.Sleep(time.Second - time.Nanosecond)
		w.want(appID, engine.WantStopped)
		p := w.wait(appID, is(engine.ProcessStopped))
		equal(t, "crashes", len(p.Exits), 0)
	})
}

func TestWhatFailedStaysFailedUntilItIsWantedAnew(t *testing.T) {
	bubble(t, spec(), livesFor(time.Second, 1), func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessFailed))
		w.want(appID, engine.WantRunning) // it is already
		time.Sleep(time.Minute)
		equal(t, "starts", len(w.box.procs()), 2)

		w.want(appID, engine.WantRestart)
		w.wait(appID, func(p engine.Process) bool { return p.Starts == 3 && p.State == engine.ProcessRunning })
		// A new start has all its restarts again.
		w.wait(appID, func(p engine.Process) bool { return p.Starts == 4 && p.State == engine.ProcessFailed })

		w.want(appID, engine.WantStopped)
		w.wait(appID, is(engine.ProcessStopped))
		w.want(appID, engine.WantRunning)
		w.wait(appID, func(p engine.Process) bool { return p.Starts == 5 })
	})
}

func TestStoppedAndWantedAgainInOneBreathIsANewWant(t *testing.T) {
	bubble(t, spec(), livesFor(time.Second, 1), func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessFailed))
		w.update(func(tx *store.Tx) error { // two events, and no time between them
			p, err := tx.Process(appID)
			p.Wanted = engine.WantStopped
			err = errors.Join(err, tx.PutProcess(p))
			p.Wanted = engine.WantRunning
			return errors.Join(err, tx.PutProcess(p))
		})
		w.wait(appID, func(p engine.Process) bool { return p.Starts == 3 })
	})
}

func TestARestartIsObeyedInBackoff(t *testing.T) {
	sp := spec()
	sp.RestartDelay = engine.Duration(10 * time.Second)
	bubble(t, sp, livesFor(time.Minute, 1), func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessBackoff))
		began := time.Now()
		w.want(appID, engine.WantRestart)
		p := w.wait(appID, is(engine.ProcessRunning))
		equal(t, "waited", time.Since(began), 0)
		equal(t, "restarts by the supervisor", p.Restarts, 0)
		w.wait(appID, is(engine.ProcessBackoff))
		w.want(appID, engine.WantStopped)
		w.wait(appID, is(engine.ProcessStopped))
		time.Sleep(time.Minute)
		equal(t, "starts", len(w.box.procs()), 2)
	})
}

func TestWhileItIsHealedTheHealerDecides(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "after a delay": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			sp := spec()
			sp.RestartDelay = engine.Duration(delay)
			bubble(t, sp, livesFor(time.Second, 1), func(t *testing.T, w *world) {
				w.wait(appID, is(engine.ProcessRunning))
				w.health(engine.Fault)
				p := w.wait(appID, is(engine.ProcessFailed))
				equal(t, "reason", p.Reason, "exit 1 after 1s: the healer decides")
				time.Sleep(time.Minute)
				equal(t, "starts", len(w.box.procs()), 1)

				w.want(appID, engine.WantRestart) // the healer's
				w.wait(appID, func(p engine.Process) bool { return p.Starts == 2 && p.State == engine.ProcessFailed })

				w.health(engine.Repaired) // and then the supervisor again
				w.wait(appID, func(p engine.Process) bool { return p.Starts == 3 })
			})
		})
	}
}

func TestAHealThatBeginsDuringTheDelayHoldsTheStart(t *testing.T) {
	bubble(t, spec(), livesFor(time.Second, 1), func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessBackoff))
		w.health(engine.Fault)
		p := w.wait(appID, is(engine.ProcessFailed))
		equal(t, "reason", p.Reason, "exit 1 after 1s: the healer decides")
		w.health(engine.GaveUp)
		time.Sleep(time.Minute)
		equal(t, "starts of what is broken", len(w.box.procs()), 1)
	})
}

func TestWhatCannotBeStartedCountsAsAFailedStart(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessRunning))
		w.box.setRefuse(engine.Errorf(engine.Invalid, "directory web is not there"))
		w.want(appID, engine.WantRestart)
		p := w.wait(appID, is(engine.ProcessFailed))
		equal(t, "error", p.Exit.Error, "directory web is not there")
		equal(t, "starts", p.Starts, 3)
		equal(t, "signals", len(w.signals()), 1)
		w.box.setRefuse(nil)
		w.want(appID, engine.WantRestart)
		w.wait(appID, is(engine.ProcessRunning))
	})
}

func TestThePortIsKeptOverRestartsAndTakenByNobodyElse(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		const other = engine.ProcessID("ps-bbbbbbbbbb")
		w.update(func(tx *store.Tx) error {
			return tx.PutProcess(engine.Process{
				ID: other, Sandbox: sandboxID, Name: "watcher", Kind: engine.Supervised,
				Command: engine.Command{Shell: "watch"}, Wanted: engine.WantRunning, State: engine.ProcessStopped,
			})
		})
		a, b := w.wait(appID, is(engine.ProcessRunning)), w.wait(other, is(engine.ProcessRunning))
		if a.Port == b.Port {
			t.Errorf("both have port %d", a.Port)
		}
		w.want(appID, engine.WantRestart)
		p := w.wait(appID, func(p engine.Process) bool { return p.Starts == 2 && p.State == engine.ProcessRunning })
		equal(t, "port", p.Port, a.Port)
	})
}

func TestTheLogOfEachStartBeginsAtLogStart(t *testing.T) {
	says := func(ctx context.Context, p *proc) int {
		io.WriteString(p.out, "hello\nhalf")
		return livesFor(time.Second, 1)(ctx, p)
	}
	bubble(t, spec(), says, func(t *testing.T, w *world) {
		p := w.wait(appID, is(engine.ProcessFailed))
		equal(t, "log start", p.LogStart, 11)
		var lines []string
		for l, err := range w.logs.Lines(t.Context(), appID, engine.Stdout, logs.Query{After: engine.LogPosition(p.LogStart)}) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l.Text)
		}
		equal(t, "lines", lines, []string{"hello", "half"})
	})
}

func TestNothingStartsInASandboxThatIsNotUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), lives)
		const command = engine.ProcessID("ps-cccccccccc")
		w.update(func(tx *store.Tx) error {
			sb := engine.Sandbox{ID: sandboxID, Name: "one", Wanted: engine.Up, State: engine.Warming, Health: engine.Unknown}
			return errors.Join(tx.PutSandbox(&sb), tx.PutProcess(engine.Process{
				ID: appID, Sandbox: sandboxID, Name: engine.AppName, Kind: engine.Supervised,
				Wanted: engine.WantRunning, State: engine.ProcessStopped,
			}))
		})
		w.run()
		w.spawn(command, engine.Command{Shell: "true"}, false)
		time.Sleep(time.Minute)
		equal(t, "starts", len(w.box.procs()), 0)
		w.update(func(tx *store.Tx) error {
			_, err := tx.Fire(sandboxID, engine.Restored)
			return err
		})
		w.wait(appID, is(engine.ProcessRunning))
		w.wait(command, is(engine.ProcessRunning))
	})
}

func TestLeavingStopsEverythingAndWantsItAgain(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		w.spawn("ps-cccccccccc", engine.Command{Shell: "sleep 60"}, false)
		w.wait(appID, is(engine.ProcessRunning))
		w.wait("ps-cccccccccc", is(engine.ProcessRunning))
		w.stop()
		for _, p := range w.box.procs() {
			if p.alive() {
				t.Errorf("pid %d was left running", p.pid)
			}
		}
		p := w.process(appID)
		equal(t, "state", p.State, engine.ProcessStopped)
		equal(t, "wanted", p.Wanted, engine.WantRunning)
		equal(t, "reason", p.Reason, "the engine stopped")
		equal(t, "crashes", len(p.Exits), 0)
		equal(t, "the command's state", w.process("ps-cccccccccc").State, engine.ProcessExited)

		w.run() // the next engine
		w.wait(appID, func(p engine.Process) bool { return p.Starts == 2 && p.State == engine.ProcessRunning })
		equal(t, "commands that ran twice", w.process("ps-cccccccccc").Starts, 1)
	})
}

func TestLeavingInBackoffStops(t *testing.T) {
	bubble(t, spec(), livesFor(time.Second, 1), func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessBackoff))
		w.stop()
		equal(t, "state", w.process(appID).State, engine.ProcessStopped)
	})
}

func TestRemovingASandboxEndsItsProcesses(t *testing.T) {
	bubble(t, spec(), lives, func(t *testing.T, w *world) {
		w.wait(appID, is(engine.ProcessRunning))
		w.update(func(tx *store.Tx) error { return tx.RemoveSandbox(sandboxID) })
		<-w.box.procs()[0].done
	})
}

func TestRecoverMakesThePredecessorsRowsTrue(t *testing.T) {
	w := open(t, t.TempDir(), lives)
	rows := map[engine.ProcessID]engine.Process{
		"ps-running":  {Kind: engine.Supervised, Wanted: engine.WantRunning, State: engine.ProcessRunning, PID: 7, Started: time.Now()},
		"ps-restart":  {Kind: engine.Supervised, Wanted: engine.WantRestart, State: engine.ProcessStopping, PID: 8},
		"ps-backoff":  {Kind: engine.Supervised, Wanted: engine.WantRunning, State: engine.ProcessBackoff, Exit: &engine.Exit{Code: 1}},
		"ps-failed":   {Kind: engine.Supervised, Wanted: engine.WantRunning, State: engine.ProcessFailed, Exit: &engine.Exit{Code: 1}},
		"ps-command":  {Kind: engine.Spawned, Wanted: engine.WantRunning, State: engine.ProcessRunning, PID: 9},
		"ps-waiting":  {Kind: engine.Spawned, Wanted: engine.WantRunning, State: engine.ProcessStarting},
		"ps-finished": {Kind: engine.Spawned, Wanted: engine.WantRunning, State: engine.ProcessExited, Exit: &engine.Exit{}},
	}
	var ended []engine.ProcessID
	w.update(func(tx *store.Tx) (err error) {
		sb := engine.Sandbox{ID: sandboxID, Name: "one"}
		err = tx.PutSandbox(&sb)
		for id, p := range rows {
			p.ID, p.Sandbox, p.Name = id, sandboxID, string(id)
			err = errors.Join(err, tx.PutProcess(p))
		}
		return err
	})
	w.update(func(tx *store.Tx) (err error) {
		ended, err = process.Recover(tx, nil)
		return err
	})
	equal(t, "commands cut", len(ended), 2)
	for id := range rows {
		p := w.process(id)
		if !p.State.Over() || p.PID != 0 || p.Wanted == engine.WantRestart || p.Exit == nil {
			t.Errorf("%s: %s, pid %d, wanted %s, exit %v", id, p.State, p.PID, p.Wanted, p.Exit)
		}
	}
	equal(t, "a command's exit", w.process("ps-command").Exit.Error, "the engine stopped")
	equal(t, "an exit that was true", w.process("ps-backoff").Exit.Code, 1)
	if strings.Contains(w.process("ps-finished").Reason, "stopped") {
		t.Error("rewrote what was over")
	}
}
