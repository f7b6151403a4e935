package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"sbx/engine"
)

// Bytes follows a stream from a position on, as it was written. It ends with
// io.EOF when the stream has ended. Bytes that fell off before they were read
// are an [engine.Compacted] error, never a silent gap: what is framed would
// break. Read waits; Close, or the end of ctx, ends the wait.
func (s *Store) Bytes(ctx context.Context, id engine.ProcessID, st engine.Stream, after engine.LogPosition) (io.ReadCloser, error) {
	r, err := s.read(id, st, Query{After: after, Follow: true})
	if err != nil {
		return nil, fmt.Errorf("read log of %s: %w", id, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	return &byteReader{reader: r, ctx: ctx, cancel: cancel}, nil
}

type byteReader struct {
	ctx    context.Context // of the reader's whole life: io.Reader has no other place for it
	cancel context.CancelFunc

	mu     sync.Mutex // held while reading
	reader *reader
	failed error
}

func (b *byteReader) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed != nil || len(p) == 0 {
		return 0, b.failed
	}
	n, err := b.read(p)
	b.failed = err
	return n, err
}

func (b *byteReader) read(p []byte) (int, error) {
	r := b.reader
	for {
		if err := b.ctx.Err(); err != nil {
			return 0, err
		}
		r.watch()
		over := r.over()
		n, lost, err := r.cursor.read(p)
		switch {
		case lost > 0:
			at := r.cursor.pos - int64(n)
			return 0, engine.Errorf(engine.Compacted, "%d bytes of the log of %s fell off before they were read", lost, r.stream.key.process).
				WithHint("go on from position %d", at)
		case n > 0:
			return n, nil
		case !errors.Is(err, io.EOF):
			return 0, err
		case over:
			return 0, io.EOF
		}
		if err := r.wait(b.ctx); err != nil {
			return 0, err
		}
	}
}

// Close ends a Read that waits, and lets go of the files.
func (b *byteReader) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !errors.Is(b.failed, io.ErrClosedPipe) {
		b.failed = io.ErrClosedPipe
		b.reader.close()
	}
	return nil
}
