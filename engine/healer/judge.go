package healer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/engine"
)

// Judge decides what a signal calls for, and says why in words for a person.
// It is pure: sb and proc (the process in question; zero if there is none) are
// the rows as they are now, which may be later than the signal; past are the
// sandbox's signals and runs its heal runs of the last hour.
func Judge(now time.Time, p Policy, sb engine.Sandbox, proc engine.Process, past []engine.Signal, runs []engine.HealRun, sig engine.Signal) engine.Verdict {
	v, _ := judge(now, p, sb, proc, past, runs, sig)
	return v
}

// judge also reports whether the sandbox is to be quarantined: broken without
// another run, until an operator acts.
func judge(now time.Time, p Policy, sb engine.Sandbox, proc engine.Process, past []engine.Signal, runs []engine.HealRun, sig engine.Signal) (v engine.Verdict, quarantine bool) {
	return judgeBy(now, p, sb, runs, sig, func() (engine.VerdictAction, string) {
		return weigh(now, p, sb, proc, past, sig)
	})
}

// judgeBy is judge with another way to weigh what was seen.
func judgeBy(now time.Time, p Policy, sb engine.Sandbox, runs []engine.HealRun, sig engine.Signal, weigh func() (engine.VerdictAction, string)) (v engine.Verdict, quarantine bool) {
	action, reason := admit(now, sb, runs, sig)
	runs = slices.DeleteFunc(slices.Clone(runs), func(r engine.HealRun) bool { return r.Plan }) // they did nothing
	if action == engine.Repair && sig.Kind != engine.HandSignal {
		action, reason = weigh()
		if why := orElse(cancelled(sb, runs), flapping(now, p, sb.Resumed, runs)); why != "" && action == engine.Repair {
			action, reason, quarantine = engine.Ignore, why, true
		}
	}
	return engine.Verdict{Action: action, Reason: reason, At: now}, quarantine
}

// admit decides by who owns the sandbox now, whatever the trouble.
func admit(now time.Time, sb engine.Sandbox, runs []engine.HealRun, sig engine.Signal) (engine.VerdictAction, string) {
	byHand := sig.Kind == engine.HandSignal
	switch {
	case sb.Wanted == engine.Removed || sb.State == engine.Gone:
		return engine.Ignore, "it is being removed"
	case sb.Wanted == engine.Down:
		return engine.Ignore, "it is stopped, as somebody wanted"
	case !sb.State.Live():
		return engine.Ignore, "it is cold: nothing of it should run"
	case sb.Health == engine.Healing:
		return engine.Ignore, "it is being healed already" + ownerOf(runs)
	case slices.ContainsFunc(runs, func(r engine.HealRun) bool { return r.Plan && r.Open() }):
		return engine.Wait, planWaits
	case sb.State == engine.Warming:
		return engine.Wait, "it is coming up: how that goes is told by new signals"
	case byHand:
		return engine.Repair, "asked for by hand"
	case sb.Chat != "":
		return engine.Ignore, "somebody works on it in a chat"
	case sb.Maintenance.Active(now):
		return engine.Ignore, maintenanceWords(sb.Maintenance)
	case sb.Health == engine.Broken:
		return engine.Ignore, "it is broken and waits for an operator"
	}
	return engine.Repair, ""
}

func ownerOf(runs []engine.HealRun) string {
	for _, r := range runs {
		if r.Open() {
			return fmt.Sprintf(" (run %s, %s)", engine.Short(r.ID), r.Cause)
		}
	}
	return ""
}

func maintenanceWords(m engine.Maintenance) string {
	words := "auto-heal is paused"
	if m.By != "" {
		words += " by " + m.By
	}
	if !m.Until.IsZero() {
		words += " until " + m.Until.Format("15:04")
	}
	if m.Reason != "" {
		words += ": " + m.Reason
	}
	return words
}

