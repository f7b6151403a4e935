package detect

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// PressurePolicy says when a sandbox is short of what it may use. The zero
// value of a field is its default.
type PressurePolicy struct {
	Every  time.Duration // 15 s; between checks
	Checks int           // 4 in a row are pressure
	// Memory is the part of its memory limit above which a sandbox is short of
	// it (0.9), CPU the part of its cpu limit at which it is pinned (0.95).
	Memory, CPU float64
	Scale       float64 // 1; multiplies Every
}

func (p PressurePolicy) every() time.Duration { return scaled(p.Scale, or(p.Every, 15*time.Second)) }

func (p PressurePolicy) filled() PressurePolicy {
	if p.Checks <= 0 {
		p.Checks = 4
	}
	if p.Memory <= 0 {
		p.Memory = 0.9
	}
	if p.CPU <= 0 {
		p.CPU = 0.95
	}
	return p
}

// Pressure raises a signal for a sandbox that is short of memory or cpu for
// several checks in a row. Everything is held against the sandbox's own limits:
// a busy host condemns nobody. Without a limit there is nothing to be short of.
//
// Memory is the working set, so a cache that the kernel could drop at once is
// no pressure. How many of its processes want to run at one time a driver
// doesn't tell, so load itself is not seen; what is seen is cpu time. One core
// in use is at least one process that wanted to run, and a sandbox that uses
// all it may for a minute has none to spare. That alone is also how a build
// looks. So it doesn't count while the sandbox is starting or works on a
// command: then somebody asked for it.
type Pressure struct {
	Store  *store.Store
	Box    func(ctx context.Context, id engine.SandboxID) (driver.Box, error)
	Policy PressurePolicy
	Log    *slog.Logger
}

// measureTogether is how many sandboxes are measured at one time, and
// measureWithin how long one may take.
const (
	measureTogether = 4
	measureWithin   = 5 * time.Second
)

// strain is what was seen of one app.
type strain struct {
	life        life
	memory, cpu int // checks in a row
	raised      time.Time
}

// Run checks the fleet until ctx ends.
func (p *Pressure) Run(ctx context.Context) error {
	policy := p.Policy.filled()
	strains := map[engine.SandboxID]strain{}
	return patrol(ctx, p.Store, policy.every(), nil, func(ctx context.Context, r roster, gap time.Duration) {
		forgetGone(strains, r)
		for id, u := range p.measure(ctx, r) {
			was := strains[id]
			switch l := lifeOf(r.apps[id]); {
			case was.life != l:
				was = strain{life: l}
			case gap > late: // in a row means that somebody looked
				was.memory, was.cpu = 0, 0
			}
			now, observed := was.check(policy, time.Now(), r.sandboxes[id], u)
			if observed != "" && !p.raise(ctx, id, now.life, observed) {
				now.raised = was.raised
			}
			strains[id] = now
		}
		for id := range strains {
			if sb := r.sandboxes[id]; !limited(sb) || !working(sb, r.apps[id]) {
				delete(strains, id)
			}
		}
	})
}

func limited(sb engine.Sandbox) bool { return sb.Spec.Limits.Memory > 0 || sb.Spec.Limits.CPU > 0 }

// measure is what the sandboxes use that have a limit. One that can't be
// measured uses nothing: what isn't known condemns nobody.
func (p *Pressure) measure(ctx context.Context, r roster) map[engine.SandboxID]engine.Usage {
	used := map[engine.SandboxID]engine.Usage{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	places := make(chan struct{}, measureTogether)
	for id, sb := range r.sandboxes {
		if !limited(sb) || !working(sb, r.apps[id]) {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			u := p.usage(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			used[id] = u
		})
	}
	wg.Wait()
	return used
}

func (p *Pressure) usage(ctx context.Context, id engine.SandboxID) engine.Usage {
	ctx, cancel := context.WithTimeout(ctx, measureWithin)
	defer cancel()
	box, err := p.Box(ctx, id)
	if err != nil {
		return engine.Usage{}
	}
	u, err := box.Usage(ctx)
	if err != nil {
		return engine.Usage{}
	}
	return u
}

// check counts one measurement and says what to raise, "" for nothing. It is
// pure.
func (s strain) check(p PressurePolicy, now time.Time, sb engine.Sandbox, u engine.Usage) (strain, string) {
	l := sb.Spec.Limits
	short := l.Memory > 0 && float64(u.Memory) > p.Memory*float64(l.Memory)
	pinned := l.CPU > 0 && u.CPU >= p.CPU*l.CPU && sb.Health != engine.Starting && sb.State != engine.Running
	s.memory, s.cpu = inARow(s.memory, short), inARow(s.cpu, pinned)
	var seen []string
	if s.memory >= p.Checks {
		seen = append(seen, fmt.Sprintf("memory %s of %s (%.0f%%)",
			megabytes(u.Memory), megabytes(l.Memory), 100*float64(u.Memory)/float64(l.Memory)))
	}
	if s.cpu >= p.Checks {
		seen = append(seen, fmt.Sprintf("cpu %.1f of %.1f cores", u.CPU, l.CPU))
	}
	if len(seen) == 0 || !s.raised.IsZero() && now.Sub(s.raised) < scaled(p.Scale, raiseAgain) {
		return s, ""
	}
	s.raised = now
	return s, fmt.Sprintf("%s, %d checks in a row", strings.Join(seen, ", "), max(s.memory, s.cpu))
}

func inARow(n int, again bool) int {
	if !again {
		return 0
	}
	return n + 1
}

func megabytes(s engine.Size) string { return fmt.Sprintf("%.0fMiB", float64(s)/float64(engine.MiB)) }

func (p *Pressure) raise(ctx context.Context, id engine.SandboxID, l life, observed string) bool {
	err := raise(ctx, p.Store, l, engine.Signal{Sandbox: id, Kind: engine.PressureSignal, Observed: observed})
	if err != nil && !movedOn(err) && ctx.Err() == nil {
		logOf(p.Log).Error("raise a signal", "sandbox", id, "kind", engine.PressureSignal, "err", err)
	}
	return err == nil
}
