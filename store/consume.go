package store

import (
	"context"
	"errors"
	"iter"

	"sbx/engine"
)

// Consume yields every event to a named consumer once, also across restarts:
// fn and the cursor's move are one commit, and the event is yielded after it.
// A new name begins with the oldest event that is kept.
//
// What blocks belongs into the loop, never into fn. Events for which fn wrote
// nothing are committed together; a loop that is left in between goes on with
// the first that it did not see, so fn may be called again for one which it
// left alone. An error of fn is yielded with its event and ends the loop; the
// cursor stays before that event.
func (s *Store) Consume(ctx context.Context, name string, fn func(*Tx, engine.Event) error) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		at, err := s.cursor(ctx, name)
		for err == nil {
			var recs []*record
			if recs, err = s.wait(ctx, at); err != nil {
				break
			}
			for len(recs) > 0 {
				done, ev, stop := s.consume(ctx, name, recs[:min(len(recs), batch)], fn)
				for i, r := range recs[:done] {
					ev, _ := r.event() // it was decoded for fn
					if !yield(ev, nil) {
						s.rewind(ctx, name, r.seq, recs[i+1:done])
						return
					}
					at = r.seq
				}
				recs = recs[done:]
				if stop != nil {
					yield(ev, s.mapped(ctx, stop))
					return
				}
			}
		}
		yield(engine.Event{}, s.mapped(ctx, err))
	}
}

// consume commits events up to the first for which fn wrote something. It says
// how many that were; with an error, also the event that it is about.
func (s *Store) consume(ctx context.Context, name string, recs []*record, fn func(*Tx, engine.Event) error) (done int, ev engine.Event, err error) {
	idle := 0 // events for which fn wrote nothing
	err = s.Update(ctx, func(tx *Tx) (err error) {
		for idle < len(recs) {
			if ev, err = recs[idle].event(); err != nil {
				return err
			}
			if err = fn(tx, ev); err != nil {
				return err
			}
			if tx.group.wrote {
				return tx.putCursor(name, ev.Seq)
			}
			idle++
		}
		return tx.putCursor(name, ev.Seq)
	})
	if err == nil {
		return min(idle+1, len(recs)), ev, nil
	}
	if idle == 0 {
		return 0, ev, err
	}
	// For those before it only the cursor's move was undone.
	if e := s.moveCursor(ctx, name, recs[idle-1].seq); e != nil {
		return 0, ev, errors.Join(err, e)
	}
	return idle, ev, err
}

// rewind puts the cursor back to the last event that was seen, if there are
// others which were passed with it.
func (s *Store) rewind(ctx context.Context, name string, seen engine.Seq, unseen []*record) {
	if len(unseen) > 0 {
		// If it can't be written, they count as seen; fn left them alone.
		_ = s.moveCursor(context.WithoutCancel(ctx), name, seen)
	}
}

// cursor reads where a consumer is, and makes a new one's at once, so that
// Prune waits for it.
func (s *Store) cursor(ctx context.Context, name string) (at engine.Seq, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		ok, err := tx.one("SELECT seq FROM cursors WHERE name = ?", []any{name}, &at)
		if ok || err != nil {
			return err
		}
		if at, err = tx.oldest(); err != nil {
			return err
		}
		return tx.putCursor(name, at)
	})
	return at, err
}

// oldest is the number before the oldest event that is kept.
func (tx *Tx) oldest() (engine.Seq, error) {
	at := tx.seq + 1
	_, err := tx.one("SELECT seq FROM events ORDER BY seq LIMIT 1", nil, &at)
	return at - 1, err
}

func (s *Store) moveCursor(ctx context.Context, name string, to engine.Seq) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.putCursor(name, to) })
}

func (tx *Tx) putCursor(name string, to engine.Seq) error {
	_, err := tx.write(`INSERT INTO cursors (name, seq) VALUES (?, ?)
		ON CONFLICT (name) DO UPDATE SET seq = excluded.seq`, name, int64(to))
	return err
}
