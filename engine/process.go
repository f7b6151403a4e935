package engine

import (
	"strconv"
	"time"
)

// ProcessKind is why a process is there.
type ProcessKind string

// The kinds of processes.
const (
	Supervised ProcessKind = "supervised" // in the spec; kept running
	Spawned    ProcessKind = "spawned"    // a command, once
	// Interactive is a command on a terminal, once.
	Interactive ProcessKind = "terminal"
)

// WantedProcess is what a process should do. An operator's stop changes this,
// so it never looks like a crash.
type WantedProcess string

// What can be wanted of a process.
const (
	WantRunning WantedProcess = "running"
	WantStopped WantedProcess = "stopped"
	WantRestart WantedProcess = "restart" // stop, start, then running
)

// Process is one command in a sandbox: supervised, spawned or on a terminal.
type Process struct {
	ID      ProcessID     `json:"id"`
	Sandbox SandboxID     `json:"sandbox"`
	Name    string        `json:"name,omitempty"` // of a supervised one: "app", …; of a terminal, if it was given one
	Kind    ProcessKind   `json:"kind"`
	Command Command       `json:"command"`
	Stdin   bool          `json:"stdin,omitempty"` // of a spawned one: its input stays open
	Port    int           `json:"port,omitempty"`  // assigned
	Wanted  WantedProcess `json:"wanted"`
	State   ProcessState  `json:"state"`
	// Reason is why the supervisor did what it did last, in words.
	Reason   string    `json:"reason,omitempty"`
	PID      int       `json:"pid,omitempty"` // as the driver's host knows it; 0 if none
	Started  time.Time `json:"started,omitzero"`
	Starts   int       `json:"starts,omitempty"`   // how often it was started
	Restarts int       `json:"restarts,omitempty"` // how often the supervisor did it by itself
	// Exit is the last exit; nil before the first.
	Exit *Exit `json:"exit,omitempty"`
	// Exits are the latest exits that nobody asked for, oldest first, at most
	// [KeptExits]: what restart decisions and crash loops are read from.
	Exits []Exit `json:"exits,omitempty"`
	// LogStart is where the log of the last start begins.
	LogStart int64 `json:"logStart"`
	By       Actor `json:"by,omitzero"` // who spawned it
	// Terminal is set for one that is Interactive.
	Terminal *TerminalState `json:"terminal,omitempty"`
}

// Once reports whether it is run once, as somebody asked, and never again.
func (p Process) Once() bool { return p.Kind != Supervised }

// Running reports whether it runs, or is about to or hasn't quite ended.
func (p Process) Running() bool { return p.State.Alive() }

// ExitCode is the code of its last exit, as a shell tells it; false while it
// runs and before its first exit.
func (p Process) ExitCode() (code int, ok bool) {
	if p.Running() || p.Exit == nil {
		return 0, false
	}
	return p.Exit.Code, true
}

// KeptExits is how many exits a [Process] remembers.
const KeptExits = 8

// Command is what to run and how.
type Command struct {
	Shell   string            `json:"shell"`         // run by /bin/sh -c
	Dir     string            `json:"dir,omitempty"` // in the workspace; "" is its root
	Env     map[string]string `json:"env,omitempty"`
	Timeout Duration          `json:"timeout,omitempty"` // then the tree is killed; 0: none
}

// Exit is how a process ended.
type Exit struct {
	Code     int       `json:"code"`             // as a shell tells it: 128+signal, 124 for a timeout
	Signal   string    `json:"signal,omitempty"` // "SIGKILL", if one ended it
	OOM      bool      `json:"oom,omitempty"`    // the kernel ended it for want of memory
	TimedOut bool      `json:"timedOut,omitempty"`
	Killed   bool      `json:"killed,omitempty"` // on request: stop, kill, restart
	At       time.Time `json:"at"`
	Uptime   Duration  `json:"uptime"`
	// Error is why it could not be started at all, or what else there is to say
	// of an end that nobody saw: "the engine stopped".
	Error string `json:"error,omitempty"`
}

