// Package healer makes broken sandboxes work again, or says why it can't.
//
// Detectors raise signals. The healer judges each one (judge.go); most are
// ignored. For the rest it opens a run, and the sandbox is healing until the
// run ends:
//
//	signal ─► verdict ─► run: checkpoint ─► playbooks ─► attempts of a model ─► end
//	                              │  each followed by verification  │
//	                              └────────── healed ◄──────────────┘
//	                                 else: rolled back, broken
//
// Signals are judged in the transaction that moves the healer's cursor, so each
// is judged once. Runs are started from rows, not from events: an event is
// history, the row is what counts. A run reads its row before every write and
// ends when the row says so: cancelled, stopped, removed.
//
// The one rule: only verification makes a sandbox ready. What a model says of
// its own work proves nothing.
package healer
