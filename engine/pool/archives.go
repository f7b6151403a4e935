package pool

import (
	"context"

	"sbx/engine"
)

// Archives keep workspaces that are on no sandbox's disk any more. Whoever
// archives sets it; without one, a workspace is only where it lies, and what
// would lose the last copy isn't done.
type Archives interface {
	// Save archives the workspace of a sandbox whose processes are down. One
	// that has not changed since the last Save costs little. It returns when
	// the local archive is whole; a remote one may follow.
	Save(ctx context.Context, sb engine.Sandbox) error
	// Restore replaces the workspace of a sandbox that was booted by what was
	// saved of the sandbox from (which may be sb itself, and may be long gone),
	// and says where it was: engine.PathLocal or engine.PathRemote. An archive
	// that is damaged is passed over for the next place. engine.NotFound: there
	// is none that can be used; the workspace is as it was then.
	Restore(ctx context.Context, sb engine.Sandbox, from engine.SandboxID) (engine.ResumePath, error)
	// Remote reports whether the remote archive holds the latest Save.
	Remote(ctx context.Context, id engine.SandboxID) bool
	// Drop deletes the local archive of a sandbox; the remote one stays.
	Drop(ctx context.Context, id engine.SandboxID) error
}
