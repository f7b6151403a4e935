package process_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/process"
	"sbx/store"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// exits are exits with an uptime each and so much time before each start.
func exits(between time.Duration, uptimes ...time.Duration) []engine.Exit {
	var list []engine.Exit
	at := t0
	for _, up := range uptimes {
		at = at.Add(between + up)
		list = append(list, engine.Exit{Code: 1, At: at, Uptime: engine.Duration(up)})
	}
	return list
}

func TestDecide(t *testing.T) {
	const s = time.Second
	raised := func(ago time.Duration, v engine.VerdictAction) func(time.Time) *engine.Signal {
		return func(now time.Time) *engine.Signal {
			sig := &engine.Signal{At: now.Add(-ago)}
			if v != "" {
				sig.Verdict = &engine.Verdict{Action: v}
			}
			return sig
		}
	}
	for _, c := range []struct {
		name    string
		max     int
		delay   time.Duration
		exits   []engine.Exit
		raised  func(time.Time) *engine.Signal
		healing bool
		want    process.Decision
	}{
		{
			name: "the first exit is answered", max: 1, delay: 2 * s, exits: exits(s, 400*time.Millisecond),
			want: process.Decision{Restart: true, After: 2 * s, Reason: "exit 1 after 0.4s: again in 2s (restart 1 of 1)", Observed: "exit 1 after 0.4s"},
		},
		{
			name: "the second in a row is the healer's", max: 1, delay: 2 * s, exits: exits(2*s, 400*time.Millisecond, 400*time.Millisecond),
			want: process.Decision{Raise: true, After: 2 * s, Reason: "exit 1 after 0.4s: start 2 of 2 failed", Observed: "exit 1 after 0.4s, 2 failed starts in a row"},
		},
		{
			name: "a long life before a failed start counts too", max: 1, exits: exits(s, time.Hour, s),
			want: process.Decision{Raise: true, Reason: "exit 1 after 1s: start 2 of 2 failed", Observed: "exit 1 after 1s, 2 exits in a row"},
		},
		{
			name: "a long life begins a new row", max: 1, exits: exits(s, s, time.Hour),
			want: process.Decision{Restart: true, Reason: "exit 1 after 1h: started again (restart 1 of 1)", Observed: "exit 1 after 1h"},
		},
		{
			name: "three in five minutes are a loop", max: 1, exits: exits(s, 12*s, 12*s, 12*s),
			want: process.Decision{Restart: true, Raise: true, Reason: "exit 1 after 12s: started again (restart 1 of 1)", Observed: "exit 1 after 12s, 3 exits within 5m"},
		},
		{
			name: "three in six minutes are not", max: 1, exits: exits(s, 2*time.Minute, 3*time.Minute, 3*time.Minute),
			want: process.Decision{Restart: true, Reason: "exit 1 after 3m: started again (restart 1 of 1)", Observed: "exit 1 after 3m"},
		},
		{
			name: "two failed starts raise, whatever may be restarted", max: 99, exits: exits(s, s, s),
			want: process.Decision{Restart: true, Raise: true, Reason: "exit 1 after 1s: started again (restart 2 of 99)", Observed: "exit 1 after 1s, 2 quick exits within 15s"},
		},
		{
			name: "no second signal while the first waits", max: 99, exits: exits(s, s, s, s), raised: raised(s, ""),
			want: process.Decision{Restart: true, Reason: "exit 1 after 1s: started again (restart 3 of 99)", Observed: "exit 1 after 1s, 2 quick exits within 15s"},
		},
		{
			name: "nor soon after it was judged", max: 99, exits: exits(s, s, s, s), raised: raised(20*s, engine.Ignore),
			want: process.Decision{Restart: true, Reason: "exit 1 after 1s: started again (restart 3 of 99)", Observed: "exit 1 after 1s, 2 quick exits within 15s"},
		},
		{
			name: "but when the verdict was to wait", max: 99, exits: exits(s, s, s, s), raised: raised(20*s, engine.Wait),
			want: process.Decision{Restart: true, Raise: true, Reason: "exit 1 after 1s: started again (restart 3 of 99)", Observed: "exit 1 after 1s, 2 quick exits within 15s"},
		},
		{
			name: "and after the window", max: 99, exits: exits(s, s, s, s), raised: raised(6*time.Minute, engine.Ignore),
			want: process.Decision{Restart: true, Raise: true, Reason: "exit 1 after 1s: started again (restart 3 of 99)", Observed: "exit 1 after 1s, 2 quick exits within 15s"},
		},
		{
			name: "giving up is news once the last was judged", max: 1, exits: exits(s, s, s), raised: raised(s, engine.Ignore),
			want: process.Decision{Raise: true, Reason: "exit 1 after 1s: start 2 of 2 failed", Observed: "exit 1 after 1s, 2 failed starts in a row"},
		},
		{
			name: "and isn't while it waits", max: 1, exits: exits(s, s, s), raised: raised(s, ""),
			want: process.Decision{Reason: "exit 1 after 1s: start 2 of 2 failed", Observed: "exit 1 after 1s, 2 failed starts in a row"},
		},
		{
			name: "no restarts at all", max: 0, exits: exits(s, time.Hour),
			want: process.Decision{Raise: true, Reason: "exit 1 after 1h: max_restarts is 0", Observed: "exit 1 after 1h"},
		},
		{
			name: "a long delay is cut after a quick exit", max: 1, delay: time.Minute, exits: exits(s, s),
			want: process.Decision{Restart: true, After: 10 * s, Reason: "exit 1 after 1s: again in 10s (restart 1 of 1)", Observed: "exit 1 after 1s"},
		},
		{
			name: "and kept after a long life", max: 1, delay: time.Minute, exits: exits(s, time.Hour),
			want: process.Decision{Restart: true, After: time.Minute, Reason: "exit 1 after 1h: again in 1m (restart 1 of 1)", Observed: "exit 1 after 1h"},
		},
		{
			name: "the healer decides about restarts", max: 1, exits: exits(s, s), healing: true,
			want: process.Decision{Held: true, Reason: "exit 1 after 1s: the healer decides", Observed: "exit 1 after 1s"},
		},
		{
			name: "and is told of giving up", max: 1, exits: exits(s, s, s), healing: true,
			want: process.Decision{Raise: true, Reason: "exit 1 after 1s: the healer decides", Observed: "exit 1 after 1s, 2 failed starts in a row"},
		},
		{
			name: "what could not be started is a failed start", max: 1, exits: []engine.Exit{{Code: 126, Error: "no such directory", At: t0}},
			want: process.Decision{Restart: true, Reason: "not started: no such directory: started again (restart 1 of 1)", Observed: "not started: no such directory"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := spec()
			sp.MaxRestarts, sp.RestartDelay = c.max, engine.Duration(c.delay)
			now := c.exits[len(c.exits)-1].At
			past := process.Past{Exits: c.exits, Healing: c.healing}
			if c.raised != nil {
				past.Raised = c.raised(now)
			}
			if d := cmp.Diff(c.want, process.Decide(now, process.Policy{}, sp, past)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestALifeOfASecondRaisesInFifteenWhateverTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, spec(), lives)
		w.wait(appID, is(engine.ProcessRunning))
		w.box.plays(livesFor(time.Second, 1))
		// 21 processes, each with another delay and another phase of the clock.
		var began [21]time.Time
		for i := range began {
			sp := spec()
			sp.Name, sp.MaxRestarts = fmt.Sprint("p", i), 1000
			sp.RestartDelay = engine.Duration(i) * engine.Duration(500*time.Millisecond)
			sp.MinUptime = []engine.Duration{0, engine.Duration(500 * time.Millisecond), engine.Duration(10 * time.Second)}[i%3]
			began[i] = time.Now()
			w.add(sp)
			time.Sleep(370 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		raised := map[engine.ProcessID]time.Time{}
		for _, sig := range w.signals() {
			raised[sig.Process] = sig.At
		}
		for i, at := range began {
			took := raised[engine.ProcessID(fmt.Sprint("ps-p", i))].Sub(at)
			if took < 0 || took > 15*time.Second {
				t.Errorf("with a delay of %ds/2 it raised after %s", i, took)
			}
		}
	})
}

// add gives the sandbox one more supervised process.
func (w *world) add(sp engine.ProcessSpec) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		sb, err := tx.Sandbox(sandboxID)
		if err != nil {
			return err
		}
		sb.Spec.Processes = append(sb.Spec.Processes, sp)
		return errors.Join(tx.PutSandbox(&sb), tx.PutProcess(engine.Process{
			ID: engine.ProcessID("ps-" + sp.Name), Sandbox: sandboxID, Name: sp.Name, Kind: engine.Supervised,
			Wanted: engine.WantRunning, State: engine.ProcessStopped,
		}))
	})
}

func TestACrashLoopRaisesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := spec()
		sp.MaxRestarts, sp.RestartDelay = 1000, engine.Duration(8*time.Second)
		w := begin(t, sp, livesFor(2*time.Second, 1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(w.signals()); n != 1 {
			t.Errorf("%d signals in a minute of crashes", n)
		}
		if n := len(w.box.procs()); n < 6 {
			t.Errorf("the policy allows restarts, there were %d", n)
		}
		w.judge(engine.Ignore)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if n := len(w.signals()); n != 2 {
			t.Errorf("%d signals, though the second wasn't judged", n)
		}
		p := w.process(appID)
		if len(p.Exits) != engine.KeptExits || p.Restarts != p.Starts-1 {
			t.Errorf("%d exits kept, %d starts, %d restarts", len(p.Exits), p.Starts, p.Restarts)
		}
	})
}

func (w *world) waitForSignal() engine.Signal {
	w.t.Helper()
	for ev, err := range w.store.Events(w.t.Context(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		if b, ok := ev.Body.(engine.SignalRaised); ok {
			return b.Signal
		}
	}
	panic("unreachable")
}
