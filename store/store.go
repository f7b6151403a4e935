// Package store keeps what the engine knows in one SQLite database: rows that
// say what is, and a journal of events that says how it came to be.
//
// The one rule: a row that anybody outside can see changes together with its
// event, in one transaction, or not at all. Appending is not public; PutSandbox
// and its like write the row and append. So the events after a snapshot,
// applied to it, always give the snapshot of later:
//
//	Update ─► queue ─► leader ─► BEGIN ─ fn ─ fn ─ fn ─ COMMIT ─► tail ─► readers
//	                              (a savepoint each)      fsync
//
// The store starts no goroutine: the first of concurrent writers runs the
// others' functions with its own and commits for all of them; readers hold
// their own position and read from the table, or from the tail of it that is
// kept in memory.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"sbx/engine"
)

// Options say how a database is kept.
type Options struct {
	// Sync is "full" (the default: what is acknowledged survives a power cut)
	// or "normal" (it survives any crash of this process).
	Sync string
}

// readers is how many connections read at one time.
const readers = 4

// A Store is an open database. Use [Open] or [OpenReadOnly].
type Store struct {
	dir      string
	readOnly bool
	lock     *os.File
	writeDB  *sql.DB
	readDB   *sql.DB
	writer   *conn      // used by the leader of the queue only
	rows     rowCache   // likewise
	index    *index     // likewise
	idle     chan *conn // readers; one that was never opened is nil
	queue    queue
	tail     tail
	closed   chan struct{}

	mu      sync.Mutex
	closing bool
}

func pathIn(dir string) string    { return filepath.Join(dir, "sbx.db") }
func backupsIn(dir string) string { return filepath.Join(dir, "backups") }

func (s *Store) path() string { return pathIn(s.dir) }

// Open takes the directory for this process and opens its database, which it
// makes or migrates. A directory that another process owns is an [OwnedError].
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	sync := o.Sync
	switch sync {
	case "":
		sync = "full"
	case "full", "normal":
	default:
		return nil, engine.Errorf(engine.Invalid, "store sync %q", o.Sync).WithHint(`use "full" or "normal"`)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := newStore(dir)
	s.lock = lock
	if err := s.open(ctx, sync); err != nil {
		return nil, errors.Join(s.mapped(ctx, fmt.Errorf("open the store: %w", err)), s.release())
	}
	return s, nil
}

// OpenReadOnly opens a database for reading, beside its owner or without one.
// Events arrive within a quarter of a second.
func OpenReadOnly(ctx context.Context, dir string) (*Store, error) {
	s := newStore(dir)
	s.readOnly = true
	if _, err := os.Stat(s.path()); errors.Is(err, os.ErrNotExist) {
		return nil, engine.Errorf(engine.NotFound, "no database in %s", dir).WithHint("start an engine first: sbx serve")
	}
	s.readDB = openDB(readDSN(s.path()))
	s.readDB.SetMaxOpenConns(readers)
	if err := s.beginReading(ctx); err != nil {
		return nil, errors.Join(s.mapped(ctx, fmt.Errorf("open the store: %w", err)), s.release())
	}
	return s, nil
}

func newStore(dir string) *Store {
	s := &Store{dir: dir, rows: rowCache{}, index: newIndex(), closed: make(chan struct{}), idle: make(chan *conn, readers)}
	for range readers {
		s.idle <- nil
	}
	return s
}

// openDB never fails: sql.Open only does for a driver that isn't there.
func openDB(dsn string) *sql.DB {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		panic("store: " + err.Error())
	}
	return db
}

func (s *Store) open(ctx context.Context, sync string) error {
	state, err := inspect(ctx, s.dir)
	if err != nil {
		return err
	}
	if err := touch(s.path()); err != nil {
		return err
	}
	s.writeDB = openDB(writeDSN(s.path(), sync))
	s.writeDB.SetMaxOpenConns(1)
	if err := s.migrate(ctx, state); err != nil {
		return err
	}
	if s.writer, err = newConn(ctx, s.writeDB); err != nil {
		return err
	}
	s.readDB = openDB(readDSN(s.path()))
	s.readDB.SetMaxOpenConns(readers)
	if err := s.beginReading(ctx); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	return s.beginWriting(ctx, state)
}

// touch makes the database file before SQLite does, for its mode: what comes
// beside it takes the same.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// beginReading checks that the database can be read by this binary, and where
// it is.
func (s *Store) beginReading(ctx context.Context) error {
	return s.View(ctx, func(tx *Tx) error {
		v, err := schemaVersion(tx.conn)
		if err != nil {
			return err
		}
		if err := checkVersion(s.dir, v); err != nil {
			return err
		}
		if v < newestSchema() {
			return engine.Errorf(engine.Unavailable, "the database %s is of an older sbx", s.path()).
				WithHint("start an engine with this sbx once: it migrates the database")
		}
		s.tail.last = tx.seq
		return nil
	})
}

func (tx *Tx) epoch() (uint64, error) {
	v, err := tx.meta("epoch")
	if err != nil {
		return 0, err
	}
	epoch, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, engine.Errorf(engine.Internal, "the database's epoch is not a number: %w", err)
	}
	return epoch, nil
}

// Position is the journal's end.
func (s *Store) Position(ctx context.Context) (engine.Position, error) {
	var p engine.Position
	err := s.View(ctx, func(tx *Tx) (err error) {
		p, err = tx.position()
		return err
	})
	return p, err
}

func (tx *Tx) position() (engine.Position, error) {
	epoch, err := tx.epoch()
	return engine.Position{Epoch: epoch, Seq: tx.seq}, err
}

// Close waits for what is under way, ends the iterators that wait for events,
// and releases the directory. Everything committed is in the one file then.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.closing = true
	s.mu.Unlock()

	s.queue.close()
	close(s.closed)
	var errs []error
	for range readers {
		if c := <-s.idle; c != nil {
			errs = append(errs, c.close())
		}
	}
	if s.writer != nil {
		errs = append(errs, s.endWriting())
	}
	return errors.Join(append(errs, s.release())...)
}

// release gives back what an open store holds, as far as it got.
func (s *Store) release() error {
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	for _, db := range []*sql.DB{s.readDB, s.writeDB} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
