package logs

import (
	"context"
	"os"
	"time"

	"sbx/engine"
)

// pollEvery is how often a follower looks that nothing can wake: inotify is
// exhausted, or there is no directory to watch yet.
const pollEvery = time.Second

// A follower waits for more of a stream. While a Writer of the same Store is
// open, it wakes it; else the directory is watched for other processes'.
//
//	watch ─► over ─► read ─► wait ─► watch …
//
// The order matters: what happens after watch wakes, and what was written
// before over was true is read.
type follower struct {
	store  *Store
	stream *stream

	woken   <-chan struct{}
	watched bool // until close
	blind   bool // nothing wakes it but time
	seen    bool // there was a directory
}

// watch arranges to be woken by what happens from now on.
func (f *follower) watch() {
	f.woken = f.stream.waiter()
	writing, over, removed := f.stream.state()
	f.blind = false
	if writing || over || removed || f.watched {
		return
	}
	if ended(f.stream.dir, f.stream.key.stream) {
		return // nothing will happen that could wake it
	}
	f.watched = f.store.watcher.add(f.stream.dir)
	f.blind = !f.watched
}

// over reports whether nothing more will be written.
func (f *follower) over() bool {
	writing, over, removed := f.stream.state()
	if over || removed {
		return true
	}
	if writing {
		return false
	}
	if ended(f.stream.dir, f.stream.key.stream) {
		return true
	}
	if _, err := os.Lstat(f.stream.dir); err == nil {
		f.seen = true
	} else if gone(err) {
		return f.seen // another process removed it
	}
	return false
}

// wait returns when there may be more.
func (f *follower) wait(ctx context.Context) error {
	var poll <-chan time.Time
	if f.blind {
		t := time.NewTimer(pollEvery)
		defer t.Stop()
		poll = t.C
	}
	select {
	case <-f.woken:
	case <-poll:
	case <-ctx.Done():
		return ctx.Err()
	case <-f.store.closed:
		return engine.Errorf(engine.Unavailable, "logs are closed")
	}
	return nil
}

func (f *follower) close() {
	if f.watched {
		f.store.watcher.remove(f.stream.dir)
	}
	f.store.release(f.stream)
}
