package local

import (
	"context"
	"io"

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

// OpenFile streams a file of a workspace, or a directory as a tar.
func (e *Engine) OpenFile(ctx context.Context, id engine.SandboxID, name string, offset int64) (engine.File, io.ReadCloser, error) {
	b, err := e.box(ctx, id)
	if err != nil {
		return engine.File{}, nil, err
	}
	return b.Tree().Open(ctx, name, offset)
}

// Upload brings what r has to where the sandbox is.
func (e *Engine) Upload(ctx context.Context, id engine.SandboxID, r io.Reader) (engine.UploadID, error) {
	b, err := e.box(ctx, id)
	if err != nil {
		return "", err
	}
	limit := e.cfg.MaxUpload
	if limit == 0 {
		limit = DefaultMaxUpload
	}
	up := engine.UploadID(engine.NewID(engine.UploadPrefix))
	return up, b.Tree().Stage(ctx, up, &bounded{r: r, left: limit, limit: limit})
}

// DefaultMaxUpload is how much one upload may bring.
const DefaultMaxUpload = int64(4 * engine.GiB)

// bounded is a reader that fails beyond a limit.
type bounded struct {
	r           io.Reader
	left, limit int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, engine.Errorf(engine.Invalid, "the upload is larger than %s", engine.Size(b.limit)).
			WithHint("raise files.max_upload")
	}
	return n, err
}
