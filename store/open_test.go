package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// closed is a directory with a database that was closed, with one sandbox.
func closedDir(t *testing.T) string {
	t.Helper()
	dir := plant(t, t.TempDir())
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	putSample(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestADirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	_, err := Open(t.Context(), dir, Options{})
	var owned *OwnedError
	if !errors.As(err, &owned) || owned.PID != os.Getpid() || owned.Dir != dir || !errors.Is(err, engine.Conflict) {
		t.Errorf("a second owner: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir)
}

func TestAReaderNeedsNoOwner(t *testing.T) {
	dir := closedDir(t)
	read := openReader(t, dir)
	snap, err := read.Snapshot(t.Context())
	if err != nil || len(snap.Sandboxes) != 1 {
		t.Errorf("%+v, %v", snap, err)
	}
	if err := read.Update(t.Context(), func(*Tx) error { return nil }); !errors.Is(err, engine.Unavailable) {
		t.Errorf("a change through it: %v", err)
	}
	openStore(t, dir) // it holds no lock
}

func openReader(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAReaderBesideTheOwnerSeesWhatIsCommitted(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	sb := putSample(t, s, "a")
	read := openReader(t, dir)
	next := engine.Seq(1)
	for ev, err := range read.Events(t.Context(), 0) {
		if err != nil || ev.Seq != next {
			t.Fatalf("event %d, want %d: %v", ev.Seq, next, err)
		}
		if next++; next == 4 {
			break
		}
		fire(t, s, sb.ID, pingPong(int(next)))
	}
	want, err1 := s.Snapshot(t.Context())
	got, err2 := read.Snapshot(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err1 != nil || err2 != nil {
		t.Errorf("(-owner +reader) %v %v\n%s", err1, err2, diff)
	}
}

func TestThereIsNothingToReadWithoutADatabase(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReadOnly(t.Context(), dir); !errors.Is(err, engine.NotFound) || engine.Hint(err) == "" {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 0 || err != nil {
		t.Errorf("looking made %v: %v", entries, err)
	}
}

func TestTheDatabaseIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data dir?#%41") // and its path is taken as it is
	s := openStore(t, dir)
	putSample(t, s, "a")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
		if fi, err := e.Info(); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: %v", e.Name(), fi.Mode(), err)
		}
	}
	if !names["sbx.db"] || !names["sbx.db-wal"] {
		t.Errorf("the directory has %v", names)
	}
}

// with runs SQL on a closed database.
func with(t *testing.T, dir string, sql ...string) {
	t.Helper()
	db := openDB(fileURI(pathIn(dir)))
	for _, q := range sql {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestANewerDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	dir := closedDir(t)
	with(t, dir, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)")
	before := contents(t, dir)
	_, err := Open(t.Context(), dir, Options{})
	if !errors.Is(err, engine.Unavailable) || !strings.Contains(err.Error(), "newer sbx (schema 999") || engine.Hint(err) == "" {
		t.Errorf("open: %v", err)
	}
	if _, err := OpenReadOnly(t.Context(), dir); !errors.Is(err, engine.Unavailable) {
		t.Errorf("open read-only: %v", err)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Error("the directory was changed")
	}
}

// contents are the database's files, byte by byte; the index of the log, which
// every reader makes anew, is not among them.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"sbx.db", "sbx.db-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if len(b) > 0 {
			files[name] = string(b)
		}
	}
	return files
}

func TestADamagedDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	good, err := os.ReadFile(pathIn(closedDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	scribble := func(at, n int) []byte {
		b := []byte(string(good))
		for i := at; i < at+n; i++ {
			b[i] ^= 0x5a
		}
		return b
	}
	for name, bad := range map[string][]byte{
		"not a database": []byte(strings.Repeat("these are not the pages of a database. ", 500)),
		"bad header":     scribble(0, 16),
		"bad schema":     scribble(100, 200),
		"cut short":      good[:len(good)/2],
		"bad pages":      scribble(3*4096, 3*4096),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(pathIn(dir), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			s, err := Open(t.Context(), dir, Options{})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !errors.Is(err, engine.Internal) || !strings.Contains(err.Error(), "damaged") || !strings.Contains(engine.Hint(err), "aside") {
				t.Errorf("open: %v (%s)", err, engine.Hint(err))
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Error("the database was changed")
			}
		})
	}
}

func TestALogWithoutItsDatabaseIsNotThrownAway(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(pathIn(dir)+"-wal", []byte("changes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("open: %v", err)
	}
	if got := contents(t, dir)["sbx.db-wal"]; got != "changes" {
		t.Errorf("the log is now %q", got)
	}
}

func TestAMigrationIsPrecededByACopyAndThreeAreKept(t *testing.T) {
	dir := closedDir(t)
	for i := range 5 {
		s := newStore(dir)
		s.writeDB = openDB(writeDSN(pathIn(dir), "full"))
		if err := s.backup(t.Context(), int64(i+1)); err != nil {
			t.Fatal(err)
		}
		files := fstest.MapFS{"migrations/99999_more.sql": {Data: []byte(fmt.Sprintf(
			"-- +goose Up\nCREATE TABLE IF NOT EXISTS more (id INTEGER PRIMARY KEY) STRICT;\nINSERT INTO more VALUES (%d);\n", i))}}
		for _, name := range migrationNames(t) {
			b, err := migrations.ReadFile("migrations/" + name)
			if err != nil {
				t.Fatal(err)
			}
			files["migrations/"+name] = &fstest.MapFile{Data: b}
		}
		if err := migrateUp(t.Context(), s.writeDB, files); err != nil {
			t.Fatal(err)
		}
		if err := s.writeDB.Close(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(backupsIn(dir))
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d copies are kept: %v", len(entries), err)
	}
	oldest := filepath.Join(backupsIn(dir), entries[0].Name())
	if !strings.HasSuffix(oldest, "-schema-3.db") {
		t.Errorf("the oldest copy is %s", oldest)
	}
}

func migrationNames(t *testing.T) (names []string) {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAnOlderDatabaseIsMigratedAfterACopyOfIt(t *testing.T) {
	dir := closedDir(t)
	s := newStore(dir)
	s.writeDB = openDB(writeDSN(pathIn(dir), "full"))
	defer s.writeDB.Close()
	if err := s.migrate(t.Context(), state{schema: newestSchema()}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(backupsIn(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a database that is up to date was copied: %v", err)
	}
	if err := s.migrate(t.Context(), state{schema: newestSchema() + 1}); err != nil { // any other schema
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(backupsIn(dir)); len(entries) != 1 || err != nil {
		t.Errorf("copies before the migration: %v, %v", entries, err)
	}
}

func TestACopyPutInPlaceBeginsANewEpoch(t *testing.T) {
	dir := closedDir(t)
	s := openStore(t, dir)
	before, err := s.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.backup(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	putSample(t, s, "lost with the restore")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copies, err := filepath.Glob(filepath.Join(backupsIn(dir), "*.db"))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	if err := os.Rename(copies[0], pathIn(dir)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and only the first time
		s, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		after, err := s.Position(t.Context())
		if err != nil || after.Epoch <= before.Epoch || after.Seq != before.Seq {
			t.Errorf("from %v to %v: %v", before, after, err)
		}
		snap, err := s.Snapshot(t.Context())
		if err != nil || len(snap.Sandboxes) != 1 || snap.Position != after {
			t.Errorf("%+v, %v", snap, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		before.Epoch = after.Epoch - 1
	}
}

func TestAPowerCutBeginsANewEpochAndAKillDoesNot(t *testing.T) {
	dir := closedDir(t)
	for boot, want := range map[string]bool{bootID(): false, "another boot": true} {
		before := position(t, dir)
		with(t, dir, fmt.Sprintf("INSERT INTO meta (key, value) VALUES ('open', '%s')", boot))
		if after := position(t, dir); (after.Epoch > before.Epoch) != want {
			t.Errorf("left open in %q: from %v to %v", boot, before, after)
		}
	}
}

// position opens a store, reads its position and closes it.
func position(t *testing.T, dir string) engine.Position {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Position(t.Context())
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestANewDatabaseBeginsWithEpochOne(t *testing.T) {
	if got, want := position(t, t.TempDir()), (engine.Position{Epoch: 1}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := Open(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
	openStore(t, dir) // the lock was released
}
