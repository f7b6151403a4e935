package engine

import (
	"context"
	"time"
)

// Outward is what passes between sandboxes, the engine and the world outside.
type Outward interface {
	// Keys are the virtual keys of a sandbox, or of the whole fleet if sandbox
	// is "", oldest first, revoked ones included.
	Keys(ctx context.Context, sandbox SandboxID) ([]Key, error)
	// Notices are the newest that were or will be sent to the operators' own
	// systems, oldest first.
	Notices(ctx context.Context) ([]Notice, error)
}

// Key is a virtual key: what a sandbox shows the gateway in the place of a
// provider's real one. The engine keeps its hash only; the key itself is shown
// once, to whom it is issued.
type Key struct {
	ID      KeyID     `json:"id"`
	Sandbox SandboxID `json:"sandbox"`
	Name    string    `json:"name,omitempty"`
	// Auto: the engine issued it for the sandbox's own processes.
	Auto    bool      `json:"auto,omitempty"`
	By      Actor     `json:"by,omitzero"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	// Use is what was asked for with it. It is read, and not in events.
	Use KeyUse `json:"use,omitzero"`
}

// Valid reports whether the key opens the gateway at now.
func (k Key) Valid(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// KeyUse is what was asked for through the gateway.
type KeyUse struct {
	Requests int64     `json:"requests,omitempty"`
	Refused  int64     `json:"refused,omitempty"` // for want of budget
	Spent    Spent     `json:"spent,omitzero"`
	Last     time.Time `json:"last,omitzero"`
}

// Add is the sum of both.
func (u KeyUse) Add(o KeyUse) KeyUse {
	u.Requests, u.Refused, u.Spent = u.Requests+o.Requests, u.Refused+o.Refused, u.Spent.Add(o.Spent)
	if o.Last.After(u.Last) {
		u.Last = o.Last
	}
	return u
}

// NoticeKind is what a notice tells of.
type NoticeKind string

// The kinds of notices.
const (
	NoticeBroken     NoticeKind = "broken"     // the healer gave a sandbox up
	NoticeQuarantine NoticeKind = "quarantine" // it was healed too often
	NoticeBudget     NoticeKind = "budget"     // a budget was spent
	NoticeIncident   NoticeKind = "incident"   // an incident was opened
	NoticeTest       NoticeKind = "test"
)

// NoticeState is how far a notice is.
type NoticeState string

// The states of notices.
const (
	NoticeQueued  NoticeState = "queued" // to be sent, for the first time or again
	NoticeSent    NoticeState = "sent"
	NoticeGivenUp NoticeState = "given up" // every try failed
)

// Notice is news for the operators' own systems: a webhook or a command. There
// is one for each transition, and its ID is the same in every try, so that a
// receiver can tell a repetition.
type Notice struct {
	ID      NoticeID    `json:"id"`
	Kind    NoticeKind  `json:"kind"`
	Sandbox SandboxID   `json:"sandbox,omitempty"`
	Name    string      `json:"name,omitempty"` // of the sandbox
	Run     RunID       `json:"run,omitempty"`
	Text    string      `json:"text"` // one line for a person; redacted
	Next    string      `json:"next,omitempty"`
	Seq     Seq         `json:"seq,omitempty"` // of the event that it tells of
	At      time.Time   `json:"at"`
	State   NoticeState `json:"state"`
	Tries   int         `json:"tries,omitempty"`
	Trouble string      `json:"trouble,omitempty"` // of the last try that failed
	Due     time.Time   `json:"due,omitzero"`      // the next try
	Sent    time.Time   `json:"sent,omitzero"`
}
