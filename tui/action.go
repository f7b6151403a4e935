package tui

import (
	"time"

	"charm.land/bubbles/v2/key"

	"sbx/engine"
)

// action is one thing that a person can do to a sandbox. Keys, help, footer,
// the inspector's list and the dialogs are made from the registry of them.
type action struct {
	key key.Binding
	// title is what it does to this sandbox: "stop to cold", "start".
	title func(w *world, sb engine.Sandbox) string
	// blocked is why it can't be done now, in words, or "".
	blocked func(w *world, sb engine.Sandbox) string
	// body is what to ask the engine; nil: it opens a menu first.
	body func(sb engine.Sandbox) engine.ActionBody
	// tier is how much confirmation it asks for this sandbox.
	tier func(sb engine.Sandbox) engine.Danger
	// verb is what the dialog calls it; "": as the engine does.
	verb string
	// loses says what is lost by it, for the dialog.
	loses string
}

// menu is what P asks before it acts.
type menu struct {
	key, words string
	body       func(id engine.SandboxID) engine.ActionBody
}

func says(s string) func(*world, engine.Sandbox) string {
	return func(*world, engine.Sandbox) string { return s }
}

// tierOf is the engine's own opinion of how dangerous a body is.
func tierOf(body engine.ActionBody) func(engine.Sandbox) engine.Danger {
	return func(engine.Sandbox) engine.Danger { return engine.EntryOf(body).Danger }
}

func newActions(k keyMap) []action {
	return []action{
		{
			key: k.Heal, title: says("heal now"), blocked: cantHeal, tier: healTier,
			body: func(sb engine.Sandbox) engine.ActionBody { return engine.StartHeal{Sandbox: sb.ID} },
		},
		{
			key: k.Abort, title: says("abort the heal"), blocked: cantAbort, tier: tierOf(engine.CancelHeal{}),
			body: func(sb engine.Sandbox) engine.ActionBody { return engine.CancelHeal{Sandbox: sb.ID} },
		},
		{key: k.Pause, title: pauseTitle, blocked: never, tier: tierOf(engine.SetMaintenance{})},
		{
			key: k.Restart, title: says("restart the app"), blocked: cantRestart, tier: tierOf(engine.RestartApp{}),
			loses: "Files stay. What the app holds in memory and its running requests are lost.",
			body:  func(sb engine.Sandbox) engine.ActionBody { return engine.RestartApp{Sandbox: sb.ID} },
		},
		{
			key: k.Stop, title: stopTitle, blocked: cantStop, tier: stopTier,
			loses: "Files stay. Its processes and running commands end; S starts it again.",
			body:  stopBody,
		},
		{
			key: k.Destroy, title: says("destroy"), verb: "destroy", blocked: never, tier: tierOf(engine.RemoveSandbox{}),
			loses: "Its record, history and files are deleted. This can't be undone.",
			body:  func(sb engine.Sandbox) engine.ActionBody { return engine.RemoveSandbox{Sandbox: sb.ID} },
		},
	}
}

// pauses are the ways to pause auto-heal; the last resumes it.
func pauses() []menu {
	pause := func(d time.Duration) func(engine.SandboxID) engine.ActionBody {
		return func(id engine.SandboxID) engine.ActionBody {
			return engine.SetMaintenance{Sandbox: id, On: true, For: engine.Duration(d)}
		}
	}
	return []menu{
		{"1", "for 1 hour", pause(time.Hour)},
		{"8", "for 8 hours", pause(8 * time.Hour)},
		{"u", "until resumed", pause(0)},
		{"c", "resume now", func(id engine.SandboxID) engine.ActionBody {
			return engine.SetMaintenance{Sandbox: id}
		}},
	}
}

// why is the reason that an action can't be done, the dashboard's own first.
func (a action) why(w *world, sb engine.Sandbox) string {
	switch {
	case w.link.state != live:
		return "waits for the engine"
	case w.cfg.ReadOnly != "":
		return w.cfg.ReadOnly
	}
	return a.blocked(w, sb)
}

func never(*world, engine.Sandbox) string { return "" }

func cantHeal(_ *world, sb engine.Sandbox) string {
	switch {
	case sb.Health == engine.Healing:
		return "it is being healed"
	case sb.State == engine.Warming:
		return "it is starting"
	case !sb.State.Live():
		return "it is cold: S starts it"
	}
	return ""
}

func healTier(sb engine.Sandbox) engine.Danger {
	if sb.Health == engine.Ready {
		return engine.Repeat // nothing seems wrong with it
	}
	return engine.Harmless
}

func cantAbort(_ *world, sb engine.Sandbox) string {
	if sb.Health != engine.Healing {
		return "no heal is under way"
	}
	return ""
}

func cantRestart(_ *world, sb engine.Sandbox) string {
	if !sb.State.Live() {
		return "it is cold: S starts it"
	}
	return ""
}

func cantStop(_ *world, sb engine.Sandbox) string {
	if sb.State == engine.Warming && sb.Wanted == engine.Up {
		return "it is starting"
	}
	return ""
}

func stopTitle(_ *world, sb engine.Sandbox) string {
	if sb.State == engine.Cold {
		return "start"
	}
	return "stop to cold"
}

func stopBody(sb engine.Sandbox) engine.ActionBody {
	if sb.State == engine.Cold {
		return engine.StartSandbox{Sandbox: sb.ID}
	}
	return engine.StopSandbox{Sandbox: sb.ID}
}

func stopTier(sb engine.Sandbox) engine.Danger { return engine.EntryOf(stopBody(sb)).Danger }

func pauseTitle(w *world, sb engine.Sandbox) string {
	if sb.Maintenance.Active(w.now) {
		return "resume auto-heal"
	}
	return "pause auto-heal"
}