// The exit codes that shells and SPEC §6 give a meaning.
const (
	ExitTimeout       = 124
	ExitNotExecutable = 126
	ExitNotFound      = 127
	ExitSignalBase    = 128
)

// String says how it ended as a person would: "exit 1", "SIGKILL",
// "out of memory".
func (e Exit) String() string {
	switch {
	case e.Error != "" && (e.Signal != "" || e.Uptime > 0):
		return e.Error // it ran
	case e.Error != "":
		return "not started: " + e.Error
	case e.OOM:
		return "out of memory"
	case e.TimedOut:
		return "timed out"
	case e.Signal != "":
		return e.Signal
	}
	return "exit " + strconv.Itoa(e.Code)
}

// Usage is what a sandbox uses now.
type Usage struct {
	CPU       float64 `json:"cpu"`    // cores, averaged since the sample before
	Memory    Size    `json:"memory"` // the working set: without reclaimable cache where that is known
	Processes int     `json:"processes"`
	Disk      Size    `json:"disk,omitempty"`
}

// Gauges are the fleet's latest samples. They are not events: nothing of them
// is stored, and the newest wins.
type Gauges struct {
	At        time.Time            `json:"at"`
	Sandboxes map[SandboxID]Sample `json:"sandboxes"`
	Pool      PoolLevels           `json:"pool"`
	Engine    EngineUsage          `json:"engine"`
	Archives  ArchiveLevels        `json:"archives"`
}

// Sample is one sandbox's part of [Gauges].
type Sample struct {
	Usage
	Probe Probe `json:"probe,omitzero"`
	// LogLine is the last line that its app wrote, at most 200 bytes.
	LogLine string `json:"logLine,omitempty"`
}

// Probe is one GET on a sandbox's health path.
type Probe struct {
	At      time.Time `json:"at,omitzero"`
	OK      bool      `json:"ok"`
	Latency Duration  `json:"latency,omitempty"`
	Detail  string    `json:"detail,omitempty"` // "200", "503", "connection refused", …
}

// PoolLevels counts sandboxes by state, and what the pool did since the data
// directory was made, as SPEC §4 names the counters. What is leaving is in none
// of the states.
type PoolLevels struct {
	Total       int `json:"total"`
	Cold        int `json:"cold"`
	Warming     int `json:"warming"`
	Warm        int `json:"warm"`
	Waiting     int `json:"waiting"`
	Running     int `json:"running"`
	MaxCapacity int `json:"maxCapacity"`
	PoolCounters
	// PreWarm are the templates that warm sandboxes are kept of.
	PreWarm []WarmLevel `json:"preWarm,omitempty"`
}

// WarmLevel is how far the pool is with the warm sandboxes of a template.
type WarmLevel struct {
	Template string `json:"template"`
	Wanted   int    `json:"wanted"`
	Ready    int    `json:"ready"`
	// Failure is why the last could not be made, and Retry when another is.
	Failure string    `json:"failure,omitempty"`
	Retry   time.Time `json:"retry,omitzero"`
}

// PoolCounters are the ways in which sandboxes came to those who asked. Each
// resume counts once, by the step of the walk that had the workspace.
type PoolCounters struct {
	ResumeWarmHits      int64 `json:"resumeWarmHits"`      // still alive
	ResumeColdHits      int64 `json:"resumeColdHits"`      // the live workspace on disk
	ResumeColdLocalHits int64 `json:"resumeColdLocalHits"` // the local archive
	ResumeColdCloudHits int64 `json:"resumeColdCloudHits"` // the remote archive
	ResumeColdFreshHits int64 `json:"resumeColdFreshHits"` // nothing: made anew
	PreWarmHits         int64 `json:"preWarmHits"`         // a warm one was claimed
	Evictions           int64 `json:"evictions"`
	IdleSweeps          int64 `json:"idleSweeps"`   // put to sleep when idle
	ColdCleanups        int64 `json:"coldCleanups"` // cold for too long
}

// EngineUsage is what the engine itself uses.
type EngineUsage struct {
	CPU    float64 `json:"cpu"` // cores
	Memory Size    `json:"memory"`
}
