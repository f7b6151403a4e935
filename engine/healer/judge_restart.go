package healer

import (
	"fmt"
	"time"

	"sbx/engine"
)

// weighRestart decides about trouble that a restart may end: a log that stopped
// in the middle of something, or a sandbox that is short of memory or cpu.
//
//	the first in ten minutes    restart (of pressure: kill what earlier starts left, too)
//	not healthy 60 s later      repair (see restarts.go)
//	again in ten minutes        repair
func weighRestart(now time.Time, p Policy, proc engine.Process, past []engine.Signal, sig engine.Signal) (engine.VerdictAction, string) {
	p = p.filled()
	order, restarted := lastRestart(past, sig)
	switch {
	case proc.Wanted == engine.WantStopped:
		return engine.Ignore, "the process was stopped since, as somebody wanted"
	case proc.Started.After(sig.At):
		return engine.Wait, "it was started again since; if that was no use, there will be a new signal"
	case proc.State != engine.ProcessRunning || proc.Wanted != engine.WantRunning:
		return engine.Wait, "it is not running just now: how that goes is told by its supervisor"
	case restarted && proc.Started.Before(order.Verdict.At) && now.Sub(order.Verdict.At) < p.RestartHealthy:
		return engine.Wait, fmt.Sprintf("it is being restarted already (%s)", order.Kind)
	}
	if last, ok := lastRestartFor(past, sig); ok {
		if ago := now.Sub(last.Verdict.At); ago < p.RestartAgain {
			return engine.Repair, reasonWith(fmt.Sprintf("%s again, %s after a restart for it", sig.Kind, ago.Round(time.Second)), sig)
		}
	}
	if sig.Kind == engine.PressureSignal {
		return engine.Restart, reasonWith("emergency: kill what earlier starts left running, and restart", sig)
	}
	return engine.Restart, reasonWith("it may be a passing fault: restart", sig)
}

// lastRestart is the last signal before sig that was judged to need a restart.
func lastRestart(past []engine.Signal, sig engine.Signal) (last engine.Signal, ok bool) {
	for _, s := range past {
		if s.ID < sig.ID && s.Verdict != nil && s.Verdict.Action == engine.Restart {
			last, ok = s, true
		}
	}
	return last, ok
}

// lastRestartFor is the last one of the same kind.
func lastRestartFor(past []engine.Signal, sig engine.Signal) (last engine.Signal, ok bool) {
	var same []engine.Signal
	for _, s := range past {
		if s.Kind == sig.Kind {
			same = append(same, s)
		}
	}
	return lastRestart(same, sig)
}

// task is what is left to do about a verdict that was "restart".
type task int

const (
	restartDone  task = iota // nothing: it is healthy, or somebody else's by now
	restartNow               // it was not restarted yet
	restartWait              // it was, and has time to become healthy
	restartFails             // that time is over
)

// progress says how far a restart is that was judged at, from the rows as they
// are now: what an engine that died had begun is read from them, too. It is
// pure. due is when to look again, if nothing happens before; why explains
// restartDone and restartFails.
func progress(now time.Time, p Policy, at time.Time, sb engine.Sandbox, app engine.Process, runs []engine.HealRun) (t task, due time.Time, why string) {
	p = p.filled()
	switch {
	case sb.Wanted != engine.Up:
		return restartDone, due, "it is " + downWords(sb)
	case sb.Health == engine.Healing || sb.Health == engine.Broken || openedSince(runs, at):
		return restartDone, due, "a heal run took it up"
	case app.Wanted == engine.WantStopped:
		return restartDone, due, "its app was stopped"
	case sb.Maintenance.Active(now):
		return restartDone, due, "auto-heal is paused"
	}
	began := !app.Started.Before(at)
	limit := p.restartLimit(sb)
	due = at.Add(limit)
	if began && app.Started.After(at) {
		due = app.Started.Add(limit)
	}
	switch {
	case !sb.State.Live() || sb.State == engine.Warming:
		return restartWait, now.Add(limit), "" // the engine restarted: so will the app be
	case !began && app.State.Alive():
		return restartNow, due, ""
	case !began && now.Before(due):
		return restartWait, due, "" // its supervisor is at it
	case !began:
		return restartFails, due, fmt.Sprintf("down for %s", limit)
	case settled(sb) && !sb.HealthChanged.Before(at):
		return restartDone, due, fmt.Sprintf("%s %s after it was started", sb.Health, sb.HealthChanged.Sub(app.Started).Round(100*time.Millisecond))
	case now.Before(due):
		return restartWait, due, ""
	}
	return restartFails, due, fmt.Sprintf("not healthy within %s", limit)
}

// restartLimit is how long a restarted app has to be healthy: starting up within
// its start timeout is no failure.
func (p Policy) restartLimit(sb engine.Sandbox) time.Duration {
	p = p.filled()
	return max(p.RestartHealthy, p.patience(sb.Spec.App.StartTimeout.D(), engine.DefaultStartTimeout))
}

// settled reports whether a sandbox is as well as can be told.
func settled(sb engine.Sandbox) bool {
	return sb.Health == engine.Ready || sb.Health == engine.Unknown && sb.Spec.App.Health == ""
}

func openedSince(runs []engine.HealRun, at time.Time) bool {
	for _, r := range runs {
		if !r.Plan && !r.Started.Before(at) {
			return true
		}
	}
	return false
}
