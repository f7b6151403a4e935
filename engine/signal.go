package engine

import "time"

// SignalKind is which of the five kinds of trouble was noticed (SPEC §7.1).
type SignalKind string

// The signals, and the request of a person, which enters by the same door.
const (
	ExitSignal     SignalKind = "exit"     // a process that the supervisor gave up on, or a crash loop
	HealthSignal   SignalKind = "health"   // two failed probes while the process runs, or never healthy in time
	StalledSignal  SignalKind = "stalled"  // a log that stopped in the middle of bundling
	PressureSignal SignalKind = "pressure" // memory or load, sustained
	WakeSignal     SignalKind = "wake"     // the host slept
	HandSignal     SignalKind = "hand"     // an operator or script asked for a heal
	// ReportSignal is what a healer inside of a sandbox says of it: recorded,
	// and never acted on, since a sandbox can say anything.
	ReportSignal SignalKind = "report"
)

// SignalID numbers signals; it is the Seq of the event that raised it.
type SignalID int64

// Signal is trouble that was noticed, with what was seen.
type Signal struct {
	ID      SignalID   `json:"id"`
	Sandbox SandboxID  `json:"sandbox"`
	Process ProcessID  `json:"process,omitempty"`
	Kind    SignalKind `json:"kind"`
	// Observed is what was seen, in one line a person can use:
	// "exit 1 after 0.4s, 2 failed starts in a row".
	Observed string    `json:"observed"`
	Exit     *Exit     `json:"exit,omitempty"`
	Probes   []Probe   `json:"probes,omitempty"`
	At       time.Time `json:"at"`
	// Verdict is nil until the healer has judged it.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Run is the heal run it led to, if any.
	Run RunID `json:"run,omitempty"`
}

// VerdictAction is what a signal calls for.
type VerdictAction string

// The verdicts.
const (
	Ignore    VerdictAction = "ignore"
	Wait      VerdictAction = "wait"
	Restart   VerdictAction = "restart"
	Reconnect VerdictAction = "reconnect"
	Repair    VerdictAction = "repair"
)

// Verdict is what a signal calls for, and why: so that "why did nothing
// happen" has an answer on screen.
type Verdict struct {
	Action VerdictAction `json:"action"`
	Reason string        `json:"reason"`
	At     time.Time     `json:"at"`
}
