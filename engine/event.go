package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Seq numbers the events of a journal, from 1, without a gap.
type Seq int64

// Position is a place in the journal. A restore from backup starts a new
// epoch, so that a cursor of the old one gets [Compacted] and nobody skips
// numbers that were issued again.
type Position struct {
	Epoch uint64 `json:"epoch"`
	Seq   Seq    `json:"seq"`
}

// String is the position as it is written in URLs: "7.481".
func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Epoch, p.Seq) }

// ParsePosition reads what [Position.String] writes.
func ParsePosition(s string) (Position, error) {
	epoch, seq, ok := strings.Cut(s, ".")
	e, err1 := strconv.ParseUint(epoch, 10, 64)
	n, err2 := strconv.ParseInt(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil || n < 0 {
		return Position{}, Errorf(Invalid, "%q is not a position", s).WithHint("positions look like 7.481 and come from a snapshot")
	}
	return Position{Epoch: e, Seq: Seq(n)}, nil
}

// Event is a fact in the past tense that carries the whole new state of what
// changed, so that [Snapshot.Apply] is an assignment.
type Event struct {
	Seq    Seq
	Time   time.Time
	By     Actor
	Action ActionID // the action that caused it, if one did
	Body   EventBody
}

// Kind is the event's kind as it stands in the journal: "sandbox.changed".
func (e Event) Kind() string { return e.Body.Kind() }

// EventBody is one of the bodies below, or an [UnknownEvent].
type EventBody interface {
	// Kind is the name of the body in the journal and on the wire.
	Kind() string
	// Of is the sandbox it speaks of.
	Of() SandboxID
}

// The bodies. Each carries one row whole.
type (
	// SandboxChanged: a sandbox was made or changed.
	SandboxChanged struct {
		Sandbox Sandbox `json:"sandbox"`
	}
	// SandboxRemoved: a sandbox is gone, with its processes and runs.
	SandboxRemoved struct {
		ID   SandboxID `json:"id"`
		Name string    `json:"name"`
	}
	// ProcessChanged: a process was made or changed.
	ProcessChanged struct {
		Process Process `json:"process"`
	}
	// SignalRaised: trouble was noticed.
	SignalRaised struct {
		Signal Signal `json:"signal"`
	}
	// SignalJudged: the healer decided what the signal calls for.
	SignalJudged struct {
		Signal Signal `json:"signal"`
	}
	// HealStarted: a run was opened.
	HealStarted struct {
		Run HealRun `json:"run"`
	}
	// HealChanged: an open run moved on.
	HealChanged struct {
		Run HealRun `json:"run"`
	}
	// HealAttempted: an attempt began or ended.
	HealAttempted struct {
		Attempt Attempt `json:"attempt"`
	}
	// HealStepped: a step began, grew or ended.
	HealStepped struct {
		Step Step `json:"step"`
	}
	// HealFinished: a run ended.
	HealFinished struct {
		Run HealRun `json:"run"`
	}
	// HealNoted: somebody told the model that heals a sandbox something, or a
	// run took what was told before it began.
	HealNoted struct {
		Note HealNote `json:"note"`
	}
	// IncidentChanged: an incident was opened, moved on or ended.
	IncidentChanged struct {
		Incident Incident `json:"incident"`
	}
	// SessionChanged: a session was made or changed.
	SessionChanged struct {
		Session Session `json:"session"`
	}
	// UnknownEvent is an event of a newer engine: shown as unknown, never an error.
	UnknownEvent struct {
		Name string
		Raw  []byte
	}
)

// The kinds of events.
const (
	KindSandboxChanged = "sandbox.changed"
	KindSandboxRemoved = "sandbox.removed"
	KindProcessChanged = "process.changed"
	KindSignalRaised   = "signal.raised"
	KindSignalJudged   = "signal.judged"
	KindHealStarted    = "heal.started"
	KindHealChanged    = "heal.changed"
	KindHealAttempted  = "heal.attempt"
	KindHealStepped    = "heal.step"
	KindHealFinished   = "heal.finished"
	KindHealNoted      = "heal.note"

	KindIncidentChanged = "incident.changed"
	KindSessionChanged  = "session.changed"
)

func (SandboxChanged) Kind() string  { return KindSandboxChanged }
func (SandboxRemoved) Kind() string  { return KindSandboxRemoved }
func (ProcessChanged) Kind() string  { return KindProcessChanged }
func (SignalRaised) Kind() string    { return KindSignalRaised }
func (SignalJudged) Kind() string    { return KindSignalJudged }
func (HealStarted) Kind() string     { return KindHealStarted }
func (HealChanged) Kind() string     { return KindHealChanged }
func (HealAttempted) Kind() string   { return KindHealAttempted }
func (HealStepped) Kind() string     { return KindHealStepped }
func (HealFinished) Kind() string    { return KindHealFinished }
func (HealNoted) Kind() string       { return KindHealNoted }
func (IncidentChanged) Kind() string { return KindIncidentChanged }
func (SessionChanged) Kind() string  { return KindSessionChanged }
func (e UnknownEvent) Kind() string  { return e.Name }

func (e SandboxChanged) Of() SandboxID { return e.Sandbox.ID }
func (e SandboxRemoved) Of() SandboxID { return e.ID }
func (e ProcessChanged) Of() SandboxID { return e.Process.Sandbox }
func (e SignalRaised) Of() SandboxID   { return e.Signal.Sandbox }
func (e SignalJudged) Of() SandboxID   { return e.Signal.Sandbox }
func (e HealStarted) Of() SandboxID    { return e.Run.Sandbox }
func (e HealChanged) Of() SandboxID    { return e.Run.Sandbox }
func (e HealAttempted) Of() SandboxID  { return e.Attempt.Sandbox }
func (e HealStepped) Of() SandboxID    { return e.Step.Sandbox }
func (e HealFinished) Of() SandboxID   { return e.Run.Sandbox }
func (e SessionChanged) Of() SandboxID { return e.Session.Sandbox }
func (e HealNoted) Of() SandboxID      { return e.Note.Sandbox }

// Of is no sandbox: an incident has many.
func (IncidentChanged) Of() SandboxID { return "" }
func (UnknownEvent) Of() SandboxID    { return "" }
