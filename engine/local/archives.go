package local

import (
	"context"

	"sbx/engine"
)

// archiveAction saves, restores or deletes an archive.
func (e *Engine) archiveAction(ctx context.Context, a engine.Action) (effect, error) {
	if _, err := e.box(ctx, engine.SandboxID(a.Body.Subject())); err != nil {
		return nil, err
	}
	return nil, engine.Errorf(engine.Unavailable, "this engine keeps no archives")
}

// Archives are those of a sandbox, or all.
func (e *Engine) Archives(ctx context.Context, id engine.SandboxID) ([]engine.Archive, error) {
	if id == "" {
		return nil, nil
	}
	_, err := e.box(ctx, id)
	return nil, err
}
