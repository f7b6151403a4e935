package client

import (
	"context"
	"net/url"

	"sbx/engine"
)

// Snapshot is everything at one position.
func (c *Client) Snapshot(ctx context.Context) (*engine.Snapshot, error) {
	snap := engine.NewSnapshot(engine.Position{})
	if err := c.get(ctx, "/v1/snapshot", nil, snap); err != nil {
		return nil, err
	}
	fillMaps(snap)
	return snap, nil
}

// fillMaps makes maps of those that came as null: Apply writes into them.
func fillMaps(s *engine.Snapshot) {
	empty := engine.NewSnapshot(s.Position)
	if s.Sandboxes == nil {
		s.Sandboxes = empty.Sandboxes
	}
	if s.Processes == nil {
		s.Processes = empty.Processes
	}
	if s.Runs == nil {
		s.Runs = empty.Runs
	}
	if s.Attempts == nil {
		s.Attempts = empty.Attempts
	}
	if s.Steps == nil {
		s.Steps = empty.Steps
	}
	if s.Signals == nil {
		s.Signals = empty.Signals
	}
	if s.Incidents == nil {
		s.Incidents = empty.Incidents
	}
	if s.Sessions == nil { // of an older engine
		s.Sessions = empty.Sessions
	}
}

// Checkpoints are a sandbox's, newest first.
func (c *Client) Checkpoints(ctx context.Context, id engine.SandboxID) ([]engine.Checkpoint, error) {
	return answer[[]engine.Checkpoint](ctx, c, of(id)+"/checkpoints", nil)
}

// Diff is what changed between two checkpoints.
func (c *Client) Diff(ctx context.Context, id engine.SandboxID, from, to engine.CheckpointID) (engine.Diff, error) {
	return answer[engine.Diff](ctx, c, of(id)+"/diff", given("from", string(from), "to", string(to)))
}

// ProcessByID is a process.
func (c *Client) ProcessByID(ctx context.Context, id engine.ProcessID) (engine.Process, error) {
	return answer[engine.Process](ctx, c, "/v1/processes/"+segment(id), nil)
}

// ListProcesses are a sandbox's processes, or all of the fleet's.
func (c *Client) ListProcesses(ctx context.Context, id engine.SandboxID) ([]engine.Process, error) {
	return answer[[]engine.Process](ctx, c, "/v1/processes", given("sandbox", string(id)))
}

// ReadDir is a directory of the workspace.
func (c *Client) ReadDir(ctx context.Context, id engine.SandboxID, dir string) ([]engine.FileInfo, error) {
	return answer[[]engine.FileInfo](ctx, c, of(id)+"/files", given("dir", dir))
}

// ReadFile is a file of the workspace.
func (c *Client) ReadFile(ctx context.Context, id engine.SandboxID, name string) (engine.File, error) {
	return answer[engine.File](ctx, c, of(id)+"/file", given("name", name))
}

func of(id engine.SandboxID) string { return "/v1/sandboxes/" + segment(id) }

// given is a query of those of the pairs whose value isn't empty.
func given(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
