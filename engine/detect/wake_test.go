//go:build linux

package detect

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
)

// suspend is a host that can be suspended: its clocks in the bubble.
type suspend struct{ slept atomic.Int64 }

func (s *suspend) read() time.Duration      { return time.Duration(s.slept.Load()) }
func (s *suspend) sleepFor(d time.Duration) { s.slept.Add(int64(d)) }

func TestASuspendedHostIsAWakeAndDropsConnectionsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var host suspend
		var did []string
		f := &fleet{t: t}
		w := &Wake{
			Suspended: host.read,
			Drop:      func() { did = append(did, "drop") },
			Probe:     func(why string) { did = append(did, why) },
		}
		stop := f.goRun(w.Run)
		time.Sleep(10 * time.Minute)
		host.sleepFor(14 * time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(did) != 0 {
			t.Fatalf("without a jump of 15s: %q", did)
		}
		host.sleepFor(3 * time.Minute)
		time.Sleep(time.Minute)
		stop()
		if got := strings.Join(did, ", "); got != "drop, the host slept for 3m0s" {
			t.Errorf("it did: %s", got)
		}
	})
}

func TestAnEngineThatStoodStillSaysSo(t *testing.T) {
	var said string
	w := &Wake{Probe: func(why string) { said = why }}
	w.woke(t.Context(), 40*time.Second, 0)
	if said != "the engine stood still for 40s" {
		t.Errorf("it said %q", said)
	}
}

func TestAWakeIsJudgedByHowLateATickIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeat(5*time.Second, func() time.Duration { return 0 })
		defer b.timer.Stop()
		<-b.timer.C
		if late, slept := b.late(); late != 0 || slept != 0 {
			t.Errorf("in time, and late by %s and %s", late, slept)
		}
		time.Sleep(40 * time.Second)
		if late, slept := b.late(); late != 40*time.Second || slept != 0 {
			t.Errorf("late by %s and %s", late, slept)
		}
		b.next()
		<-b.timer.C
		if late, _ := b.late(); late != 0 {
			t.Errorf("the next one is late by %s", late)
		}
	})
}

func TestAStepOfTheWallClockIsNoSleep(t *testing.T) {
	before := Suspended()
	if before < 0 {
		t.Fatalf("suspended for %s", before)
	}
	boot, err := kernelClock(clockBoottime)
	if err != 0 || boot <= 0 || boot > time.Since(time.Unix(0, 0))/2 {
		t.Errorf("the clock since the boot says %s (%v): is it the wall clock?", boot, err)
	}
	if d := Suspended() - before; d < -time.Second || d > time.Second {
		t.Errorf("slept for %s between two lines", d)
	}
}

// wakeRig is a fleet with a health detector on a host that can be suspended.
func wakeRig(f *fleet) (host *suspend, h *Health, stop func()) {
	host = &suspend{}
	h = &Health{Store: f.store, Box: f.box, Report: f.report, Suspended: host.read}
	return host, h, f.goRun(h.Run)
}

func TestAWakeProbesEverySandboxAtOnceAndRaisesForThoseThatFail(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		well, sick := f.add("well", ready), f.add("sick", ready)
		starts := f.add("starts", nil)
		f.answers(well, 200)
		f.answers(sick, 200)
		_, h, stop := wakeRig(f)
		defer stop()
		time.Sleep(62 * time.Second) // just after the steady probes
		f.answers(sick, 0)
		before := f.probes(well)
		h.Woke("the host slept for 3m0s")
		time.Sleep(time.Second)
		if n := f.probes(well); n != before+1 {
			t.Errorf("probed %d times at once, want 1", n-before)
		}
		list := f.signals(sick)
		if len(list) != 1 || list[0].Kind != engine.WakeSignal || !strings.HasPrefix(list[0].Observed, "the host slept for 3m0s; the first probe after it: ") {
			t.Fatalf("signals: %+v", list)
		}
		if n := len(f.signals(well)); n != 0 {
			t.Errorf("%d signals of one that answers", n)
		}
		for _, s := range f.signals(starts) {
			if s.Kind == engine.WakeSignal {
				t.Errorf("a wake signal of one that is starting: %+v", s)
			}
		}
		// It goes on failing: that is the app's own trouble, from two failures on.
		time.Sleep(15 * time.Second)
		if n := len(f.signals(sick)); n != 1 {
			t.Fatalf("one failure after the wake raised: %+v", f.signals(sick))
		}
		time.Sleep(6 * time.Second)
		if list := f.signals(sick); len(list) != 2 || list[1].Kind != engine.HealthSignal {
			t.Errorf("signals: %+v", list)
		}
	})
}

