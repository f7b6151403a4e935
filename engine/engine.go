package engine

import (
	"context"
	"io"
	"iter"
	"time"
)

// An Engine is everything a frontend can ask of sbx. Two types implement it:
// local.Engine, in this process, and client.Client, in another. Both pass
// enginetest.Run.
//
// What holds for all of it: every call takes a context and ends soon after it
// does; every argument and result is a plain value of this package; streams
// resume from a position; what changes something is an action.
type Engine interface {
	Actions
	Journal
	History
	Processes
	Files
	Terminals
	Triage
	Outward
	io.Closer // local: stop the engine. client: hang up.
}

// Actions are the only way to change anything: they go in, events come out.
//
// Do returns when the action is decided and durable; what takes long is told
// by events. An action whose ID was done before returns the first receipt
// again (kept 24 h); one with IfSeq set fails with [Conflict] if its subject
// has moved on.
type Actions interface {
	Do(ctx context.Context, a Action) (Receipt, error)
}

// A Journal is the one timeline of everything that happened.
type Journal interface {
	// Snapshot is everything at one position.
	Snapshot(ctx context.Context) (*Snapshot, error)
	// Events yields every event after pos, in order and without gaps, then
	// waits for more. It ends with an error when ctx does, and with [Compacted]
	// if events after pos are gone (pruned, or of another epoch): take a new
	// Snapshot and go on from there.
	Events(ctx context.Context, after Position) iter.Seq2[Event, error]
	// Gauges yields the fleet's latest samples: the first at once, then at
	// least every so often, changed or not, so that silence means a lost
	// engine. While the engine is out of reach it yields an [Unavailable]
	// error for each try that failed, saying in RetryAfter when the next one
	// comes, and goes on. Only other errors and the end of ctx end it.
	Gauges(ctx context.Context, every time.Duration) iter.Seq2[Gauges, error]
}

// History is what is kept after the journal's ring has moved on.
type History interface {
	// Heals yields the healer's records, oldest first.
	Heals(ctx context.Context, q HealQuery) iter.Seq2[HealRecord, error]
	Checkpoints(ctx context.Context, id SandboxID) ([]Checkpoint, error)
	// Diff is what changed between two checkpoints; an empty to is the
	// workspace as it is.
	Diff(ctx context.Context, id SandboxID, from, to CheckpointID) (Diff, error)
	Audit(ctx context.Context, q AuditQuery) iter.Seq2[AuditEntry, error]
	// Messages are those of the chat about a sandbox, in order. What grows is
	// told by events.
	Messages(ctx context.Context, q MessageQuery) ([]Message, error)
	// Archives are those of a sandbox, or all if id is "": of sandboxes that
	// are gone too, as long as a remote one is kept.
	Archives(ctx context.Context, id SandboxID) ([]Archive, error)
}

// Processes run in sandboxes and write logs. Their exits arrive as events.
type Processes interface {
	// ProcessByID is a process, spawned ones that are over included, for as
	// long as its sandbox is kept.
	ProcessByID(ctx context.Context, id ProcessID) (Process, error)
	// ListProcesses are the processes of a sandbox, or of the whole fleet if
	// sandbox is "", oldest first in each: supervised and spawned, those that
	// are over included, for as long as their sandbox is kept.
	ListProcesses(ctx context.Context, sandbox SandboxID) ([]Process, error)
	// Logs yields lines in order. Following ends by itself only when a spawned
	// process is over and all it wrote was read.
	Logs(ctx context.Context, q LogQuery) iter.Seq2[LogLine, error]
	// Pipe is a spawned process's stdout from after on, and its stdin. Closing
	// it hangs up; CloseInput ends the process's stdin. A Write that the process
	// doesn't read waits, and is released by Close and by the end of ctx;
	// writing to what has exited or closed its input is a [Conflict].
	Pipe(ctx context.Context, id ProcessID, after LogPosition) (Pipe, error)
}

// Triage is what is known of heals beyond single runs: faults that several
// sandboxes have, and what models may still spend.
type Triage interface {
	// Incidents are those that q selects, oldest first.
	Incidents(ctx context.Context, q IncidentQuery) ([]Incident, error)
	// Budgets are the bounds on models' work, and what of them was used today.
	Budgets(ctx context.Context) (Budgets, error)
}

// Pipe is a stream over a process's stdout and stdin, fit for JSON-RPC.
type Pipe interface {
	io.ReadWriteCloser
	CloseInput() error
}

// Files are those inside a sandbox. Names are relative to the workspace and
// can't leave it, symbolic links included. Looking never wakes a sandbox.
type Files interface {
	ReadDir(ctx context.Context, id SandboxID, dir string) ([]FileInfo, error)
	// ReadFile reads a regular file of at most [MaxFile] bytes.
	ReadFile(ctx context.Context, id SandboxID, name string) (File, error)
	// OpenFile reads a regular file of any size from offset on; the [File] has
	// no data. A directory is read as a tar of what is in it, rebuildable
	// directories left out, from its beginning only. Close it.
	OpenFile(ctx context.Context, id SandboxID, name string, offset int64) (File, io.ReadCloser, error)
	// Find yields files by name and lines by text, in the order of their paths.
	Find(ctx context.Context, q FindQuery) iter.Seq2[Found, error]
	// Upload brings what r has, for [PlaceFile] to put at its place. One that
	// nothing takes is deleted after a day.
	Upload(ctx context.Context, id SandboxID, r io.Reader) (UploadID, error)
}
