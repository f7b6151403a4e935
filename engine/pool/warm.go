package pool

import (
	"context"
	"slices"
	"time"

	"sbx/engine"
	"sbx/store"
)

// A failure is a template whose warm sandboxes can't be made.
type failure struct {
	why   string
	tries int
	again time.Time
}

// The waits between tries of a template that fails.
const (
	firstWarmRetry = 30 * time.Second
	lastWarmRetry  = time.Hour
	warmTick       = 10 * time.Second
)

// noticeWarm has the warm ones looked at when one may be missing.
func (p *Pool) noticeWarm(sb engine.Sandbox) {
	if p.Policy.Warm[sb.Template] == 0 && !sb.PreWarmed {
		return
	}
	select {
	case p.refill <- struct{}{}:
	default:
	}
}

// keepWarm keeps as many warm sandboxes of each template as the policy wants,
// until ctx ends. None is evicted for them.
func (p *Pool) keepWarm(ctx context.Context) {
	if len(p.Policy.Warm) == 0 {
		return
	}
	tick := time.NewTicker(warmTick)
	defer tick.Stop()
	for {
		for template, n := range p.Policy.Warm {
			if err := p.fill(ctx, template, n); err != nil && ctx.Err() == nil {
				p.Log.Warn("pool: keeping sandboxes warm", "template", template, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.refill:
		}
	}
}

// fill makes the warm sandboxes of a template that are missing.
func (p *Pool) fill(ctx context.Context, template string, n int) error {
	if f, failed := p.failed(template); failed && time.Now().Before(f.again) {
		return nil
	}
	made, err := p.NewWarm(template)
	if err != nil {
		p.fail(template, err.Error())
		return err
	}
	return p.each(ctx, func(tx *store.Tx) (bool, error) {
		have, err := p.takeStock(tx, made)
		_, failed := p.failed(template)
		if err != nil || have >= n || tx.Taken() >= p.Policy.MaxSandboxes || failed && have > 0 {
			return false, err
		}
		if f, failed := p.failed(template); failed && time.Now().Before(f.again) {
			return false, nil
		}
		sb := made
		sb.ID = engine.SandboxID(engine.NewID(engine.SandboxPrefix))
		sb.Name = "warm-" + template + "-" + string(sb.ID[len(engine.SandboxPrefix):])
		sb.PreWarmed, sb.Wanted, sb.State, sb.Health = true, engine.Up, engine.Cold, engine.Unknown
		sb.Created, sb.StateChanged, sb.HealthChanged, sb.Active = tx.Now, tx.Now, tx.Now, tx.Now
		if err := tx.PutSandbox(&sb); err != nil {
			return false, err
		}
		_, err = tx.Fire(sb.ID, engine.Resume)
		return true, err
	})
}

// takeStock counts the warm sandboxes of a template that are there or on their
// way. Those that failed, or are of an older revision, go.
func (p *Pool) takeStock(tx *store.Tx, made engine.Sandbox) (have int, err error) {
	for _, id := range tx.PreWarmed() {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return have, err
		}
		if sb.Template != made.Template || sb.Wanted == engine.Removed {
			continue
		}
		switch down := sb.Wanted != engine.Up; {
		case down && sb.State == engine.Cold || sb.TemplateRevision != made.TemplateRevision:
			if down && sb.Ending == "" {
				p.fail(made.Template, sb.Reason)
			}
			if err := TakeDown(tx, sb, engine.Removed, engine.EndedByRemoval); err != nil {
				return have, err
			}
		case !down:
			if sb.State == engine.Warm {
				p.succeed(made.Template)
			}
			have++
		}
	}
	return have, nil
}

func (p *Pool) failed(template string) (failure, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, failed := p.failing[template]
	return f, failed
}

// fail notes that a template could not be brought up, and when to try again.
func (p *Pool) fail(template, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failing[template]
	wait := min(firstWarmRetry<<min(f.tries, 10), lastWarmRetry)
	p.failing[template] = failure{why: why, tries: f.tries + 1, again: time.Now().Add(wait)}
	p.Log.Warn("pool: a warm sandbox could not be made", "template", template, "why", why, "again_in", wait)
}

func (p *Pool) succeed(template string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failing, template)
}

// Levels adds the policy's part to the levels of the rows.
func (p *Pool) Levels(tx *store.Tx) (engine.PoolLevels, error) {
	l, err := tx.Levels()
	if err != nil {
		return l, err
	}
	l.MaxCapacity = p.Policy.MaxSandboxes
	for template, n := range p.Policy.Warm {
		w := engine.WarmLevel{Template: template, Wanted: n}
		if w.Ready, err = tx.CountWarm(template); err != nil {
			return l, err
		}
		if f, failed := p.failed(template); failed {
			w.Failure, w.Retry = f.why, f.again.UTC().Round(0)
		}
		l.PreWarm = append(l.PreWarm, w)
	}
	slices.SortFunc(l.PreWarm, func(a, b engine.WarmLevel) int {
		if a.Template < b.Template {
			return -1
		}
		return 1
	})
	return l, nil
}
