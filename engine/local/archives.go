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
func (e *Engine) Archives(context.Context, engine.SandboxID) ([]engine.Archive, error) {
	return nil, nil
}
