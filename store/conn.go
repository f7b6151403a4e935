package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sbx/engine"
)

// conn is one SQLite connection and its prepared statements. One goroutine
// uses it at a time.
//
// Statements run under a context that never ends: each is short, an
// interrupted one would roll back the whole group of changes, and watching a
// context costs a goroutine per statement. Cancellation is looked at between
// statements, by Tx.
type conn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
	// broken is the error after which SQLite may have rolled the transaction
	// back by itself; what came after it would run outside of one.
	broken error
}

func newConn(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

func (c *conn) stmt(query string) (*sql.Stmt, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, c.check(err)
	}
	c.stmts[query] = st
	return st, nil
}

func (c *conn) exec(query string, args ...any) (int64, error) {
	st, err := c.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, c.check(err)
	}
	return res.RowsAffected()
}

// one reads the first row; ok is false if there is none.
func (c *conn) one(query string, args []any, dest ...any) (ok bool, err error) {
	st, err := c.stmt(query)
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, c.check(err)
}

// each calls fn for every row; fn scans it.
func (c *conn) each(query string, args []any, fn func(*sql.Rows) error) error {
	st, err := c.stmt(query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return c.check(err)
	}
	defer rows.Close() // its error is that of rows.Err
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return c.check(rows.Err())
}

// check remembers an error after which the transaction can't be trusted.
func (c *conn) check(err error) error {
	switch sqliteCode(err) & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY,
		sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL:
		c.broken = err
	}
	return err
}

// sqliteCode is SQLite's extended result code of err; 0 if it has none.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// mapped gives an error of the database the code, words and hint that a person
// can act on. It is the one place where SQLite's errors become the engine's:
// SQLite says "interrupted" of a query that was cancelled, so an ended context
// is looked at before what it says.
func (s *Store) mapped(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if coded := (*engine.Error)(nil); errors.As(err, &coded) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch sqliteCode(err) & 0xff {
	case sqlite3.SQLITE_FULL:
		return engine.Errorf(engine.Unavailable, "write to %s: the disk is full: %w", s.path(), err).
			WithHint("make room on the disk that holds %s", s.dir)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY:
		return engine.Errorf(engine.Unavailable, "use %s: %w", s.path(), err).
			WithHint("look at the disk that holds %s: is it full, read-only or failing?", s.dir)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return engine.Errorf(engine.Unavailable, "%s is locked by another program: %w", s.path(), err).
			WithHint("close what has the database open for writing")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return damaged(s.dir, err)
	}
	return err
}

// damaged is the error for a database that can't be trusted. Nothing was
// changed: repairing is an operator's decision.
func damaged(dir string, err error) error {
	return engine.Errorf(engine.Internal, "the database %s is damaged; nothing was changed: %w", pathIn(dir), err).
		WithHint("move %s* aside, put the newest file of %s in its place if there is one, and start again; workspaces are not in it",
			pathIn(dir), backupsIn(dir))
}

// The DSNs. Pragmas stand in them because each connection needs its own.
// A transaction that is going to write takes the lock when it begins, else two
// readers that want to become writers fail at once, however long the timeout.
func writeDSN(path, sync string) string {
	v := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)",
		"journal_mode(WAL)",
		fmt.Sprintf("synchronous(%s)", sync),
		"foreign_keys(1)",
		"temp_store(MEMORY)",
		"cache_size(-16000)",
		"journal_size_limit(67108864)",
		"wal_autocheckpoint(4000)",
	}}
	return fileURI(path) + "?" + v.Encode()
}

// fileURI is a path as SQLite reads it in a DSN, whatever characters it has.
func fileURI(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

func readDSN(path string) string {
	v := url.Values{"mode": {"ro"}, "_pragma": {
		"busy_timeout(5000)",
		"query_only(1)",
		"temp_store(MEMORY)",
	}}
	return fileURI(path) + "?" + v.Encode()
}
