package engine

import (
	"context"
	"time"
)

// The functions below are what callers use instead of bodies: each sends one
// action under a new id.

// Create makes a sandbox and returns it as it was accepted: warming.
func Create(ctx context.Context, e Engine, body CreateSandbox) (Sandbox, error) {
	r, err := e.Do(ctx, NewAction(body))
	if err != nil {
		return Sandbox{}, err
	}
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return Sandbox{}, err
	}
	sb, ok := snap.Sandboxes[r.Sandbox]
	if !ok {
		return Sandbox{}, Errorf(NotFound, "sandbox %s was removed at once", r.Sandbox)
	}
	return sb, nil
}

// Start brings a cold sandbox up.
func Start(ctx context.Context, e Actions, id SandboxID) (Receipt, error) {
	return e.Do(ctx, NewAction(StartSandbox{Sandbox: id}))
}

// StopAll stops a sandbox's processes and makes it cold.
func StopAll(ctx context.Context, e Actions, id SandboxID) (Receipt, error) {
	return e.Do(ctx, NewAction(StopSandbox{Sandbox: id}))
}

// RestartProcess restarts a supervised process; "" is the app.
func RestartProcess(ctx context.Context, e Actions, id SandboxID, name string) (Receipt, error) {
	return e.Do(ctx, NewAction(RestartApp{Sandbox: id, Process: name}))
}

// Destroy stops a sandbox and deletes its record and files.
func Destroy(ctx context.Context, e Actions, id SandboxID) (Receipt, error) {
	return e.Do(ctx, NewAction(RemoveSandbox{Sandbox: id}))
}

// Heal opens a heal run.
func Heal(ctx context.Context, e Actions, id SandboxID) (Receipt, error) {
	return e.Do(ctx, NewAction(StartHeal{Sandbox: id}))
}

// Save writes a file that had the version replaces.
func Save(ctx context.Context, e Actions, id SandboxID, name string, replaces Version, data []byte) (Version, error) {
	r, err := e.Do(ctx, NewAction(WriteFile{Sandbox: id, Name: name, Replaces: replaces, Data: data}))
	return r.Version, err
}

// Watch calls fn with the snapshot and then with the snapshot after each
// event, until fn says stop or fails. A compacted journal is answered by a new
// snapshot. ev is nil for a snapshot that was not made by an event.
func Watch(ctx context.Context, e Journal, fn func(s *Snapshot, ev *Event) (stop bool, err error)) error {
	for {
		snap, err := e.Snapshot(ctx)
		if err != nil {
			return err
		}
		if stop, err := fn(snap, nil); stop || err != nil {
			return err
		}
		for ev, err := range e.Events(ctx, snap.Position) {
			if AsCode(err) == Compacted {
				break
			}
			if err != nil {
				return err
			}
			snap.Apply(ev)
			if stop, err := fn(snap, &ev); stop || err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Until waits until cond holds, for at most d. The error of running out of
// time is context.DeadlineExceeded.
func Until(ctx context.Context, e Journal, d time.Duration, cond func(s *Snapshot) bool) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return Watch(ctx, e, func(s *Snapshot, _ *Event) (bool, error) { return cond(s), nil })
}

// AsCode is the code of an error: "" for nil, [Internal] for one without.
func AsCode(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}
