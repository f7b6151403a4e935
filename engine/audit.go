package engine

import "time"

// AuditEntry is one change that somebody made: who, from where, what, result.
// The audit log is append-only.
type AuditEntry struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	By      Actor     `json:"by"`
	Action  ActionID  `json:"action"`
	Kind    string    `json:"kind"`    // the action's kind: "sandbox.restart"
	Subject string    `json:"subject"` // the id of what it changed
	Words   string    `json:"words"`   // "restart api"
	Result  string    `json:"result"`  // "ok", or the error in words
}

// AuditQuery selects from the audit log.
type AuditQuery struct {
	Subject string    `json:"subject,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	After   int64     `json:"after,omitempty"`
	Limit   int       `json:"limit,omitempty"` // newest; 0: all
}
