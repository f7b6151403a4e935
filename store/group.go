package store

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"sbx/engine"
)

// gather is how long a group may take in further changes, from its beginning.
const gather = 2 * time.Millisecond

// A group is one SQLite transaction with the jobs of one or many callers.
type group struct {
	conn   *conn
	rows   rowCache
	index  *index
	seq    engine.Seq
	jobs   []*job
	events []*record // appended, and written when the group commits

	kept  bool // an earlier job of the group wrote something that stays
	wrote bool // the running job wrote
	saved bool // the running job has a savepoint
	mark  int  // of the index, where the running job began
}

// lead runs the jobs of a queue until none comes, and commits them.
func (g *group) lead(q *queue) error {
	deadline := time.Now().Add(gather)
	jobs := q.take()
	g.jobs = jobs // taken is answered, whatever happens
	if err := g.begin(); err != nil {
		return err
	}
	for len(jobs) > 0 {
		for _, j := range jobs {
			g.run(j)
		}
		if time.Now().After(deadline) {
			break
		}
		runtime.Gosched() // who was woken by the last commit may be about to queue
		jobs = q.take()
		g.jobs = append(g.jobs, jobs...)
	}
	return g.commit()
}

func (g *group) begin() error {
	// An earlier group's error ended its transaction one way or the other.
	g.conn.broken = nil
	_, err := g.conn.exec("BEGIN IMMEDIATE")
	return err
}

// run calls a job's function and keeps or undoes what it did.
func (g *group) run(j *job) {
	if j.err = j.ctx.Err(); j.err != nil {
		return
	}
	events, seq := len(g.events), g.seq
	g.wrote, g.saved, g.mark = false, false, len(g.index.undo)
	ended := false
	defer func() {
		if !ended {
			j.panicked = recover() // nil for a Goexit, which lead answers
			g.undo(events, seq)
		}
	}()
	tx := &Tx{By: engine.System, Now: now(), ctx: j.ctx, conn: g.conn, group: g, seq: g.seq}
	j.err = j.fn(tx)
	tx.conn, tx.group = nil, nil
	ended = true
	if j.err == nil {
		j.err = g.keep()
	}
	if j.err != nil {
		j.err = errors.Join(j.err, g.undo(events, seq))
	}
}

// save comes before the first write of a job: what it writes can be undone
// without what others wrote. The first writer of a group needs no savepoint:
// undoing all of it is undoing the group.
func (g *group) save() error {
	if g.wrote {
		return nil
	}
	if g.kept {
		if _, err := g.conn.exec("SAVEPOINT job"); err != nil {
			return err
		}
		g.saved = true
	}
	g.wrote = true
	return nil
}

func (g *group) keep() error {
	if g.conn.broken != nil {
		return fmt.Errorf("the transaction was lost: %w", g.conn.broken)
	}
	if g.saved {
		if _, err := g.conn.exec("RELEASE job"); err != nil {
			return err
		}
	}
	g.kept = g.kept || g.wrote
	return nil
}

func (g *group) undo(events int, seq engine.Seq) error {
	g.events, g.seq = g.events[:events], seq
	g.index.back(g.mark)
	var err error
	switch {
	case g.conn.broken != nil || !g.wrote:
	case g.saved:
		if _, err = g.conn.exec("ROLLBACK TO job"); err == nil {
			_, err = g.conn.exec("RELEASE job")
		}
	default:
		if _, err = g.conn.exec("ROLLBACK"); err == nil {
			_, err = g.conn.exec("BEGIN IMMEDIATE")
		}
	}
	if err != nil {
		g.conn.broken = err
	}
	return err
}

func (g *group) commit() error {
	if g.conn.broken != nil {
		return g.conn.broken
	}
	if err := g.flush(); err != nil {
		return err
	}
	if _, err := g.conn.exec("COMMIT"); err != nil {
		return err
	}
	g.index.undo = g.index.undo[:0]
	return nil
}

// abandon ends a transaction that can't be committed.
func (g *group) abandon() {
	g.conn.broken = nil
	g.index.back(0)
	_, _ = g.conn.exec("ROLLBACK") // SQLite may have done it already
}
