package local

import (
	"sbx/engine"
)

// A host that can say how large it is.
type sized interface {
	// Room is how many cores and how much memory the host has; 0: not known.
	Room() (cores float64, memory engine.Size)
}

// fits refuses a spec that asks for more than the host has: the kernel would
// let it, and it would never be enough.
func (e *Engine) fits(sp engine.Spec) error {
	h, ok := e.cfg.Driver.(sized)
	if !ok {
		return nil
	}
	cores, memory := h.Room()
	switch {
	case cores > 0 && sp.Limits.CPU > cores:
		return engine.Errorf(engine.Invalid, "limits.cpu asks for %g cores, and the host has %g", sp.Limits.CPU, cores).
			WithHint("ask for at most %g", cores)
	case memory > 0 && sp.Limits.Memory > memory:
		return engine.Errorf(engine.Invalid, "limits.memory asks for %s, and the host has %s", sp.Limits.Memory, memory).
			WithHint("ask for at most %s", memory)
	}
	return nil
}
