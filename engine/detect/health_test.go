package detect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// fleet is a store with sandboxes whose apps answer as the test says.
type fleet struct {
	t     *testing.T
	store *store.Store

	mu     sync.Mutex
	status map[engine.SandboxID]int // what its app answers; 0: it refuses
	probed map[engine.SandboxID][]time.Time
	hang   bool
}

func newFleet(t *testing.T) *fleet {
	s, err := store.Open(t.Context(), t.TempDir(), store.Options{Sync: "normal"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fleet{t: t, store: s, status: map[engine.SandboxID]int{}, probed: map[engine.SandboxID][]time.Time{}}
}

// run probes the fleet until the returned function is called.
func (f *fleet) run(p HealthPolicy) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	h := &Health{Store: f.store, Box: f.box, Policy: p, Report: f.report}
	done := make(chan error)
	go func() { done <- h.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			f.t.Error(err)
		}
	}
}

func (f *fleet) box(_ context.Context, id engine.SandboxID) (driver.Box, error) {
	return pipeBox{fleet: f, id: id}, nil
}

func (f *fleet) report(id engine.SandboxID, p engine.Probe) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probed[id] = append(f.probed[id], p.At)
}

func (f *fleet) answers(id engine.SandboxID, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status[id] = status
}

func (f *fleet) probes(id engine.SandboxID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.probed[id])
}

// pipeBox answers a probe within this process, so that the bubble's time can
// pass.
type pipeBox struct {
	driver.Box
	fleet *fleet
	id    engine.SandboxID
}

func (b pipeBox) Dial(ctx context.Context, _ int) (net.Conn, error) {
	b.fleet.mu.Lock()
	status, hang := b.fleet.status[b.id], b.fleet.hang
	b.fleet.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if status == 0 {
		return nil, errors.New("nobody listens")
	}
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		buf := make([]byte, 1024)
		if _, err := there.Read(buf); err == nil {
			fmt.Fprintf(there, "HTTP/1.1 %d x\r\n\r\n", status)
		}
	}()
	return here, nil
}

// add puts a sandbox whose app has just been started.
func (f *fleet) add(name string, change func(*engine.Sandbox, *engine.Process)) engine.SandboxID {
	f.t.Helper()
	id := engine.SandboxID("sb-" + name)
	now := time.Now().UTC()
	sb := engine.Sandbox{
		ID: id, Name: name, State: engine.Waiting, Health: engine.Starting, Created: now, HealthChanged: now,
		Spec: engine.Spec{App: engine.ProcessSpec{Command: "x", Health: "/health"}},
	}
	app := engine.Process{
		ID: engine.ProcessID("ps-" + name), Sandbox: id, Name: engine.AppName, Kind: engine.Supervised,
		Wanted: engine.WantRunning, State: engine.ProcessRunning, Port: 4000, Starts: 1, Started: now,
	}
	if change != nil {
		change(&sb, &app)
	}
	f.update(func(tx *store.Tx) error { return errors.Join(tx.PutSandbox(&sb), tx.PutProcess(app)) })
	return id
}

func ready(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Ready }

func (f *fleet) update(fn func(*store.Tx) error) {
	f.t.Helper()
	if err := f.store.Update(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) sandbox(id engine.SandboxID) (sb engine.Sandbox) {
	f.t.Helper()
	f.update(func(tx *store.Tx) (err error) {
		sb, err = tx.Sandbox(id)
		return err
	})
	return sb
}

func (f *fleet) signals(id engine.SandboxID) (list []engine.Signal) {
	f.t.Helper()
	f.update(func(tx *store.Tx) (err error) {
		list, err = tx.Signals(id, time.Time{})
		return err
	})
	return list
}

// bubble runs a test in which time passes as soon as nobody is at work.
func bubble(t *testing.T, fn func(t *testing.T, f *fleet)) {
	synctest.Test(t, func(t *testing.T) { fn(t, newFleet(t)) })
}

func TestAnAppThatAnswersBecomesReady(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("api", nil)
		defer f.run(HealthPolicy{})()
		time.Sleep(10 * time.Second)
		if sb := f.sandbox(id); sb.Health != engine.Starting {
			t.Fatalf("while it refuses it is %s", sb.Health)
		}
		f.answers(id, 200)
		time.Sleep(slowProbe + time.Second)
		if sb := f.sandbox(id); sb.Health != engine.Ready || sb.Reason != "" {
			t.Errorf("it answers and is %s (%s)", sb.Health, sb.Reason)
		}
		if list := f.signals(id); len(list) != 0 {
			t.Errorf("signals: %+v", list)
		}
	})
}

