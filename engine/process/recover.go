package process

import (
	"sbx/engine"
	"sbx/store"
)

// Stopped is the reason of what ended because the engine did.
const Stopped = "the engine stopped"

// Recover makes the rows true that an engine left which is gone with all its
// processes. Supervised ones are stopped, those that had failed too: what is
// wanted running begins anew. Commands have ended; their ids are returned, so
// that the caller can end their logs. Those in kept live, or have an exit that
// is still to be told: their rows stay as they are.
func Recover(tx *store.Tx, kept map[engine.ProcessID]bool) (ended []engine.ProcessID, err error) {
	live, err := tx.LiveProcesses()
	if err != nil {
		return nil, err
	}
	for _, p := range live {
		if kept[p.ID] {
			continue
		}
		if p.Once() {
			ended = append(ended, p.ID)
		}
		if !recovered(&p, tx) {
			continue
		}
		if err := tx.PutProcess(p); err != nil {
			return nil, err
		}
	}
	return ended, nil
}

// recovered corrects one row and reports whether there was something to
// correct.
func recovered(p *engine.Process, tx *store.Tx) bool {
	if p.State == engine.ProcessStopped || p.State == engine.ProcessExited {
		return false
	}
	exit := engine.Exit{Code: engine.ExitSignalBase + 9, Signal: "SIGKILL", Killed: true, At: tx.Now}
	if !p.Started.IsZero() && p.State.Alive() {
		exit.Uptime = engine.Duration(max(0, tx.Now.Sub(p.Started)))
	}
	was := p.State
	p.PID = 0
	if p.Once() {
		exit.Error = Stopped
		p.State, p.Reason, p.Exit = engine.ProcessExited, Stopped, &exit
		return true
	}
	p.State = engine.ProcessStopped
	if was.Alive() { // else the exit that it has is true, and says why
		p.Exit, p.Reason = &exit, Stopped
	}
	if p.Wanted == engine.WantRestart {
		p.Wanted = engine.WantRunning
	}
	return true
}
