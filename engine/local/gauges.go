package local

import (
	"context"
	"iter"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sbx/engine"
	"sbx/store"
)

// gauges holds the latest samples. They are taken when somebody asks, and
// shared: a hundred dashboards cost as much as one.
type gauges struct {
	sampling sync.Mutex // one sample is taken at a time

	mu     sync.Mutex
	probes map[engine.SandboxID]engine.Probe
	last   engine.Gauges
	cost   time.Duration // of taking the last sample
	cpu    time.Duration // of this process, at the last sample
}

// probed notes a probe; the detector reports each.
func (g *gauges) probed(id engine.SandboxID, p engine.Probe) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.probes == nil {
		g.probes = map[engine.SandboxID]engine.Probe{}
	}
	g.probes[id] = p
}

// Gauges yields the latest samples: the first at once, then every so often.
func (e *Engine) Gauges(ctx context.Context, every time.Duration) iter.Seq2[engine.Gauges, error] {
	every = max(every, 100*time.Millisecond)
	return func(yield func(engine.Gauges, error) bool) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			g, err := e.sample(ctx, every)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if !yield(g, err) || err != nil {
				return
			}
			select {
			case <-ctx.Done():
				yield(engine.Gauges{}, ctx.Err())
				return
			case <-tick.C:
			}
		}
	}
}

// sample returns the last sample if it is young enough, else a new one. One
// that is dear to take may grow older: sampling takes a twentieth of a core at
// most.
func (e *Engine) sample(ctx context.Context, maxAge time.Duration) (engine.Gauges, error) {
	g := &e.gauges
	g.sampling.Lock()
	defer g.sampling.Unlock()
	g.mu.Lock()
	last, age := g.last, max(maxAge*3/4, 20*g.cost)
	g.mu.Unlock()
	if !last.At.IsZero() && time.Since(last.At) < age {
		return last, nil
	}
	began := time.Now()
	next, err := e.takeSample(ctx, last.At)
	if err != nil {
		return engine.Gauges{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.cost = next, time.Since(began)
	return next, nil
}

func (e *Engine) takeSample(ctx context.Context, since time.Time) (engine.Gauges, error) {
	out := engine.Gauges{At: time.Now(), Sandboxes: map[engine.SandboxID]engine.Sample{}}
	if levels, err := e.keeper.Levels(); err == nil {
		out.Archives = levels
	} else {
		e.cfg.Log.Warn("archives can't be counted", "err", err)
	}
	var all []engine.Sandbox
	apps := map[engine.SandboxID]engine.ProcessID{}
	err := e.store.View(ctx, func(tx *store.Tx) (err error) {
		if all, err = tx.Sandboxes(); err != nil {
			return err
		}
		procs, err := tx.LiveProcesses()
		for _, p := range procs {
			if p.Kind == engine.Supervised && p.Name == engine.AppName {
				apps[p.Sandbox] = p.ID
			}
		}
		if err != nil {
			return err
		}
		out.Pool, err = e.pool.Levels(tx)
		return err
	})
	if err != nil {
		return out, err
	}
	e.gauges.mu.Lock()
	probes := maps.Clone(e.gauges.probes)
	e.gauges.mu.Unlock()
	for _, sb := range all {
		if sb.State.Live() && ctx.Err() == nil {
			out.Sandboxes[sb.ID] = e.sampleOf(ctx, sb.ID, apps[sb.ID], probes[sb.ID])
		}
	}
	e.forgetProbes(all)
	out.Engine = e.sampleSelf(time.Since(since))
	return out, ctx.Err()
}

func (e *Engine) sampleOf(ctx context.Context, id engine.SandboxID, app engine.ProcessID, probe engine.Probe) engine.Sample {
	s := engine.Sample{Probe: probe}
	if app != "" {
		s.LogLine = e.logs.LastLine(app)
	}
	b, err := e.cfg.Driver.Attach(ctx, id)
	if err != nil {
		return s // on its way up or down: nothing to measure
	}
	if u, err := b.Usage(ctx); err == nil { // a sample that can't be had is left out
		s.Usage = u
	}
	return s
}

// forgetProbes drops the probes of sandboxes that are gone.
func (e *Engine) forgetProbes(all []engine.Sandbox) {
	known := make(map[engine.SandboxID]bool, len(all))
	for _, sb := range all {
		known[sb.ID] = true
	}
	e.gauges.mu.Lock()
	defer e.gauges.mu.Unlock()
	maps.DeleteFunc(e.gauges.probes, func(id engine.SandboxID, _ engine.Probe) bool { return !known[id] })
}

// sampleSelf measures this process: CPU since the last sample, resident memory.
func (e *Engine) sampleSelf(span time.Duration) engine.EngineUsage {
	var u engine.EngineUsage
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err == nil {
		cpu := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
		if span > 0 && span < time.Hour {
			u.CPU = float64(cpu-e.gauges.cpu) / float64(span)
		}
		e.gauges.cpu = cpu
	}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil { // elsewhere than on Linux: left out
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				u.Memory = engine.Size(pages * int64(os.Getpagesize()))
			}
		}
	}
	return u
}
