package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keptBackups is how many copies stay.
const keptBackups = 3

// backup copies the database as it was before a migration. The copy is marked,
// so that a store which finds one in its place begins a new epoch.
func (s *Store) backup(ctx context.Context, schema int64) error {
	dir := backupsIn(s.dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	name := filepath.Join(dir, fmt.Sprintf("%s-schema-%d.db", now().Format("20060102T150405.000Z"), schema))
	part := name + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("back up: %w", err)
	}
	if err := touch(part); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if err := copyTo(ctx, s.path(), part); err != nil {
		return fmt.Errorf("back up to %s: %w", dir, err)
	}
	if err := markCopy(ctx, part); err != nil {
		return fmt.Errorf("back up to %s: %w", dir, err)
	}
	if err := os.Rename(part, name); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return dropBackups(dir)
}

func copyTo(ctx context.Context, path, to string) error {
	db := openDB(fileURI(path) + "?_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)")
	_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
	return errors.Join(err, db.Close())
}

func markCopy(ctx context.Context, path string) error {
	db := openDB(fileURI(path) + "?_pragma=journal_mode(DELETE)&_pragma=synchronous(FULL)")
	_, err := db.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES ('copy', '1') ON CONFLICT DO NOTHING")
	return errors.Join(err, db.Close())
}

// dropBackups keeps the newest; their names sort by age.
func dropBackups(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".db") && strings.Contains(e.Name(), "-schema-") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for len(names) > keptBackups {
		if err := os.Remove(filepath.Join(dir, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}
