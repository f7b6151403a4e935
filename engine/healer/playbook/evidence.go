package playbook

import (
	"fmt"

	"sbx/engine"
)

// Evidence is what is known of a sandbox in trouble. It is gathered once per
// attempt; playbooks and the model's brief read the same.
type Evidence struct {
	Name   string // of the sandbox
	Spec   engine.Spec
	Signal engine.Signal
	// Process is the row of the process in question: the app, unless the
	// signal is about another.
	Process engine.Process
	// Log is what it wrote since its last start: the beginning and the end.
	Log string
	// Probe is a GET on the health path now; its zero value if there is none.
	Probe engine.Probe
	// Holder is who listens on the app's port.
	Holder Holder
	Usage  engine.Usage

	// Manifests are the files that name dependencies, with their content.
	Manifests map[string]string
	// Lockfiles are those of package managers that are there.
	Lockfiles map[string]bool
	// NoDependencies says what of the dependencies is missing or damaged on
	// disk: "node_modules is missing".
	NoDependencies string
	// Locks are those that the log names and that are there; Denied the files
	// that the sandbox may not use for their modes alone; Caches what can be
	// made again; State what a supervisor keeps, that the log names and that
	// can't be read.
	Locks  []Lock
	Denied []Denied
	Caches []string
	State  []string
	// Others is how many commands somebody runs in the sandbox.
	Others int
	// Tools are the versions of what runs the app.
	Tools map[string]string
	// Missing are the files that git or the last good checkpoint has and the
	// workspace has not.
	Missing []Missing
	// Tree lists the workspace; Changed is what differs from the last good
	// checkpoint, and Patch how.
	Tree    []string
	Changed []engine.Change
	Patch   string
	// Good is the last good checkpoint; its zero value if there is none.
	Good engine.Checkpoint
	// EnvMissing are the names that .env.example has and .env lacks.
	EnvMissing []string
	// Undoable: a checkpoint was made, so that files may be changed.
	Undoable bool
}

// Holder is who listens on the app's port.
type Holder struct {
	Held bool
	// Own: a process of this sandbox does; Live: one that the engine knows.
	Own, Live bool
	PID       int
	Name      string
}

func (h Holder) String() string {
	switch {
	case !h.Held:
		return "nobody"
	case h.Live:
		return fmt.Sprintf("the sandbox's own %s (pid %d)", h.Name, h.PID)
	case h.Own:
		return fmt.Sprintf("%s (pid %d), left over from an earlier start", h.Name, h.PID)
	case h.PID == 0:
		return "a program outside of the sandbox"
	}
	return fmt.Sprintf("%s (pid %d), which is not this sandbox's", h.Name, h.PID)
}

// Missing is a file that is not there any more.
type Missing struct {
	Path string
	// Tree is the checkpoint that has it; "" if it is git's last commit.
	Tree string
}

// Source says in words where the file can be had from.
func (m Missing) Source() string {
	if m.Tree == "" {
		return "the last commit"
	}
	return "the last good checkpoint"
}

// Down reports whether the process in question is not running.
func (ev Evidence) Down() bool { return !ev.Process.State.Alive() }
