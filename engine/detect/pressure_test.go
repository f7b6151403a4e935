package detect

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// meter is what each box says it uses.
type meter struct {
	mu    sync.Mutex
	usage func(check int) (engine.Usage, error)
	taken int
}

type meteredBox struct {
	driver.Box
	m *meter
}

func (b meteredBox) Usage(context.Context) (engine.Usage, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	b.m.taken++
	return b.m.usage(b.m.taken)
}

func (f *fleet) pressed(p PressurePolicy, usage func(check int) (engine.Usage, error)) (*meter, func()) {
	m := &meter{usage: usage}
	d := &Pressure{Store: f.store, Policy: p, Box: func(context.Context, engine.SandboxID) (driver.Box, error) {
		return meteredBox{m: m}, nil
	}}
	return m, f.goRun(d.Run)
}

func always(u engine.Usage) func(int) (engine.Usage, error) {
	return func(int) (engine.Usage, error) { return u, nil }
}

func within(memory engine.Size, cpu float64) func(*engine.Sandbox, *engine.Process) {
	return func(sb *engine.Sandbox, _ *engine.Process) {
		sb.Health, sb.Spec.Limits = engine.Ready, engine.Limits{Memory: memory, CPU: cpu}
	}
}

func TestMemoryNearItsLimitForFourChecksIsPressure(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", within(engine.GiB, 0))
		_, stop := f.pressed(PressurePolicy{}, always(engine.Usage{Memory: 950 * engine.MiB}))
		defer stop()
		time.Sleep(59 * time.Second)
		if list := f.signals(id); len(list) != 0 {
			t.Fatalf("too early: %+v", list)
		}
		time.Sleep(2 * time.Second)
		list := f.signals(id)
		if len(list) != 1 || list[0].Kind != engine.PressureSignal || list[0].Process != "ps-web" ||
			list[0].Observed != "memory 950MiB of 1024MiB (93%), 4 checks in a row" {
			t.Fatalf("signals: %+v", list)
		}
		time.Sleep(4 * time.Minute)
		if n := len(f.signals(id)); n != 1 {
			t.Errorf("while it goes on it is told %d times in 4 minutes", n)
		}
	})
}

func TestCPUAtItsLimitForFourChecksIsPressure(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", within(0, 0.5))
		_, stop := f.pressed(PressurePolicy{Scale: 0.1}, always(engine.Usage{CPU: 0.49}))
		defer stop()
		time.Sleep(6100 * time.Millisecond)
		if list := f.signals(id); len(list) != 1 || !strings.HasPrefix(list[0].Observed, "cpu 0.5 of 0.5 cores, 4 checks") {
			t.Errorf("signals: %+v", list)
		}
	})
}

func TestWhatIsNoPressure(t *testing.T) {
	high := engine.Usage{Memory: 990 * engine.MiB, CPU: 8}
	for name, c := range map[string]struct {
		change func(*engine.Sandbox, *engine.Process)
		usage  func(int) (engine.Usage, error)
	}{
		"no limit, on a busy host": {within(0, 0), always(high)},
		"memory at the threshold":  {within(1000*engine.MiB, 0), always(engine.Usage{Memory: 900 * engine.MiB})},
		"cpu below the limit":      {within(0, 1), always(engine.Usage{CPU: 0.9})},
		"one check in four passes": {within(engine.GiB, 1), func(n int) (engine.Usage, error) {
			if n%4 == 0 {
				return engine.Usage{Memory: 100 * engine.MiB}, nil
			}
			return high, nil
		}},
		"one check in four can't be made": {within(engine.GiB, 1), func(n int) (engine.Usage, error) {
			if n%4 == 0 {
				return high, errors.New("no such cgroup")
			}
			return high, nil
		}},
		"a build while it starts": {func(sb *engine.Sandbox, p *engine.Process) {
			within(0, 1)(sb, p)
			sb.Health = engine.Starting
		}, always(high)},
		"a command that somebody runs": {func(sb *engine.Sandbox, p *engine.Process) {
			within(0, 1)(sb, p)
			sb.State = engine.Running
		}, always(high)},
		"being healed": {func(sb *engine.Sandbox, p *engine.Process) {
			within(engine.GiB, 1)(sb, p)
			sb.Health = engine.Healing
		}, always(high)},
		"stopped": {func(sb *engine.Sandbox, p *engine.Process) {
			within(engine.GiB, 1)(sb, p)
			p.Wanted = engine.WantStopped
		}, always(high)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				id := f.add("web", c.change)
				_, stop := f.pressed(PressurePolicy{}, c.usage)
				defer stop()
				time.Sleep(3 * time.Minute)
				if list := f.signals(id); len(list) != 0 {
					t.Errorf("raised %+v", list)
				}
			})
		})
	}
}

