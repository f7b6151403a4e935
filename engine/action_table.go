package engine

import (
	"encoding/json"
	"fmt"
)

// Danger is how much confirmation an action asks of a person (UX §3.9).
type Danger int

// The tiers of confirmation.
const (
	Harmless   Danger = 0 // none
	Repeat     Danger = 1 // the same key again
	Confirm    Danger = 2 // a dialog whose default is no
	TypeToName Danger = 3 // a dialog and its name typed
)

// ActionEntry is what is known of one kind of action: the server makes its
// route of it, the audit log its words, the dashboard its confirmation.
type ActionEntry struct {
	Kind   string // "sandbox.restart"
	Verb   string // for people: "restart"
	Least  Role
	Danger Danger
	// Method and Path are its route; {id} in Path is its subject.
	Method, Path string

	decode func(id string, b []byte) (ActionBody, error)
}

// Decode reads the action's body from JSON; id is the subject from the path
// and counts instead of the body's own.
func (e *ActionEntry) Decode(id string, b []byte) (ActionBody, error) {
	body, err := e.decode(id, b)
	if err != nil {
		return nil, Errorf(Invalid, "%s: %w", e.Kind, err).WithHint("the fields are those of GET /v1/openapi.json")
	}
	return body, nil
}

func row[T ActionBody](kind, verb string, least Role, danger Danger, route string, subject func(*T, string)) *ActionEntry {
	e := &ActionEntry{Kind: kind, Verb: verb, Least: least, Danger: danger}
	if _, err := fmt.Sscanf(route, "%s %s", &e.Method, &e.Path); err != nil {
		panic("engine: route " + route)
	}
	e.decode = func(id string, b []byte) (ActionBody, error) {
		var body T
		if len(b) > 0 {
			if err := json.Unmarshal(b, &body); err != nil {
				return nil, err
			}
		}
		if subject != nil {
			subject(&body, id)
		}
		return body, nil
	}
	return e
}

var (
	createSandbox = row[CreateSandbox]("sandbox.create", "create", Operator, Harmless, "POST /v1/sandboxes", nil)
	applySpec     = row("sandbox.apply", "apply the spec of", Operator, Confirm, "PUT /v1/sandboxes/{id}/spec",
		func(a *ApplySpec, id string) { a.Sandbox = SandboxID(id) })
	startSandbox = row("sandbox.start", "start", Operator, Harmless, "POST /v1/sandboxes/{id}/start",
		func(a *StartSandbox, id string) { a.Sandbox = SandboxID(id) })
	stopSandbox = row("sandbox.stop", "stop", Operator, Confirm, "POST /v1/sandboxes/{id}/stop",
		func(a *StopSandbox, id string) { a.Sandbox = SandboxID(id) })
	restartApp = row("sandbox.restart", "restart", Operator, Confirm, "POST /v1/sandboxes/{id}/restart",
		func(a *RestartApp, id string) { a.Sandbox = SandboxID(id) })
	removeSandbox = row("sandbox.remove", "remove", Operator, TypeToName, "DELETE /v1/sandboxes/{id}",
		func(a *RemoveSandbox, id string) { a.Sandbox = SandboxID(id) })
	keepSandbox = row("sandbox.keep", "keep", Operator, Harmless, "PUT /v1/sandboxes/{id}/keep",
		func(a *KeepSandbox, id string) { a.Sandbox = SandboxID(id) })
	setMaintenance = row("sandbox.maintenance", "pause auto-heal of", Operator, Harmless, "PUT /v1/sandboxes/{id}/maintenance",
		func(a *SetMaintenance, id string) { a.Sandbox = SandboxID(id) })
	spawn = row("process.spawn", "run a command in", Operator, Harmless, "POST /v1/sandboxes/{id}/processes",
		func(a *Spawn, id string) { a.Sandbox = SandboxID(id) })
	openTerminal = row("terminal.open", "open a terminal in", Operator, Harmless, "POST /v1/sandboxes/{id}/terminals",
		func(a *OpenTerminal, id string) { a.Sandbox = SandboxID(id) })
	killProcess = row("process.kill", "kill", Operator, Confirm, "DELETE /v1/processes/{id}",
		func(a *KillProcess, id string) { a.Process = ProcessID(id) })
	writeFile = row("file.write", "write a file in", Operator, Harmless, "PUT /v1/sandboxes/{id}/file",
		func(a *WriteFile, id string) { a.Sandbox = SandboxID(id) })
)

// ActionTable is every kind of action.
var ActionTable = append([]*ActionEntry{
	createSandbox, applySpec, startSandbox, stopSandbox, restartApp, removeSandbox, keepSandbox,
	setMaintenance, startHeal, applyPlan, cancelHeal, noteHeal, watchIncident,
	spawn, openTerminal, killProcess, writeFile,
	say, stopChat, answerApproval, issueKey, revokeKey, testNotify,
	createSession, execSession, pauseSession, resumeSession, endSession,
}, fileActions...)

// EntryOf is the table's row for a body.
func EntryOf(b ActionBody) *ActionEntry { return b.entry() }

func (CreateSandbox) entry() *ActionEntry  { return createSandbox }
func (ApplySpec) entry() *ActionEntry      { return applySpec }
func (StartSandbox) entry() *ActionEntry   { return startSandbox }
func (StopSandbox) entry() *ActionEntry    { return stopSandbox }
func (RestartApp) entry() *ActionEntry     { return restartApp }
func (RemoveSandbox) entry() *ActionEntry  { return removeSandbox }
func (KeepSandbox) entry() *ActionEntry    { return keepSandbox }
func (SetMaintenance) entry() *ActionEntry { return setMaintenance }
func (Spawn) entry() *ActionEntry          { return spawn }
func (OpenTerminal) entry() *ActionEntry   { return openTerminal }
func (KillProcess) entry() *ActionEntry    { return killProcess }
func (WriteFile) entry() *ActionEntry      { return writeFile }
