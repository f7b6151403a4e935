package local

import (
	"context"
	"errors"
	"io"
	"iter"

	"sbx/engine"
)

// Recording yields what a terminal printed, and its sizes.
func (e *Engine) Recording(ctx context.Context, id engine.ProcessID) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) {
		if err := e.record(ctx, id, yield); err != nil && !errors.Is(err, errEnough) {
			yield(engine.Recorded{}, err)
		}
	}
}

// errEnough: whoever reads has had enough.
var errEnough = errors.New("enough")

func (e *Engine) record(ctx context.Context, id engine.ProcessID, yield func(engine.Recorded, error) bool) error {
	p, err := e.ProcessByID(ctx, id)
	if err != nil {
		return err
	}
	if p.Kind != engine.Interactive {
		return engine.Errorf(engine.Invalid, "%s has no terminal", id).WithHint("read its log with: sbx logs")
	}
	sizes, err := e.sizings(ctx, p)
	if err != nil {
		return err
	}
	tell := func(r engine.Recorded) error {
		if !yield(r, nil) {
			return errEnough
		}
		return nil
	}
	first := sizes[0]
	if first.Time.IsZero() {
		first.Time = p.Started
	}
	if err := tell(engine.Recorded{At: first.Time, Size: first.Size}); err != nil {
		return err
	}
	sizes = sizes[1:]
	at := engine.LogPosition(0)
	for m, err := range e.logs.Moments(ctx, id, engine.Stdout) {
		if err != nil && err != io.EOF {
			return err
		}
		for len(sizes) > 0 && sizes[0].At <= m.Pos {
			if err := tell(engine.Recorded{At: sizes[0].Time, Size: sizes[0].Size}); err != nil {
				return err
			}
			sizes = sizes[1:]
		}
		r := engine.Recorded{At: m.Time, Output: m.Data, Lost: int64(m.Pos - at)}
		if err := tell(r); err != nil {
			return err
		}
		at = m.Pos + engine.LogPosition(len(m.Data))
	}
	for _, s := range sizes {
		if err := tell(engine.Recorded{At: s.Time, Size: s.Size}); err != nil {
			return err
		}
	}
	return nil
}
