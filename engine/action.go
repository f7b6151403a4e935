package engine

// Action is a change that somebody asks for.
type Action struct {
	ID    ActionID // the caller's; what makes a retry after a cut safe
	By    Actor    // set by the engine's door (server, cmd), never by the caller
	IfSeq Seq      // optional: only if the subject's Seq is still this
	Body  ActionBody
}

// NewAction is body under a new id.
func NewAction(body ActionBody) Action {
	return Action{ID: ActionID(NewID(ActionPrefix)), Body: body}
}

// Receipt says that an action was accepted, and what it made. It is committed
// with the effect and the audit entry.
type Receipt struct {
	Action ActionID `json:"action"`
	// Position is the journal's when the action was committed: its effect is in
	// a snapshot or in events at or before it.
	Position Position  `json:"position"`
	Sandbox  SandboxID `json:"sandbox,omitempty"`
	Process  ProcessID `json:"process,omitempty"`
	Session  SessionID `json:"session,omitempty"`
	Run      RunID     `json:"run,omitempty"`
	// Incident is the one that the action was about.
	Incident IncidentID `json:"incident,omitempty"`
	Version  Version    `json:"version,omitempty"` // of a file that was written
	Message  MessageID  `json:"message,omitempty"`
	Key      KeyID      `json:"key,omitempty"`
	// Secret is a key that was issued. It is in the first receipt only, and
	// kept nowhere.
	Secret string   `json:"secret,omitempty"`
	Notice NoticeID `json:"notice,omitempty"`
	// Checkpoint was made, or is what the change of files can be undone to.
	Checkpoint CheckpointID `json:"checkpoint,omitempty"`
	// Note is something that the caller should know: "already healthy".
	Note string `json:"note,omitempty"`
}

// ActionBody is one of the bodies below. It is sealed: actions are data, and
// the table in action_table.go knows every one.
type ActionBody interface {
	// Subject is the id of what the action changes; "" for what it makes.
	Subject() string
	entry() *ActionEntry
}

// The bodies.
type (
	// CreateSandbox makes a sandbox and brings it up. The receipt names it.
	CreateSandbox struct {
		Name   string            `json:"name,omitempty"` // "": one is made up
		Owner  string            `json:"owner,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
		Keep   bool              `json:"keep,omitempty"`
		Origin Origin            `json:"origin"`
		// SpecTOML is an sbx.toml that counts instead of the template's or
		// workspace's own; File is its name in error messages.
		SpecTOML string `json:"spec,omitempty"`
		File     string `json:"file,omitempty"`
	}
	// ApplySpec changes a sandbox's spec; its processes restart.
	ApplySpec struct {
		Sandbox  SandboxID `json:"sandbox"`
		SpecTOML string    `json:"spec"`
		File     string    `json:"file,omitempty"`
	}
	// StartSandbox brings a cold sandbox up.
	StartSandbox struct {
		Sandbox SandboxID `json:"sandbox"`
	}
	// StopSandbox stops its processes and makes it cold; the files stay.
	StopSandbox struct {
		Sandbox SandboxID `json:"sandbox"`
	}
	// RestartApp stops and starts a supervised process.
	RestartApp struct {
		Sandbox SandboxID `json:"sandbox"`
		Process string    `json:"process,omitempty"` // name; "": the app
	}
	// RemoveSandbox stops it and deletes its record and files (those of an
	// adopted directory stay).
	RemoveSandbox struct {
		Sandbox SandboxID `json:"sandbox"`
	}
	// KeepSandbox says whether the pool must leave it alone.
	KeepSandbox struct {
		Sandbox SandboxID `json:"sandbox"`
		Keep    bool      `json:"keep"`
	}
	// SetMaintenance pauses or resumes auto-heal.
	SetMaintenance struct {
		Sandbox SandboxID `json:"sandbox"`
		On      bool      `json:"on"`
		For     Duration  `json:"for,omitempty"` // 0: until resumed
		Reason  string    `json:"reason,omitempty"`
	}
	// Spawn runs a command. The receipt names the process.
	Spawn struct {
		Sandbox SandboxID `json:"sandbox"`
		Command Command   `json:"command"`
		// Stdin: keep the command's input open for [Processes.Pipe].
		Stdin bool `json:"stdin,omitempty"`
	}
	// OpenTerminal runs a command on a terminal of its own. The receipt names
	// the process.
	OpenTerminal struct {
		Sandbox SandboxID `json:"sandbox"`
		Name    string    `json:"name,omitempty"` // for people; need not be unique
		// Command is what runs on it; an empty Shell is the user's shell. A
		// terminal has no timeout.
		Command Command  `json:"command,omitzero"`
		Size    TermSize `json:"size,omitzero"` // zero: [DefaultTermSize]
		// Record keeps exact times of all that is printed. What is typed isn't
		// recorded, but most of it is echoed.
		Record bool `json:"record,omitempty"`
	}
	// KillProcess ends a spawned process or terminal and all its children.
	KillProcess struct {
		Process ProcessID `json:"process"`
	}
	// WriteFile replaces a file's content. Replaces is the version it had, ""
	// for a new file; another version is a Conflict and changes nothing.
	WriteFile struct {
		Sandbox  SandboxID `json:"sandbox"`
		Name     string    `json:"name"`
		Replaces Version   `json:"replaces,omitempty"`
		Data     []byte    `json:"data"`
	}
)

func (CreateSandbox) Subject() string    { return "" }
func (a ApplySpec) Subject() string      { return string(a.Sandbox) }
func (a StartSandbox) Subject() string   { return string(a.Sandbox) }
func (a StopSandbox) Subject() string    { return string(a.Sandbox) }
func (a RestartApp) Subject() string     { return string(a.Sandbox) }
func (a RemoveSandbox) Subject() string  { return string(a.Sandbox) }
func (a KeepSandbox) Subject() string    { return string(a.Sandbox) }
func (a SetMaintenance) Subject() string { return string(a.Sandbox) }
func (a Spawn) Subject() string          { return string(a.Sandbox) }
func (a OpenTerminal) Subject() string   { return string(a.Sandbox) }
func (a KillProcess) Subject() string    { return string(a.Process) }
func (a WriteFile) Subject() string      { return string(a.Sandbox) }
