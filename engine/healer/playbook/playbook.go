// Package playbook is what the healer tries before it asks a model: repairs
// that are known, free and the same every time.
//
// The one rule: a playbook decides from the evidence alone, changes things only
// through its Workbench, and never deletes or reverts anybody's work.
package playbook

import "context"

// A Playbook is one known repair.
type Playbook interface {
	// Name is what the run shows: "reinstall".
	Name() string
	// Edits reports whether it changes files that a checkpoint must hold first.
	Edits() bool
	// Applies reports whether the evidence calls for it, and why in words.
	Applies(ev Evidence) (reason string, ok bool)
	// Apply does it and starts the app again.
	Apply(ctx context.Context, ev Evidence, w Workbench) error
}

// Workbench is what playbooks may do to a sandbox.
type Workbench interface {
	// Restart restarts the app and returns when it was started or couldn't be.
	Restart(ctx context.Context) error
	// Install runs the spec's install command as [CleanInstall] has it.
	Install(ctx context.Context) error
	// KillStrays kills what earlier starts of this sandbox left running.
	KillStrays(ctx context.Context) error
	// MovePort gives the app another port.
	MovePort(ctx context.Context) error
	// PutBack writes a missing file as its source has it; a file that is there
	// by now is left alone.
	PutBack(ctx context.Context, m Missing) error
	// Remove removes files and directories that the evidence names as stale or
	// as caches: never what a person made.
	Remove(ctx context.Context, paths []string) error
	// Allow gives the owner of files what they lack: "r", "x" or "rx".
	Allow(ctx context.Context, lacks string, paths []string) error
	// Aside renames a file, so that it is out of the way and still there.
	Aside(ctx context.Context, path string) error
}

// All are the playbooks, cheapest and most specific first. The plain restart
// is last: the others restart too, and where none applies it is the only one.
func All() []Playbook {
	return []Playbook{
		stray{}, port{}, children{}, lock{}, mode{}, state{}, putBack{}, disk{}, cache{}, install{}, restart{},
	}
}

// Next is the first playbook that applies and isn't in tried, and why.
func Next(ev Evidence, tried map[string]bool) (Playbook, string, bool) {
	for _, p := range All() {
		if tried[p.Name()] || p.Edits() && !ev.Undoable {
			continue
		}
		if why, ok := p.Applies(ev); ok {
			return p, why, true
		}
	}
	return nil, "", false
}
