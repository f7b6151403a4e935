package engine

import "time"

// Incident is one fault in several sandboxes: they crashed with one
// fingerprint within five minutes. One of them, the canary, is healed first;
// the rest are held and follow only if that worked (SPEC §7.2). It is open
// until all are ready or told broken.
type Incident struct {
	ID IncidentID `json:"id"`
	// Fingerprint is what they have in common; Title is the fault in one line.
	Fingerprint string        `json:"fingerprint"`
	Title       string        `json:"title"`
	State       IncidentState `json:"state"`
	// Canary is the sandbox that is healed first, and CanaryRun its run; ""
	// while none of them can be.
	Canary    SandboxID `json:"canary,omitempty"`
	CanaryRun RunID     `json:"canaryRun,omitempty"`
	// Members are the sandboxes, in the order they joined.
	Members []IncidentMember `json:"members"`
	// Reason says why it is in its state, and how it ended.
	Reason string `json:"reason,omitempty"`
	// Watcher is who said "I'm on it", and Watched when; zero for nobody.
	Watcher Actor     `json:"watcher,omitzero"`
	Watched time.Time `json:"watched,omitzero"`
	Opened  time.Time `json:"opened"`
	Ended   time.Time `json:"ended,omitzero"`
}

// IncidentMember is a sandbox of an incident, with its latest run in it.
type IncidentMember struct {
	Sandbox SandboxID `json:"sandbox"`
	Name    string    `json:"name"` // as it was when it joined
	Run     RunID     `json:"run"`
	// Outcome is the run's; "" while it is open.
	Outcome Outcome `json:"outcome,omitempty"`
}

// IncidentState is how far an incident is.
type IncidentState string

// The states of an incident.
const (
	IncidentCanary IncidentState = "canary" // one is healed, the rest are held
	IncidentFollow IncidentState = "follow" // that worked: the rest are healed
	IncidentFailed IncidentState = "failed" // that did not work: the rest are told broken
	IncidentEnded  IncidentState = "ended"  // all are ready or told broken
)

// Open reports whether the incident has not ended.
func (i Incident) Open() bool { return i.State != IncidentEnded }

// Member is the sandbox's part in the incident; ok is false if it has none.
func (i Incident) Member(id SandboxID) (m IncidentMember, ok bool) {
	for _, m := range i.Members {
		if m.Sandbox == id {
			return m, true
		}
	}
	return m, false
}

// IncidentQuery selects incidents.
type IncidentQuery struct {
	ID IncidentID `json:"id,omitempty"`
	// Sandbox: only those that it is or was a member of.
	Sandbox SandboxID `json:"sandbox,omitempty"`
	Open    bool      `json:"open,omitempty"` // only those that have not ended
	Since   time.Time `json:"since,omitzero"` // only those opened since then, or still open
	// Limit keeps the newest so many; 0: all.
	Limit int `json:"limit,omitempty"`
}

// HealNote is what an operator tells the model that heals a sandbox. The next
// request carries it, and so does each later attempt of the run, once.
type HealNote struct {
	ID      int64     `json:"id"`
	Sandbox SandboxID `json:"sandbox"`
	// Run is the run that it is for; "" while none is open.
	Run  RunID     `json:"run,omitempty"`
	By   Actor     `json:"by"`
	Text string    `json:"text"` // redacted
	At   time.Time `json:"at"`
}

// MaxNote is how many bytes a note may have.
const MaxNote = 4 << 10
