package local

import (
	"context"
	"io"
	"strings"

	"sbx/engine"
	"sbx/engine/logs"
)

// tail reads a log from a position on and keeps its end, whole lines of it.
func tail(ctx context.Context, ls *logs.Store, id engine.ProcessID, from engine.LogPosition, maxBytes int) (string, error) {
	first, end, err := ls.Bounds(id, engine.Stdout)
	if err != nil {
		return "", err
	}
	from = max(from, first)
	cut := end-from > engine.LogPosition(maxBytes)
	if cut {
		from = end - engine.LogPosition(maxBytes)
	}
	if from >= end {
		return "", nil
	}
	r, err := ls.Bytes(ctx, id, engine.Stdout, from)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, int64(end-from)))
	if err != nil {
		return "", err
	}
	text := string(b)
	if cut {
		_, text, _ = strings.Cut(text, "\n") // the first line is a part of one
	}
	return text, nil
}