func TestSandboxesWithoutLimitsAreNotMeasured(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		f.add("free", within(0, 0))
		f.add("bound", within(engine.GiB, 0))
		m, stop := f.pressed(PressurePolicy{}, always(engine.Usage{}))
		time.Sleep(10*time.Minute + time.Second)
		stop()
		if m.taken != 40 {
			t.Errorf("measured %d times in 10 minutes, want one sandbox 40 times", m.taken)
		}
	})
}

func TestARestartBeginsThePressureAnew(t *testing.T) {
	s := strain{life: life{"ps-web", 1}}
	sb := engine.Sandbox{Health: engine.Ready, State: engine.Waiting, Spec: engine.Spec{Limits: engine.Limits{Memory: 100}}}
	p := PressurePolicy{}.filled()
	now := time.Now()
	var observed string
	for range 4 {
		s, observed = s.check(p, now, sb, engine.Usage{Memory: 91})
	}
	if observed == "" {
		t.Fatal("four checks raised nothing")
	}
	for range 8 {
		if s, observed = s.check(p, now.Add(raiseAgain-1), sb, engine.Usage{Memory: 91}); observed != "" {
			t.Fatal("raised again too soon")
		}
	}
	if _, observed = s.check(p, now.Add(raiseAgain), sb, engine.Usage{Memory: 91}); observed == "" {
		t.Error("not raised again while it goes on")
	}
}

func TestChecksOfTwoStartsAreNotInARow(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", within(engine.GiB, 0))
		_, stop := f.pressed(PressurePolicy{}, func(n int) (engine.Usage, error) {
			if n > 6 {
				return engine.Usage{}, nil
			}
			return engine.Usage{Memory: engine.GiB}, nil
		})
		defer stop()
		time.Sleep(50 * time.Second) // three checks
		f.update(func(tx *store.Tx) error {
			p, err := tx.Process("ps-web")
			p.Starts++
			return errors.Join(err, tx.PutProcess(p))
		})
		time.Sleep(5 * time.Minute)
		if list := f.signals(id); len(list) != 0 {
			t.Errorf("raised %+v", list)
		}
	})
}

func TestChecksWithAGapBetweenThemAreNotInARow(t *testing.T) {
	for name, gap := range map[string]time.Duration{"none": 0, "a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				id := f.add("web", within(engine.GiB, 0))
				_, stop := f.pressed(PressurePolicy{}, func(n int) (engine.Usage, error) {
					if n == 3 {
						time.Sleep(gap) // as if this process was stopped
					}
					if n > 4 {
						return engine.Usage{}, nil
					}
					return engine.Usage{Memory: engine.GiB}, nil
				})
				defer stop()
				time.Sleep(5 * time.Minute)
				if n := len(f.signals(id)); (n == 0) != (gap > 0) {
					t.Errorf("%d signals", n)
				}
			})
		})
	}
}

func TestNothingIsRaisedAboutAnAppThatHasMovedOn(t *testing.T) {
	for name, change := range map[string]func(*engine.Sandbox, *engine.Process){
		"started again": func(_ *engine.Sandbox, p *engine.Process) { p.Starts = 2 },
		"being healed":  func(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Healing },
		"stopped":       func(_ *engine.Sandbox, p *engine.Process) { p.Wanted = engine.WantStopped },
	} {
		f := newFleet(t)
		id := f.add("web", change)
		err := raise(t.Context(), f.store, life{"ps-web", 1}, engine.Signal{Sandbox: id, Kind: engine.StalledSignal})
		if !movedOn(err) || len(f.signals(id)) != 0 {
			t.Errorf("%s: %v, %+v", name, err, f.signals(id))
		}
	}
}