// weigh decides by what was seen and what has happened since.
func weigh(now time.Time, p Policy, sb engine.Sandbox, proc engine.Process, past []engine.Signal, sig engine.Signal) (engine.VerdictAction, string) {
	again := proc.Started.After(sig.At)
	switch sig.Kind {
	case engine.ExitSignal:
		switch {
		case proc.Wanted == engine.WantStopped:
			return engine.Ignore, "the process was stopped since, as somebody wanted"
		case again && proc.State.Alive():
			return engine.Wait, "it was started again since; if it fails again, that is a new signal"
		}
		return engine.Repair, reasonWith("the supervisor gave up", sig)
	case engine.HealthSignal:
		starting := sb.Health == engine.Starting
		limit := p.patience(sb.Spec.App.StartTimeout.D(), engine.DefaultStartTimeout)
		switch {
		case proc.State == engine.ProcessBackoff:
			return engine.Wait, "the process exited and the supervisor is about to start it"
		case again:
			return engine.Wait, "it was started again since; its probes go on"
		case sb.Health == engine.Ready && sb.HealthChanged.After(sig.At):
			return engine.Ignore, "it is ready again since"
		case starting && now.Sub(sb.HealthChanged) < limit:
			return engine.Wait, fmt.Sprintf("it is starting: it has %s for that", limit)
		}
		return engine.Repair, reasonWith("the app runs and is not healthy", sig)
	case engine.StalledSignal, engine.PressureSignal:
		return weighRestart(now, p, proc, past, sig)
	case engine.WakeSignal:
		return engine.Reconnect, "the host slept; probes decide what that broke"
	}
	return engine.Ignore, fmt.Sprintf("a signal of kind %q is unknown to this engine", sig.Kind)
}

func reasonWith(why string, sig engine.Signal) string {
	if seen := strings.TrimSpace(sig.Observed); seen != "" {
		return why + ": " + seen
	}
	return why
}

// byHandPrefix begins the summary of a run that somebody cancelled.
const byHandPrefix = "cancelled by "

// cancelled says that somebody cancelled the last heal and the sandbox was
// neither ready nor brought up anew since; "" if not so. To begin another run
// then would make cancelling useless.
func cancelled(sb engine.Sandbox, runs []engine.HealRun) string {
	if len(runs) == 0 || sb.Health == engine.Ready {
		return ""
	}
	last := runs[len(runs)-1]
	if last.Outcome != engine.Cancelled || !strings.HasPrefix(last.Summary, byHandPrefix) || sb.StateChanged.After(last.Ended) {
		return ""
	}
	return fmt.Sprintf("its heal was %s, and it failed again; to heal it: sbx heal %s", last.Summary, sb.Name)
}

// flapping says why a sandbox must not be healed again by the loop; "" if it
// may. What counts is in the rows, so a restart of the engine forgets nothing.
// A run that an engine's end cut is done anew and counts only then; but three
// of those in the window may be what ended the engine. What was before somebody
// gave the sandbox back is forgiven: else it would be given up at once.
func flapping(now time.Time, p Policy, resumed time.Time, runs []engine.HealRun) string {
	p = p.filled()
	healed, cut := 0, 0
	for _, r := range runs {
		if now.Sub(r.Started) >= p.FlapWindow || r.Open() || r.Started.Before(resumed) {
			continue
		}
		switch r.Outcome {
		case engine.Healed:
			healed++
		case engine.NotHealed, engine.OverBudget:
			if r.By.Kind == engine.ActorHealer && r.Held == "" { // one that was held never began
				healed++
			}
		case engine.Interrupted:
			cut++
		}
	}
	switch {
	case healed >= p.FlapHeals:
		return fmt.Sprintf("flapping: it needs another heal after %d within %s", healed, p.FlapWindow)
	case cut >= p.FlapHeals:
		return fmt.Sprintf("flapping: the engine ended in its last %d heals", cut)
	}
	return ""
}