func TestAnAppThatIsNotReadyInTimeIsTroubleOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("api", func(sb *engine.Sandbox, _ *engine.Process) {
			sb.Spec.App.StartTimeout = engine.Duration(30 * time.Second)
		})
		f.answers(id, 503)
		defer f.run(HealthPolicy{})()
		time.Sleep(29 * time.Second)
		if list := f.signals(id); len(list) != 0 {
			t.Fatalf("too early: %+v", list)
		}
		time.Sleep(2 * time.Minute)
		list := f.signals(id)
		if len(list) != 1 || list[0].Kind != engine.HealthSignal || list[0].Process != "ps-api" ||
			list[0].Observed != "not healthy within 30s of its start: 503" || len(list[0].Probes) == 0 {
			t.Errorf("signals: %+v", list)
		}
	})
}

func TestTwoFailuresOfAReadyAppAreTroubleAndOneIsNot(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		once, twice := f.add("once", ready), f.add("twice", ready)
		f.answers(once, 200)
		f.answers(twice, 200)
		defer f.run(HealthPolicy{})()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		before := f.probes(once)
		f.answers(once, 500)
		f.answers(twice, 500)
		for f.probes(once) == before { // it fails once
			time.Sleep(100 * time.Millisecond)
		}
		f.answers(once, 200)
		time.Sleep(time.Minute)
		if list := f.signals(once); len(list) != 0 {
			t.Errorf("after one failure: %+v", list)
		}
		list := f.signals(twice)
		if len(list) != 1 || list[0].Observed != "2 failed probes in a row: 500" || len(list[0].Probes) != 2 {
			t.Fatalf("after two failures: %+v", list)
		}
		if apart := list[0].Probes[1].At.Sub(list[0].Probes[0].At); apart < probeAgain || apart > probeAgain+time.Second {
			t.Errorf("the two were %s apart", apart)
		}
	})
}

func TestABrokenOneThatAnswersHasRecovered(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("api", func(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Broken })
		defer f.run(HealthPolicy{})()
		time.Sleep(10 * time.Minute)
		if list := f.signals(id); len(list) != 0 {
			t.Errorf("a broken one is known to be: %+v", list)
		}
		f.answers(id, 204)
		time.Sleep(steadyProbe + time.Second)
		if sb := f.sandbox(id); sb.Health != engine.Ready {
			t.Errorf("it is %s", sb.Health)
		}
	})
}

func TestAnAppWithNothingToProbeIsUnknownAfterItsMinimumUptime(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("worker", func(sb *engine.Sandbox, _ *engine.Process) {
			sb.Spec.App.Health = ""
			sb.Spec.App.MinUptime = engine.Duration(20 * time.Second)
		})
		defer f.run(HealthPolicy{})()
		time.Sleep(19 * time.Second)
		if sb := f.sandbox(id); sb.Health != engine.Starting {
			t.Errorf("before it it is %s", sb.Health)
		}
		time.Sleep(2 * time.Second)
		if sb := f.sandbox(id); sb.Health != engine.Unknown || sb.Reason != "nothing to probe" {
			t.Errorf("it is %s (%s)", sb.Health, sb.Reason)
		}
	})
}

