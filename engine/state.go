package engine

import (
	"fmt"
	"slices"
	"strings"
)

// State is a sandbox's place in the pool (SPEC §4).
type State string

// The places in the pool. Gone is where a removed record went.
const (
	Cold    State = "cold"    // a record only; the workspace may be kept
	Warming State = "warming" // being created or brought back
	Warm    State = "warm"    // ready and unclaimed
	Waiting State = "waiting" // claimed, between commands
	Running State = "running" // working on a command or a chat turn
	Gone    State = "gone"    // removed; never stored
)

// Live reports whether a sandbox in this state may have processes.
func (s State) Live() bool {
	return s == Warming || s == Warm || s == Waiting || s == Running
}

// LifeTrigger moves a sandbox through the pool.
type LifeTrigger string

// What moves a sandbox through the pool.
const (
	Resume     LifeTrigger = "resume"      // bring it up
	Booted     LifeTrigger = "booted"      // up, for nobody yet
	Restored   LifeTrigger = "restored"    // up, for whom it was made
	BootFailed LifeTrigger = "boot failed" // it could not be brought up
	Claim      LifeTrigger = "claim"       // take a warm one
	Begin      LifeTrigger = "begin"       // a command starts
	Rest       LifeTrigger = "rest"        // the last command ended
	Evict      LifeTrigger = "evict"       // make room
	Expire     LifeTrigger = "expire"      // cold for too long
	Stop       LifeTrigger = "stop"        // its processes were stopped
	Lost       LifeTrigger = "lost"        // its processes are gone without us
	Remove     LifeTrigger = "remove"      // delete it
)

// life is a sandbox's way through the pool. README.md shows it drawn from this
// table (TestDiagrams keeps them the same).
//
// Warm means unclaimed: claimed sandboxes rest in waiting. Evict asks, in the
// same transaction, that the sandbox is neither healing nor kept.
var life = machine[State, LifeTrigger]{
	{from(Cold), Resume, Warming},
	{from(Warming), Booted, Warm},
	{from(Warming), Restored, Waiting},
	{from(Warming), BootFailed, Cold},
	{from(Warm), Claim, Waiting},
	{from(Waiting), Begin, Running},
	{from(Running), Rest, Waiting},
	{from(Waiting), Evict, Cold},
	{from(Warm), Evict, Gone},
	{from(Cold), Expire, Gone},
	{from(Warming, Warm, Waiting, Running), Stop, Cold},
	{from(Warming, Warm, Waiting, Running), Lost, Cold},
	{from(Cold, Warming, Warm, Waiting, Running), Remove, Gone},
}

// Next is the state after on, or a Conflict that a person can read.
func (s State) Next(on LifeTrigger) (State, error) { return life.next(s, on) }

// Health is whether a sandbox works. A reason stands beside all but ready.
type Health string

// The conditions of a sandbox.
const (
	Unknown  Health = "unknown"  // nothing to probe, or not heard of since
	Starting Health = "starting" // within its start timeout
	Ready    Health = "ready"
	Healing  Health = "healing" // a heal run is open
	Broken   Health = "broken"  // the healer gave up
)

// HealthTrigger changes a sandbox's condition.
type HealthTrigger string

// What changes a sandbox's condition.
const (
	Boot      HealthTrigger = "boot"      // its processes are being started
	Passed    HealthTrigger = "passed"    // a probe was healthy
	Unprobed  HealthTrigger = "unprobed"  // it runs, and there is nothing to probe
	Fault     HealthTrigger = "fault"     // a signal was judged to need repair
	Restarted HealthTrigger = "restarted" // somebody restarted it
	Repaired  HealthTrigger = "repaired"  // a heal run was verified
	GaveUp    HealthTrigger = "gave up"   // a heal run ended without success
	Cut       HealthTrigger = "cut"       // a heal run was cancelled or the engine stopped in it
	Retry     HealthTrigger = "retry"     // heal a broken one once more
	Recovered HealthTrigger = "recovered" // somebody fixed it by hand
	WentDown  HealthTrigger = "down"      // its processes were stopped
)

// health is whether it works, beside its place in the pool. README.md shows it
// drawn from this table.
var health = machine[Health, HealthTrigger]{
	{from(Unknown), Boot, Starting},
	{from(Starting, Unknown), Passed, Ready},
	{from(Starting), Unprobed, Unknown},
	{from(Unknown, Starting, Ready), Fault, Healing},
	{from(Ready, Broken, Unknown), Restarted, Starting},
	{from(Healing), Repaired, Ready},
	{from(Healing), GaveUp, Broken},
	{from(Healing), Cut, Unknown}, // look again
	{from(Broken), Retry, Healing},
	{from(Broken), Recovered, Ready},
	{from(Starting, Ready, Healing, Broken), WentDown, Unknown},
}

// Next is the health after on, or a Conflict that a person can read.
func (h Health) Next(on HealthTrigger) (Health, error) { return health.next(h, on) }

// ProcessState is what a process is doing.
type ProcessState string

// The states of a process. Wanted says what it should do.
const (
	ProcessStarting ProcessState = "starting"
	ProcessRunning  ProcessState = "running"
	ProcessBackoff  ProcessState = "backoff"  // exited, to be started again
	ProcessStopping ProcessState = "stopping" // TERM was sent
	ProcessStopped  ProcessState = "stopped"  // down, as wanted
	ProcessExited   ProcessState = "exited"   // a spawned command ended
	ProcessFailed   ProcessState = "failed"   // the supervisor gave up
)

// Alive reports whether a process in this state may have a pid.
func (s ProcessState) Alive() bool {
	return s == ProcessStarting || s == ProcessRunning || s == ProcessStopping
}

// Over reports whether a process in this state has nothing left to happen.
func (s ProcessState) Over() bool {
	return s == ProcessStopped || s == ProcessExited || s == ProcessFailed
}

type edge[S, T ~string] struct {
	from []S
	on   T
	to   S
}

type machine[S, T ~string] []edge[S, T]

func from[S ~string](s ...S) []S { return s }

func (m machine[S, T]) next(s S, on T) (S, error) {
	for _, e := range m {
		if e.on == on && slices.Contains(e.from, s) {
			return e.to, nil
		}
	}
	return s, Errorf(Conflict, "sandbox is %s: cannot %s", s, on)
}

// LifeDiagram and HealthDiagram draw the two tables as Mermaid state diagrams.
func LifeDiagram() string { return life.diagram() }

// HealthDiagram draws the table of conditions.
func HealthDiagram() string { return health.diagram() }

func (m machine[S, T]) diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, e := range m {
		for _, f := range e.from {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", f, e.to, e.on)
		}
	}
	return b.String()
}
