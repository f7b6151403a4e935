package engine

// The bodies of sessions (SPEC §5).
type (
	// CreateSession claims a warm sandbox for a new session, or boots one. The
	// receipt names both.
	CreateSession struct {
		Name   string            `json:"name,omitempty"`
		Owner  string            `json:"owner,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
		Origin Origin            `json:"origin"`
		// Env is the session's own environment: its app and commands have it.
		Env map[string]string `json:"env,omitempty"`
		// SpecTOML is an sbx.toml that counts instead of the template's; File is
		// its name in error messages.
		SpecTOML string `json:"spec,omitempty"`
		File     string `json:"file,omitempty"`
	}
	// ExecSession runs a command in a session's sandbox, which is resumed first
	// if it isn't there. The receipt names sandbox and process.
	ExecSession struct {
		Session SessionID `json:"session"`
		// Sandbox is the one that the client remembers; it is proven alive, and
		// replaced if it isn't or isn't the session's. "": whichever it is.
		Sandbox SandboxID `json:"sandbox,omitempty"`
		Command Command   `json:"command"`
		// Stdin: keep the command's input open for [Processes.Pipe].
		Stdin bool `json:"stdin,omitempty"`
	}
	// PauseSession takes a session's sandbox down and keeps its workspace. One
	// that works on a command is a Conflict, unless Abort is set.
	PauseSession struct {
		Session SessionID `json:"session"`
		// Abort kills what runs.
		Abort bool `json:"abort,omitempty"`
	}
	// ResumeSession brings a session's sandbox back by the resume walk: alive,
	// workspace, local archive, remote archive, fresh.
	ResumeSession struct {
		Session SessionID `json:"session"`
		Sandbox SandboxID `json:"sandbox,omitempty"` // as in ExecSession
	}
	// EndSession ends a session and removes its sandbox, unless that is kept.
	EndSession struct {
		Session SessionID `json:"session"`
	}
)

func (CreateSession) Subject() string   { return "" }
func (a ExecSession) Subject() string   { return string(a.Session) }
func (a PauseSession) Subject() string  { return string(a.Session) }
func (a ResumeSession) Subject() string { return string(a.Session) }
func (a EndSession) Subject() string    { return string(a.Session) }

var (
	createSession = row[CreateSession]("session.create", "open a session", Operator, Harmless, "POST /v1/sessions", nil)
	execSession   = row("session.exec", "run a command in the session", Operator, Harmless, "POST /v1/sessions/{id}/exec",
		func(a *ExecSession, id string) { a.Session = SessionID(id) })
	pauseSession = row("session.pause", "pause the session", Operator, Repeat, "POST /v1/sessions/{id}/pause",
		func(a *PauseSession, id string) { a.Session = SessionID(id) })
	resumeSession = row("session.resume", "resume the session", Operator, Harmless, "POST /v1/sessions/{id}/resume",
		func(a *ResumeSession, id string) { a.Session = SessionID(id) })
	endSession = row("session.end", "end the session", Operator, Confirm, "DELETE /v1/sessions/{id}",
		func(a *EndSession, id string) { a.Session = SessionID(id) })
)

func (CreateSession) entry() *ActionEntry { return createSession }
func (ExecSession) entry() *ActionEntry   { return execSession }
func (PauseSession) entry() *ActionEntry  { return pauseSession }
func (ResumeSession) entry() *ActionEntry { return resumeSession }
func (EndSession) entry() *ActionEntry    { return endSession }
