package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"sbx/engine"
)

// TestAFullDiskFailsTheChangeAndTheNextOneWorks: SQLite rolls a transaction
// back by itself when it runs out of room; nothing may be written outside of
// one then, and no number may be lost.
func TestAFullDiskFailsTheChangeAndTheNextOneWorks(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	var pages int
	if _, err := s.writer.one("PRAGMA page_count", nil, &pages); err != nil {
		t.Fatal(err)
	}
	setLimit(t, s, pages)
	err := s.Update(t.Context(), func(tx *Tx) error {
		if _, err := tx.Fire(sb.ID, engine.Begin); err != nil {
			return err
		}
		big := sampleSandbox("big")
		big.Owner = strings.Repeat("x", 1<<20)
		if err := tx.PutSandbox(&big); err == nil {
			t.Error("a megabyte found room")
		}
		small := sampleSandbox("small")
		_ = tx.PutSandbox(&small) // a careless caller goes on
		return nil
	})
	if !errors.Is(err, engine.Unavailable) || !strings.Contains(err.Error(), "full") || engine.Hint(err) == "" {
		t.Errorf("the change: %v", err)
	}
	if got := sandbox(t, s, sb.ID); got.State != engine.Waiting {
		t.Errorf("half of the change stays: the sandbox is %s", got.State)
	}
	setLimit(t, s, 1<<30)
	if next := putSample(t, s, "next"); next.Seq != sb.Seq+1 {
		t.Errorf("the next change has number %d, want %d", next.Seq, sb.Seq+1)
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil || len(snap.Sandboxes) != 2 {
		t.Errorf("%d sandboxes, want 2: %v", len(snap.Sandboxes), err)
	}
}

// setLimit sets how many pages the database may have.
func setLimit(t *testing.T, s *Store, pages int) {
	t.Helper()
	var now int
	if _, err := s.writer.one(fmt.Sprintf("PRAGMA max_page_count(%d)", pages), nil, &now); err != nil {
		t.Fatal(err)
	}
}

// TestAFlippedByteIsNeverAPanic: whatever byte of the file is wrong, the store
// answers, or says what is wrong.
func TestAFlippedByteIsNeverAPanic(t *testing.T) {
	good, err := os.ReadFile(pathIn(closedDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 0; at < len(good); at += len(good) / flips {
		bad := []byte(string(good))
		bad[at] ^= 0xff
		dir := t.TempDir()
		if err := os.WriteFile(pathIn(dir), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), dir, Options{Sync: "normal"})
		if err != nil {
			refused++
			continue
		}
		_, err = s.Snapshot(t.Context())
		if err != nil {
			refused++
		}
		sb := sampleSandbox("after")
		_ = s.Update(t.Context(), func(tx *Tx) error { return tx.PutSandbox(&sb) }) // may find the damage
		_ = s.Close()
	}
	t.Logf("%d of %d were noticed", refused, flips)
	if refused == 0 {
		t.Error("no damage was ever noticed")
	}
}

// flips is how many bytes are tried, spread over the file.
const flips = 24