func TestFailuresThatASleepLiesBetweenDoNotAddUp(t *testing.T) {
	for name, slept := range map[string]time.Duration{"awake": 0, "asleep": time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				id := f.add("web", ready)
				f.answers(id, 200)
				host, _, stop := wakeRig(f)
				defer stop()
				time.Sleep(59 * time.Second)
				f.answers(id, 503)
				time.Sleep(5 * time.Second) // one failure
				host.sleepFor(slept)
				time.Sleep(8 * time.Second) // and another
				f.answers(id, 200)
				time.Sleep(5 * time.Minute)
				if n := len(f.signals(id)); (n == 0) != (slept > 0) {
					t.Errorf("%d signals", n)
				}
			})
		})
	}
}

func TestAProbeThatAWakeFindsUnderWayIsMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", ready)
		f.answers(id, 200)
		_, h, stop := wakeRig(f)
		defer stop()
		time.Sleep(59 * time.Second)
		f.answers(id, 503)
		time.Sleep(5 * time.Second) // one failure
		f.mu.Lock()
		f.hang = true
		f.mu.Unlock()
		time.Sleep(8 * time.Second) // and another under way
		h.Woke("the engine stood still for 1m0s")
		f.mu.Lock()
		f.hang = false
		f.mu.Unlock()
		f.answers(id, 200)
		before := f.probes(id)
		time.Sleep(5 * time.Second)
		if n := f.probes(id) - before; n != 1 {
			t.Errorf("it was probed %d times after the one that was under way", n)
		}
		time.Sleep(5 * time.Minute)
		if list := f.signals(id); len(list) != 0 {
			t.Errorf("raised %+v", list)
		}
	})
}

func TestAProbeThatTheHostSleptInDoesNotCount(t *testing.T) {
	for name, slept := range map[string]time.Duration{"awake": 0, "asleep": time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				id := f.add("web", ready)
				f.answers(id, 200)
				host, _, stop := wakeRig(f)
				defer stop()
				time.Sleep(59 * time.Second)
				f.answers(id, 503)
				time.Sleep(5 * time.Second) // one failure
				f.mu.Lock()
				f.hang = true // the second takes five seconds
				f.mu.Unlock()
				time.Sleep(8 * time.Second)
				host.sleepFor(slept)
				time.Sleep(3 * time.Second)
				f.mu.Lock()
				f.hang = false
				f.mu.Unlock()
				f.answers(id, 200)
				time.Sleep(5 * time.Minute)
				if n := len(f.signals(id)); (n == 0) != (slept > 0) {
					t.Errorf("%d signals", n)
				}
			})
		})
	}
}

func TestABrokenOneThatAnsweredAllAlongIsNotRecovered(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		broken := func(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Broken }
		stuck, quiet, mended := f.add("stuck", broken), f.add("quiet", broken), f.add("mended", broken)
		f.answers(stuck, 200)
		f.answers(quiet, 200)
		stalled := atomic.Bool{}
		stalled.Store(true)
		h := &Health{Store: f.store, Box: f.box, Report: f.report, Stuck: func(app engine.Process) string {
			if app.Sandbox == stuck && stalled.Load() {
				return "Bundling…"
			}
			return ""
		}}
		defer f.goRun(h.Run)()
		time.Sleep(2 * time.Minute)
		f.answers(mended, 200)
		time.Sleep(time.Minute)
		for id, want := range map[engine.SandboxID]engine.Health{stuck: engine.Broken, quiet: engine.Broken, mended: engine.Ready} {
			if sb := f.sandbox(id); sb.Health != want {
				t.Errorf("%s is %s, want %s", id, sb.Health, want)
			}
		}
		stalled.Store(false)
		time.Sleep(time.Minute)
		if sb := f.sandbox(stuck); sb.Health != engine.Ready {
			t.Errorf("its log goes on, and it is %s", sb.Health)
		}
	})
}
