package store

import (
	"context"
	"database/sql"
	"iter"
	"strings"
	"sync"
	"time"

	"sbx/engine"
)

// batch is how many events are read from the table at a time.
const batch = 128

// poll is how often a store that has no writer of its own looks for news.
const poll = 250 * time.Millisecond

// A record is an event as the table has it. It is decoded once for all who
// read it.
type record struct {
	seq    engine.Seq
	time   int64
	kind   string
	by     engine.Actor
	action engine.ActionID
	body   string
	past   *past // what the healer's history needs besides; nil if it keeps none

	once sync.Once
	ev   engine.Event
	err  error
}

func (r *record) event() (engine.Event, error) {
	r.once.Do(func() {
		body, err := engine.DecodeEventBody(r.kind, []byte(r.body))
		if err != nil {
			r.err = engine.Errorf(engine.Internal, "event %d: %w", r.seq, err)
			return
		}
		if b, ok := body.(engine.SandboxChanged); ok {
			b.Sandbox.Seq = r.seq
			body = b
		}
		r.ev = r.with(body)
	})
	return r.ev, r.err
}

func (r *record) with(body engine.EventBody) engine.Event {
	return engine.Event{Seq: r.seq, Time: fromMS(r.time), By: r.by, Action: r.action, Body: body}
}

// append numbers an event. It is written when the group commits, with those of
// the other jobs.
func (tx *Tx) append(kind, body string, past *past) {
	g := tx.group
	g.seq++
	tx.seq = g.seq
	g.events = append(g.events, &record{
		seq: g.seq, time: tx.Now.UnixMilli(), kind: kind, by: tx.By, action: tx.Action, body: body, past: past,
	})
}

// next is the number that the next event of this transaction will get.
func (tx *Tx) next() engine.Seq { return tx.seq + 1 }

const insertEvents = `INSERT INTO events (seq, time, kind, by_kind, by_name, by_from, action, body) VALUES `

// The statements that write one and many events.
const many = 8

var (
	insertOne  = insertEvents + "(?, ?, ?, ?, ?, ?, ?, ?)"
	insertMany = insertEvents + strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?), ", many-1) + "(?, ?, ?, ?, ?, ?, ?, ?)"
)

// flush writes the group's events.
func (g *group) flush() error {
	list := g.events
	for len(list) > 0 {
		n, query := 1, insertOne
		if len(list) >= many {
			n, query = many, insertMany
		}
		args := make([]any, 0, 8*n)
		for _, r := range list[:n] {
			args = append(args, int64(r.seq), r.time, r.kind, string(r.by.Kind), r.by.Name, r.by.From, string(r.action), r.body)
		}
		if _, err := g.conn.exec(query, args...); err != nil {
			return err
		}
		list = list[n:]
	}
	for _, r := range g.events {
		if r.past != nil {
			if err := g.remember(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastSeq is the number of the newest event, pruned ones included.
func lastSeq(c *conn) (engine.Seq, error) {
	var seq engine.Seq
	_, err := c.one("SELECT seq FROM sqlite_sequence WHERE name = 'events'", nil, &seq)
	return seq, err
}

// Events yields every event after a number, in order and without gaps, then
// waits for more. It ends with an error: ctx's, or [engine.Compacted] if events
// after that number are gone. Events are shared by all who read them: don't
// change what they point to.
func (s *Store) Events(ctx context.Context, after engine.Seq) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		for {
			recs, err := s.wait(ctx, after)
			if err != nil {
				yield(engine.Event{}, s.mapped(ctx, err))
				return
			}
			for _, r := range recs {
				ev, err := r.event()
				if !yield(ev, err) || err != nil {
					return
				}
				after = r.seq
			}
		}
	}
}

// wait returns the events after a number as soon as there are some.
func (s *Store) wait(ctx context.Context, after engine.Seq) ([]*record, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.readOnly {
			recs, err := s.look(ctx, after)
			if len(recs) > 0 || err != nil {
				return recs, err
			}
			continue
		}
		more := s.tail.more() // before the read, so that no commit slips between
		recs, err := s.read(ctx, after)
		if len(recs) > 0 || err != nil {
			return recs, err
		}
		select {
		case <-more:
		case <-s.closed:
			return nil, errClosed
		case <-ctx.Done():
		}
	}
}

// look reads beside another process, which can't wake this one.
func (s *Store) look(ctx context.Context, after engine.Seq) ([]*record, error) {
	recs, err := s.readTable(ctx, after)
	if len(recs) > 0 || err != nil {
		return recs, err
	}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closed:
		return nil, errClosed
	case <-ctx.Done():
	}
	return nil, nil
}

// read returns events after a number that are there, from memory if they are
// new enough.
func (s *Store) read(ctx context.Context, after engine.Seq) ([]*record, error) {
	if recs, ok := s.tail.after(after); ok {
		return recs, nil
	}
	return s.readTable(ctx, after)
}

func (s *Store) readTable(ctx context.Context, after engine.Seq) ([]*record, error) {
	var recs []*record
	err := s.View(ctx, func(tx *Tx) error {
		if after == tx.seq {
			return nil
		}
		var err error
		recs, err = tx.records(`SELECT seq, time, kind, by_kind, by_name, by_from, action, body
			FROM events WHERE seq > ? ORDER BY seq LIMIT ?`, int64(after), batch)
		if err == nil && (len(recs) == 0 || recs[0].seq != after+1) {
			err = engine.Errorf(engine.Compacted, "the events after %d are gone", after).
				WithHint("take a new snapshot and go on from there")
		}
		return err
	})
	return recs, err
}

func (tx *Tx) records(query string, args ...any) ([]*record, error) {
	var recs []*record
	err := tx.each(query, args, func(rows *sql.Rows) error {
		r := &record{}
		recs = append(recs, r)
		return rows.Scan(&r.seq, &r.time, &r.kind, &r.by.Kind, &r.by.Name, &r.by.From, &r.action, &r.body)
	})
	return recs, err
}
