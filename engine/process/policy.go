package process

import "time"

// Policy is what holds for every process. Zero fields mean [DefaultPolicy]'s.
type Policy struct {
	// FirstPort and LastPort bound the ports that are assigned; 0: wherever the
	// box finds one.
	FirstPort, LastPort int
	// LoopExits exits that nobody asked for within LoopWindow raise a signal,
	// even where the process is started again.
	LoopExits  int
	LoopWindow time.Duration
	// Two exits in a row at most QuickWindow apart, each after less than
	// QuickUptime (or the spec's min_uptime, if that is longer), raise one too.
	QuickUptime time.Duration
	QuickWindow time.Duration
	// MaxQuickDelay caps the restart delay after such an exit. With a longer
	// one, a process that lives a second would not be noticed in QuickWindow.
	MaxQuickDelay time.Duration
	// SpawnGrace is what a spawned command has between TERM and KILL.
	SpawnGrace time.Duration
	// Drain is how long an exit waits for the last of the output, so that the
	// log is whole when the exit is told.
	Drain time.Duration
	// Leave bounds the stopping of everything when the engine leaves.
	Leave time.Duration
}

// DefaultPolicy has the numbers of SPEC §7.1 and of an ordinary host.
func DefaultPolicy() Policy {
	return Policy{
		LoopExits: 3, LoopWindow: 5 * time.Minute,
		QuickUptime: 5 * time.Second, QuickWindow: 15 * time.Second, MaxQuickDelay: 10 * time.Second,
		SpawnGrace: 5 * time.Second, Drain: 50 * time.Millisecond, Leave: 8 * time.Second,
	}
}

// outside reports whether a port must not be assigned.
func (p Policy) outside(port int) bool {
	return port < p.FirstPort || p.LastPort > 0 && port > p.LastPort
}

// filled is the policy with defaults where it has zeros.
func (p Policy) filled() Policy {
	d := DefaultPolicy()
	if p.LoopExits <= 0 {
		p.LoopExits = d.LoopExits
	}
	for _, f := range []struct {
		value *time.Duration
		other time.Duration
	}{
		{&p.LoopWindow, d.LoopWindow},
		{&p.QuickUptime, d.QuickUptime},
		{&p.QuickWindow, d.QuickWindow},
		{&p.MaxQuickDelay, d.MaxQuickDelay},
		{&p.SpawnGrace, d.SpawnGrace},
		{&p.Drain, d.Drain},
		{&p.Leave, d.Leave},
	} {
		if *f.value <= 0 {
			*f.value = f.other
		}
	}
	return p
}
