package detect

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/store"
)

func TestWhichLineSaysThatBundlingGoesOn(t *testing.T) {
	for line, want := range map[string]bool{
		"Bundling…":              true,
		"Bundling...":            true,
		"  bundling…  ":          true,
		"⠋ Bundling index.js...": true,
		"[web] Bundling…":        true,
		"2026-03-01T12:00:00Z Bundling ./src/app.tsx…": true,
		"12:00:01 [vite] Bundling dependencies...":     true,
		"\x1b[36mBundling…\x1b[39m":                    true,
		"Bundling finished":                            false,
		"Bundling finished in 3s":                      false,
		"Bundling complete, watching for changes...":   false,
		"Bundling failed...":                           false,
		"Bundling":                                     false,
		"Bundling 45%":                                 false,
		"see the docs on Bundling…":                    false,
		"GET /Bundling…":                               false,
		"unbundling…":                                  false,
		"Bundlings…":                                   false,
		"Bundling… done":                               false,
		"listening on 3000":                            false,
		"":                                             false,
	} {
		if got := (StallPolicy{}).stuck(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

// paper is what apps wrote last, and where their logs end.
type paper struct {
	mu    sync.Mutex
	lines map[engine.ProcessID]string
	ends  map[engine.ProcessID]engine.LogPosition
	err   error
	asked int
}

func (p *paper) write(id engine.SandboxID, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ps := engine.ProcessID("ps-" + strings.TrimPrefix(string(id), "sb-"))
	p.lines[ps] = line
	p.ends[ps] += engine.LogPosition(len(line) + 1)
}

func (p *paper) line(id engine.ProcessID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[id]
}

func (p *paper) end(id engine.ProcessID) (engine.LogPosition, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.ends[id], p.err
}

// stalls watches the fleet's logs until the returned function is called.
func (f *fleet) stalls(p StallPolicy) (*paper, func()) {
	logs := &paper{lines: map[engine.ProcessID]string{}, ends: map[engine.ProcessID]engine.LogPosition{}}
	s := &Stall{Store: f.store, Line: logs.line, End: logs.end, Policy: p}
	return logs, f.goRun(s.Run)
}

func (f *fleet) goRun(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			f.t.Error(err)
		}
	}
}

func TestALogThatStopsAtBundlingIsAStall(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", ready)
		logs, stop := f.stalls(StallPolicy{})
		defer stop()
		logs.write(id, "\x1b[36mBundling…\x1b[0m")
		time.Sleep(19 * time.Second)
		if list := f.signals(id); len(list) != 0 {
			t.Fatalf("too early: %+v", list)
		}
		time.Sleep(7 * time.Second)
		list := f.signals(id)
		if len(list) != 1 || list[0].Kind != engine.StalledSignal || list[0].Process != "ps-web" ||
			list[0].Observed != `the log says "Bundling…" and nothing more for 20s` {
			t.Fatalf("signals: %+v", list)
		}
		time.Sleep(4 * time.Minute)
		if n := len(f.signals(id)); n != 1 {
			t.Errorf("while it goes on it is told %d times in 4 minutes", n)
		}
		time.Sleep(2 * time.Minute)
		if n := len(f.signals(id)); n != 2 {
			t.Errorf("while it goes on it is told %d times in 6 minutes", n)
		}
	})
}

func TestWhatIsNoStall(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*engine.Sandbox, *engine.Process)
		line   string
	}{
		"a quiet server whose last line has the word": {ready, "Bundling finished"},
		"being healed":                 {func(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Healing }, "Bundling…"},
		"broken":                       {func(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Broken }, "Bundling…"},
		"cold":                         {func(sb *engine.Sandbox, _ *engine.Process) { sb.State = engine.Cold }, "Bundling…"},
		"stopped":                      {func(_ *engine.Sandbox, p *engine.Process) { p.Wanted = engine.WantStopped }, "Bundling…"},
		"about to be started":          {func(_ *engine.Sandbox, p *engine.Process) { p.State = engine.ProcessBackoff }, "Bundling…"},
		"a line of an earlier start":   {func(_ *engine.Sandbox, p *engine.Process) { p.LogStart = 100 }, "Bundling…"},
		"nobody has heard of it since": {func(sb *engine.Sandbox, _ *engine.Process) { sb.Health = engine.Unknown }, "Bundling…"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				id := f.add("web", c.change)
				logs, stop := f.stalls(StallPolicy{})
				defer stop()
				logs.write(id, c.line)
				time.Sleep(2 * time.Minute)
				if list := f.signals(id); len(list) != 0 {
					t.Errorf("raised %+v", list)
				}
			})
		})
	}
}

func TestProgressIsNoStallNotEvenInTheSameWords(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		other, same := f.add("other", ready), f.add("same", nil)
		logs, stop := f.stalls(StallPolicy{})
		defer stop()
		for range 20 {
			logs.write(same, "Bundling…")
			logs.write(other, "Bundling…")
			time.Sleep(15 * time.Second)
			logs.write(other, "compiled 3 modules")
		}
		if a, b := f.signals(same), f.signals(other); len(a)+len(b) != 0 {
			t.Errorf("raised %+v %+v", a, b)
		}
		time.Sleep(30 * time.Second)
		if len(f.signals(same)) != 1 || len(f.signals(other)) != 0 {
			t.Error("the one that stopped was not told, or the other was")
		}
	})
}

func TestARestartBeginsTheStallAnew(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", ready)
		logs, stop := f.stalls(StallPolicy{})
		defer stop()
		for i := range 20 {
			logs.write(id, "Bundling…")
			time.Sleep(17 * time.Second)
			f.update(func(tx *store.Tx) error {
				p, err := tx.Process("ps-web")
				if err != nil {
					return err
				}
				p.Starts++
				if i == 19 {
					p.LogStart = 1 << 20 // and the new one says nothing
				}
				return tx.PutProcess(p)
			})
		}
		time.Sleep(time.Minute)
		if list := f.signals(id); len(list) != 0 {
			t.Errorf("raised %+v", list)
		}
	})
}

func TestQuietLogsAreNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", ready)
		logs, stop := f.stalls(StallPolicy{})
		logs.write(id, "listening on 3000")
		time.Sleep(5 * time.Minute)
		stop()
		if logs.asked != 0 {
			t.Errorf("the end of a quiet log was looked for %d times", logs.asked)
		}
	})
}

func TestALogWhoseEndIsUnknownCondemnsNobody(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", ready)
		logs, stop := f.stalls(StallPolicy{})
		defer stop()
		logs.err = errors.New("input/output error")
		logs.write(id, "Bundling…")
		time.Sleep(5 * time.Minute)
		if list := f.signals(id); len(list) != 0 {
			t.Errorf("raised %+v", list)
		}
	})
}

func TestWhileNobodyCouldLookNothingStalls(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		id := f.add("web", ready)
		logs := &paper{lines: map[engine.ProcessID]string{}, ends: map[engine.ProcessID]engine.LogPosition{}}
		held := make(chan struct{})
		var once sync.Once
		s := &Stall{Store: f.store, Line: logs.line}
		s.End = func(ps engine.ProcessID) (engine.LogPosition, error) {
			end, err := logs.end(ps)
			once.Do(func() { <-held }) // as if this process was stopped in mid-look
			return end, err
		}
		defer f.goRun(s.Run)()
		logs.write(id, "Bundling…")
		time.Sleep(2 * time.Minute)
		close(held)
		time.Sleep(10 * time.Second)
		if list := f.signals(id); len(list) != 0 {
			t.Errorf("raised %+v", list)
		}
	})
}
