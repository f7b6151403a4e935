package local

import (
	"context"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// box is where a sandbox runs or lies. Looking at it wakes nothing.
func (e *Engine) box(ctx context.Context, id engine.SandboxID) (driver.Box, error) {
	err := e.store.View(ctx, func(tx *store.Tx) error {
		_, err := tx.Sandbox(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return e.cfg.Driver.Attach(ctx, id)
}

// ReadDir lists a directory of a workspace.
func (e *Engine) ReadDir(ctx context.Context, id engine.SandboxID, dir string) ([]engine.FileInfo, error) {
	b, err := e.box(ctx, id)
	if err != nil {
		return nil, err
	}
	return b.Files().ReadDir(ctx, dir)
}

// ReadFile reads a file of a workspace.
func (e *Engine) ReadFile(ctx context.Context, id engine.SandboxID, name string) (engine.File, error) {
	b, err := e.box(ctx, id)
	if err != nil {
		return engine.File{}, err
	}
	return b.Files().ReadFile(ctx, name, 0, 0)
}

// writeFile writes first and commits the receipt after. An engine that dies in
// between leaves the file written; the retry finds the content it wanted there
// and takes that for done.
func (e *Engine) writeFile(ctx context.Context, b engine.WriteFile) (effect, error) {
	if len(b.Data) > engine.MaxFile {
		return nil, engine.Errorf(engine.Invalid, "%s has %d bytes: %d is the most", b.Name, len(b.Data), engine.MaxFile)
	}
	bx, err := e.box(ctx, b.Sandbox)
	if err != nil {
		return nil, err
	}
	version, err := bx.Files().WriteFile(ctx, b.Name, b.Replaces, b.Data)
	if engine.AsCode(err) == engine.Conflict {
		if now, err2 := bx.Files().ReadFile(ctx, b.Name, 0, 0); err2 == nil && string(now.Data) == string(b.Data) {
			version, err = now.Version, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return func(_ *store.Tx, r *engine.Receipt) error {
		r.Sandbox, r.Version = b.Sandbox, version
		return nil
	}, nil
}
