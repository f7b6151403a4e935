package driver

import (
	"context"
	"time"

	"sbx/engine"
)

// Keeper is a Box whose processes can outlive the engine. Not every driver's
// boxes are.
type Keeper interface {
	Box
	// Keep starts a process as Start does, but one that goes on when this
	// engine ends, however it ends. Its output goes to its log by itself: "out",
	// and "err" if split. final: the log ends with it.
	Keep(ctx context.Context, id engine.ProcessID, cmd Command, split, final bool) (Kept, error)
	// Kept is a process that was started by Keep, of an engine before this one
	// too, and whose exit was not forgotten; false if there is none.
	Kept(id engine.ProcessID) (Kept, bool)
	// Hold says what limits hold for all that runs in the box, when an engine
	// before this one has started it.
	Hold(limits engine.Limits)
}

// Kept is a process that outlives the engine, or has.
type Kept interface {
	Proc
	// Began is when and where in its log it started.
	Began() Beginning
	// Lost reports of one that has exited that it didn't end by itself: what
	// held it in the engine's place was killed.
	Lost() bool
	// Forget says that its exit is written down: nobody needs to be told again.
	Forget()
}

// Beginning is when and where in its log a process started.
type Beginning struct {
	At  time.Time
	Log engine.LogPosition
}

// KeptProcess names a process that outlived an engine.
type KeptProcess struct {
	Sandbox engine.SandboxID
	Process engine.ProcessID
	Exited  bool // meanwhile
}

// Inheritor is a Driver that finds what outlived the engine before this one.
type Inheritor interface {
	// Inherit takes over all processes that are kept, once, and says which. It is
	// for the engine alone that owns the data directory.
	Inherit(ctx context.Context) ([]KeptProcess, error)
}
