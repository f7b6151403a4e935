package engine

// Evidence is what the healer knew of a sandbox when an attempt began: the same
// that its playbooks decide from and its model is briefed with. All of it is
// bounded and redacted; what could not be had is left out.
type Evidence struct {
	Process string       `json:"process"` // the one in question
	State   ProcessState `json:"state,omitempty"`
	// Log is what it wrote since its last start: the beginning and the end.
	Log  string `json:"log,omitempty"`
	Exit *Exit  `json:"exit,omitempty"`
	// Meaning explains the exit: its signal or code in words.
	Meaning string `json:"meaning,omitempty"`
	Probe   *Probe `json:"probe,omitempty"` // of its health path, now
	// Holder is who listens on its port, in words.
	Holder string `json:"holder,omitempty"`
	Usage  Usage  `json:"usage,omitzero"`
	// Changed is what differs from the last good checkpoint.
	Changed []Change `json:"changed,omitempty"`
	// Missing are files that git or the last good checkpoint has.
	Missing []string `json:"missing,omitempty"`
	// EnvMissing are the names that .env.example has and .env lacks.
	EnvMissing []string `json:"envMissing,omitempty"`
	// Dependencies says what of them is missing or damaged on disk.
	Dependencies string `json:"dependencies,omitempty"`
	// Locks that the log names and nobody can hold any more; files that their
	// own mode keeps from being used; state of a supervisor that can't be read.
	Locks   []string `json:"locks,omitempty"`
	Denied  []string `json:"denied,omitempty"`
	Corrupt []string `json:"supervisorState,omitempty"`
	Caches  []string `json:"caches,omitempty"` // that can be made again
	// Others is how many other commands run in the sandbox.
	Others int `json:"others,omitempty"`
	// Tools are the versions of what runs the app, by name.
	Tools map[string]string `json:"tools,omitempty"`
}