func TestNobodyIsProbedWhoIsDownOrBeingHealed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		for name, change := range map[string]func(*engine.Sandbox, *engine.Process){
			"healing": func(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Healing },
			"cold":    func(sb *engine.Sandbox, _ *engine.Process) { sb.State = engine.Cold },
			"backoff": func(_ *engine.Sandbox, p *engine.Process) { p.State = engine.ProcessBackoff },
			"failed":  func(_ *engine.Sandbox, p *engine.Process) { p.State = engine.ProcessFailed },
			"restart": func(_ *engine.Sandbox, p *engine.Process) { p.Wanted = engine.WantRestart },
			"no port": func(_ *engine.Sandbox, p *engine.Process) { p.Port = 0 },
		} {
			f.add(name, change)
		}
		gone := f.add("gone", nil)
		defer f.run(HealthPolicy{})()
		synctest.Wait()
		f.update(func(tx *store.Tx) error { return tx.RemoveSandbox(gone) })
		time.Sleep(5 * time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.probed) != 0 {
			t.Errorf("probed: %v", f.probed)
		}
	})
}

func TestHealthySandboxesWriteNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		for i := range 20 {
			f.answers(f.add(fmt.Sprint("n", i), ready), 200)
		}
		before, err := f.store.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stop := f.run(HealthPolicy{})
		time.Sleep(time.Hour)
		stop()
		after, err := f.store.Position(t.Context())
		if err != nil || after != before {
			t.Errorf("an hour of health moved the journal from %v to %v: %v", before, after, err)
		}
		for id, at := range f.probed {
			if n := len(at); n < 170 || n > 181 {
				t.Errorf("%s was probed %d times in an hour", id, n)
			}
		}
	})
}

func TestAResultOfAnEarlierStartDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("api", nil)
		f.answers(id, 200)
		as := target{id: id}
		f.update(func(tx *store.Tx) (err error) {
			as.sandbox, err = tx.Sandbox(id)
			if err == nil {
				as.app, err = tx.Process("ps-api")
			}
			return err
		})
		as.update(time.Now(), HealthPolicy{})
		f.update(func(tx *store.Tx) error { // it is started again while the probe is under way
			app := as.app
			app.Starts++
			return tx.PutProcess(app)
		})
		err := f.store.Update(t.Context(), func(tx *store.Tx) error { return news{fire: engine.Passed}.write(tx, as) })
		if !errors.Is(err, engine.Conflict) {
			t.Errorf("a late pass: %v", err)
		}
		if sb := f.sandbox(id); sb.Health != engine.Starting {
			t.Errorf("it is %s", sb.Health)
		}
	})
}

// TestSlowAppsDoNotHideTrouble: more hang than may be probed at one time, and
// still each is noticed.
func TestSlowAppsDoNotHideTrouble(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		f.hang = true
		var ids []engine.SandboxID
		for i := range 30 {
			ids = append(ids, f.add(fmt.Sprint("n", i), ready))
		}
		defer f.run(HealthPolicy{Probes: 4})()
		time.Sleep(4 * time.Minute)
		for _, id := range ids {
			if list := f.signals(id); len(list) != 1 {
				t.Errorf("%s: %d signals", id, len(list))
			}
		}
	})
}

func TestFailuresBeforeAGapAreForgotten(t *testing.T) {
	as := target{era: era{watch: steady, health: engine.Ready}, since: time.Now()}
	as.record(time.Now(), result{probe: engine.Probe{Detail: "503"}})
	as.woke(time.Hour)
	if n := as.judge(HealthPolicy{}, time.Now(), engine.Probe{Detail: "503"}); n.observed != "" {
		t.Errorf("raised %q for the first failure after an hour's sleep", n.observed)
	}
}

func TestStartingIsProbedOftenAndThenLessOften(t *testing.T) {
	as := target{era: era{watch: starting, health: engine.Starting}}
	var got []time.Duration
	for range 8 {
		got = append(got, as.delay(HealthPolicy{}))
		as.record(time.Time{}, result{})
	}
	if got[0] != firstProbe || got[7] != slowProbe {
		t.Errorf("the delays are %v", got)
	}
	if d := as.delay(HealthPolicy{Scale: 0.01}); d != slowProbe/100 {
		t.Errorf("scaled by 0.01 the delay is %s", d)
	}
}
