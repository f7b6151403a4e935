package store

import (
	"context"

	"sbx/engine"
)

var errClosed = engine.Errorf(engine.Unavailable, "the store is closed")

// View calls fn with one moment of the store, as it is when fn first reads.
// Everything is read from that moment, whatever is committed meanwhile. Don't
// hold a View open for long: the database's log grows as long as it is read.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	c, err := s.reader(ctx)
	if err != nil {
		return s.mapped(ctx, err)
	}
	defer s.putReader(c)
	return s.mapped(ctx, s.view(ctx, c, fn))
}

func (s *Store) view(ctx context.Context, c *conn, fn func(*Tx) error) (err error) {
	if _, err := c.exec("BEGIN"); err != nil {
		return err
	}
	defer func() {
		// Nothing was written; ending it can only fail with the connection.
		if _, end := c.exec("ROLLBACK"); err == nil {
			err = end
		}
	}()
	tx := &Tx{By: engine.System, Now: now(), ctx: ctx, conn: c}
	if tx.seq, err = lastSeq(c); err != nil {
		return err
	}
	return fn(tx)
}

// reader takes an idle connection, or opens one.
func (s *Store) reader(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c := <-s.idle:
		if s.isClosed() {
			s.idle <- c
			return nil, errClosed
		}
		if c != nil {
			return c, nil
		}
		c, err := newConn(ctx, s.readDB)
		if err != nil {
			s.idle <- nil
			return nil, err
		}
		return c, nil
	case <-s.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// putReader gives a connection back; one that broke is replaced by the next
// who reads.
func (s *Store) putReader(c *conn) {
	if c.broken != nil {
		_ = c.close() // what broke it was reported
		c = nil
	}
	s.idle <- c
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}
