//go:build linux

package host

import (
	"context"
	"fmt"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/shim"
)

// kept is a process that a shim runs.
type kept struct {
	*proc
	remote *shim.Remote
}

var _ driver.Kept = kept{}

// Began is when and where in its log it started.
func (k kept) Began() driver.Beginning {
	return driver.Beginning{At: k.remote.Started(), Log: k.remote.LogStart()}
}

// Lost reports whether it ended because its shim did.
func (k kept) Lost() bool { return k.remote.Lost() }

// Forget says that its exit is written down.
func (k kept) Forget() {
	k.box.mu.Lock()
	if k.box.kept[k.id] == k.proc {
		delete(k.box.kept, k.id)
	}
	k.box.mu.Unlock()
	k.remote.Forget()
}

// Kept finds a process that was started by Keep.
func (b shimBox) Kept(id engine.ProcessID) (driver.Kept, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.kept[id]
	if p == nil || p.child == nil {
		return nil, false
	}
	return kept{p, p.child.(*shim.Remote)}, true
}

// Hold sets the limits again: this engine's next start, also of a command of
// its own, would lift them else.
func (b shimBox) Hold(limits engine.Limits) {
	b.bound(limits)
	if b.elsewhere() {
		return // the groups that they are in stay as they are
	}
	if err := b.host.limits.Hold(string(b.id), limits); err != nil {
		b.host.cfg.Log.Warn("limiting what went on without an engine", "sandbox", b.id, "err", err)
	}
}

// cutShort kills what a shim that was killed has left of a start: a child that
// was just born has not asked yet to end with its parent.
func (b shimBox) cutShort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	killed, err := b.KillStrays(ctx)
	if err != nil || len(killed) > 0 {
		b.host.cfg.Log.Warn("killed what was left of a start", "sandbox", b.id, "what", killed, "err", err)
	}
}

// Keep starts a process in the sandbox's shim.
func (b shimBox) Keep(ctx context.Context, id engine.ProcessID, cmd driver.Command, split, final bool) (driver.Kept, error) {
	l, err := b.launchOf(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", id, err)
	}
	if cmd.Limits != nil {
		b.bound(*cmd.Limits)
	}
	c, err := b.host.shimOf(ctx, b.id)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", id, err)
	}
	var remote *shim.Remote
	p, err := b.launch(id, l, func(p *proc, o shim.Order) (child, error) {
		o.Box, o.Stdin, o.Split, o.Log = string(b.id), cmd.Stdin, split, &shim.Log{Final: final}
		r, err := c.Start(ctx, o, p.hooks())
		if err != nil {
			return nil, err
		}
		remote = r
		return r, nil
	}, c.Hello().PID)
	if err != nil {
		if c.Gone() {
			b.cutShort(ctx)
		}
		return nil, fmt.Errorf("start %s: %w", id, err)
	}
	b.mu.Lock()
	b.kept[id] = p
	b.mu.Unlock()
	return kept{p, remote}, nil
}
