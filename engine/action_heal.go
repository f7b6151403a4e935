package engine

// The bodies of actions on heals.
type (
	// StartHeal opens a heal run. A healthy sandbox is left alone and the
	// receipt says so; one that is being healed is a Conflict that names who asked.
	StartHeal struct {
		Sandbox SandboxID `json:"sandbox"`
		// Plan: only find out what is wrong and what would help. The workspace
		// stays as it is, and so does the app; [ApplyPlan] does what was found.
		Plan bool `json:"plan,omitempty"`
		// Resume gives the sandbox back to the healer's loop: maintenance ends,
		// and the heals of the last hour are forgotten. A healthy one is only
		// given back.
		Resume bool `json:"resume,omitempty"`
		// Note is for the model; see [NoteHeal].
		Note string `json:"note,omitempty"`
	}
	// ApplyPlan opens a run that does what a plan found, and nothing else. It
	// is a Conflict that names the paths if the workspace is no longer as it
	// was when the plan was made.
	ApplyPlan struct {
		Sandbox SandboxID `json:"sandbox"`
		// Run is the run that made the plan; "" is the sandbox's latest plan.
		Run RunID `json:"run,omitempty"`
	}
	// CancelHeal ends the open run; what it changed is rolled back.
	CancelHeal struct {
		Sandbox SandboxID `json:"sandbox"`
	}
	// NoteHeal tells the model that heals a sandbox something, also while it
	// works. Where no run is open, the next one is told.
	NoteHeal struct {
		Sandbox SandboxID `json:"sandbox"`
		Text    string    `json:"text"`
	}
	// WatchIncident says that somebody is on it, or, with Off, no longer.
	WatchIncident struct {
		Incident IncidentID `json:"incident"`
		Off      bool       `json:"off,omitempty"`
	}
)

// Subject is the sandbox.
func (a StartHeal) Subject() string { return string(a.Sandbox) }

// Subject is the sandbox.
func (a ApplyPlan) Subject() string { return string(a.Sandbox) }

// Subject is the sandbox.
func (a CancelHeal) Subject() string { return string(a.Sandbox) }

// Subject is the sandbox.
func (a NoteHeal) Subject() string { return string(a.Sandbox) }

// Subject is the incident.
func (a WatchIncident) Subject() string { return string(a.Incident) }

var (
	startHeal = row("heal.start", "heal", Operator, Harmless, "POST /v1/sandboxes/{id}/heal",
		func(a *StartHeal, id string) { a.Sandbox = SandboxID(id) })
	applyPlan = row("heal.apply", "apply the plan for", Operator, Confirm, "POST /v1/sandboxes/{id}/heal/apply",
		func(a *ApplyPlan, id string) { a.Sandbox = SandboxID(id) })
	cancelHeal = row("heal.cancel", "abort the heal of", Operator, Repeat, "DELETE /v1/sandboxes/{id}/heal",
		func(a *CancelHeal, id string) { a.Sandbox = SandboxID(id) })
	noteHeal = row("heal.note", "tell the model that heals", Operator, Harmless, "POST /v1/sandboxes/{id}/heal/note",
		func(a *NoteHeal, id string) { a.Sandbox = SandboxID(id) })
	watchIncident = row("incident.watch", "watch", Operator, Harmless, "PUT /v1/incidents/{id}/watch",
		func(a *WatchIncident, id string) { a.Incident = IncidentID(id) })
)

func (StartHeal) entry() *ActionEntry     { return startHeal }
func (ApplyPlan) entry() *ActionEntry     { return applyPlan }
func (CancelHeal) entry() *ActionEntry    { return cancelHeal }
func (NoteHeal) entry() *ActionEntry      { return noteHeal }
func (WatchIncident) entry() *ActionEntry { return watchIncident }
