package playbook

import (
	"context"

	"sbx/engine"
)

// restart starts the app once more: the fault may have been a passing one.
type restart struct{}

func (restart) Name() string { return "restart" }
func (restart) Edits() bool  { return false }

// codeFault is what an interpreter or compiler says of code that can't run. It
// says the same at the next start.
var codeFault = lazily(`(?m)^\s*(?:Uncaught\s+)?(SyntaxError|IndentationError|TabError|ReferenceError|NameError|ImportError)\b|\.go:\d+:\d+: `)

func (restart) Applies(ev Evidence) (string, bool) {
	if inVain(ev) {
		return "", false
	}
	if ev.Signal.Kind == engine.PressureSignal && ev.Probe.OK {
		return "it answers, and is short of what it may use; a restart gives back what it holds", true
	}
	if ev.Down() {
		return "it is down; the fault may have been a passing one", true
	}
	return "it runs and does not answer; the fault may have been a passing one", true
}

// inVain reports whether the app was restarted already, and either failed both
// times for its code or is in the trouble that a restart was to end.
func inVain(ev Evidence) bool {
	switch ev.Signal.Kind { // such a run is only opened after a restart
	case engine.StalledSignal:
		return true
	case engine.PressureSignal:
		return ev.Spec.App.Health != "" && !ev.Probe.OK
	}
	return ev.Signal.Kind == engine.ExitSignal && len(ev.Process.Exits) > 1 && codeFault().MatchString(ev.Log)
}

func (restart) Apply(ctx context.Context, _ Evidence, w Workbench) error { return w.Restart(ctx) }
