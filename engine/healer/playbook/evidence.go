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
	// NoDependencies says that a dependency directory is missing: "node_modules
	// is missing".
	NoDependencies string
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

// Meaning explains an exit to a person, beyond its code; "" if there is
// nothing to add.
func Meaning(e engine.Exit) string {
	switch {
	case e.Error != "":
		return "it could not be started at all"
	case e.OOM:
		return "the kernel killed it: it reached its memory limit"
	case e.TimedOut:
		return "it ran into its timeout"
	case e.Code == engine.ExitNotFound:
		return "the shell did not find a program that the command names"
	case e.Code == engine.ExitNotExecutable:
		return "a program that the command names may not be executed"
	case e.Signal == "SIGKILL":
		return "somebody or the kernel killed it"
	case e.Signal == "SIGSEGV" || e.Signal == "SIGBUS" || e.Signal == "SIGABRT":
		return "it crashed in native code"
	}
	return ""
}
