package pool

import "sbx/engine"

// step is one thing to do for one sandbox.
type step string

// The steps, and what each needs to be true.
const (
	nothing step = ""
	boot    step = "boot"   // it is warming: make its box, start its processes
	begin   step = "begin"  // a command runs in it
	rest    step = "rest"   // none does any more
	settle  step = "settle" // its processes are down, as wanted: make it cold
	remove  step = "remove" // its processes are down: delete what is left
)

// plan says what one sandbox needs next. It is pure: what is wanted, what is,
// and the processes that live.
//
// A sandbox that is being healed is left alone: the healer sees the same row,
// cuts its run where that is called for, and the change of health comes here.
func plan(sb engine.Sandbox, procs []engine.Process) step {
	if sb.Health == engine.Healing {
		return working(sb, procs)
	}
	switch sb.Wanted {
	case engine.Removed:
		if !alive(procs) {
			return remove
		}
	case engine.Down:
		if (sb.State.Live() || sb.Leaving) && !alive(procs) {
			return settle
		}
	case engine.Up:
		if sb.State == engine.Warming {
			return boot
		}
		return working(sb, procs)
	}
	return nothing
}

// working keeps waiting and running true to whether a command runs.
func working(sb engine.Sandbox, procs []engine.Process) step {
	switch working := busy(sb, procs); {
	case sb.State == engine.Waiting && working:
		return begin
	case sb.State == engine.Running && !working:
		return rest
	}
	return nothing
}

func alive(procs []engine.Process) bool {
	for _, p := range procs {
		if p.State.Alive() || p.State == engine.ProcessBackoff {
			return true
		}
	}
	return false
}

// busy reports whether somebody works in a sandbox: a command, or a chat.
func busy(sb engine.Sandbox, procs []engine.Process) bool { return sb.Chat != "" || commands(procs) }

// commands reports whether a command runs, or is to.
func commands(procs []engine.Process) bool {
	for _, p := range procs {
		if !p.State.Over() && (p.Kind == engine.Spawned || watched(p)) {
			return true
		}
	}
	return false
}

// watched reports whether somebody sits at a terminal. One that was left open
// is no work: it would keep its sandbox from ever being idle.
func watched(p engine.Process) bool {
	return p.Kind == engine.Interactive && p.Terminal != nil && p.Terminal.Viewers > 0
}

// attended reports whether a terminal is open.
func attended(procs []engine.Process) bool {
	for _, p := range procs {
		if p.Kind == engine.Interactive && !p.State.Over() {
			return true
		}
	}
	return false
}
