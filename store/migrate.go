package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"sbx/engine"
)

// Migrations only go forward and are never edited.
//
//go:embed migrations/*.sql
var migrations embed.FS

// newestSchema is the schema that this binary speaks.
func newestSchema() int64 {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		panic("store: " + err.Error())
	}
	var newest int64
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic("store: migration " + e.Name())
		}
		newest = max(newest, v)
	}
	return newest
}

// schemaVersion is the schema of a database; 0 for an empty one.
func schemaVersion(c *conn) (int64, error) {
	var v int64
	ok, err := c.one("SELECT 1 FROM sqlite_schema WHERE name = 'goose_db_version'", nil, &v)
	if !ok || err != nil {
		return 0, err
	}
	_, err = c.one("SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied", nil, &v)
	return v, err
}

// checkVersion refuses what a newer sbx has written.
func checkVersion(dir string, v int64) error {
	if v <= newestSchema() {
		return nil
	}
	return engine.Errorf(engine.Unavailable, "the database %s is of a newer sbx (schema %d, this one knows %d)",
		pathIn(dir), v, newestSchema()).
		WithHint("use the newer sbx, or put a file of %s in its place; nothing was changed", backupsIn(dir))
}

// migrate brings the database to this binary's schema, after a copy of it.
func (s *Store) migrate(ctx context.Context, st state) error {
	if st.schema == newestSchema() {
		return nil
	}
	if st.schema > 0 {
		if err := s.backup(ctx, st.schema); err != nil {
			return err
		}
	}
	return migrateUp(ctx, s.writeDB, migrations)
}

func migrateUp(ctx context.Context, db *sql.DB, files fs.FS) error {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, sub,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// state is what a database says of itself before anything is changed.
type state struct {
	schema int64
	// boot is the host's boot in which an owner did not close it; "" if it was
	// closed.
	boot string
	// copied: it is a backup that was put in place.
	copied bool
}

// inspect looks at the database without writing: is it one, whole, and of a
// schema that this binary knows?
func inspect(ctx context.Context, dir string) (state, error) {
	var st state
	fi, err := os.Stat(pathIn(dir))
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && fi.Size() == 0:
		// A new one; but SQLite would throw away a log that lies beside nothing.
		if wal, err := os.Stat(pathIn(dir) + "-wal"); err == nil && wal.Size() > 0 {
			return st, damaged(dir, errors.New("its log is there, but it is empty or gone"))
		}
		return st, nil
	case err != nil:
		return st, err
	}
	db := openDB(readDSN(pathIn(dir)))
	defer db.Close()
	c, err := newConn(ctx, db)
	if err != nil {
		return st, err
	}
	defer c.close()
	if st.schema, err = schemaVersion(c); err != nil || st.schema == 0 {
		return st, err
	}
	if err := checkVersion(dir, st.schema); err != nil {
		return st, err
	}
	if _, err = c.one("SELECT value FROM meta WHERE key = 'open'", nil, &st.boot); err != nil {
		return st, err
	}
	if st.copied, err = c.one("SELECT value FROM meta WHERE key = 'copy'", nil, new(string)); err != nil {
		return st, err
	}
	return st, st.check(dir, c, fi.Size())
}

// checkAlways is the size up to which a database is checked at every start; it
// costs a few tens of milliseconds then.
const checkAlways = 8 << 20

// check reads the whole database if there is reason to: it is small, the host
// went down under its owner, or it was put there by hand.
func (st state) check(dir string, c *conn, size int64) error {
	if size > checkAlways && !st.lost() && !st.copied {
		return nil
	}
	var said string
	if _, err := c.one("PRAGMA quick_check(1)", nil, &said); err != nil {
		return err
	}
	if said != "ok" {
		return damaged(dir, errors.New(said))
	}
	return nil
}

// lost reports whether the host went down while the database was open. An
// engine that was killed alone has lost nothing.
func (st state) lost() bool { return st.boot != "" && st.boot != bootID() }

// bootID names the host's boot.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}
