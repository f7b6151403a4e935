package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sbx/engine"
)

// meta reads one of the database's own facts; "" if it has none.
func (tx *Tx) meta(key string) (string, error) {
	var v string
	_, err := tx.one("SELECT value FROM meta WHERE key = ?", []any{key}, &v)
	return v, err
}

func (tx *Tx) putMeta(key, value string) error {
	_, err := tx.write(`INSERT INTO meta (key, value) VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}

// NewEpoch begins a new epoch: positions of before are answered by Compacted,
// so that nobody skips numbers which are issued again. It is for a database
// that was put back from a copy.
func (s *Store) NewEpoch(ctx context.Context) (engine.Position, error) {
	var p engine.Position
	err := s.Update(ctx, func(tx *Tx) error {
		epoch, err := tx.epoch()
		if err != nil {
			return err
		}
		// The seconds, so that two copies put back one after the other don't
		// count to the same epoch.
		p = engine.Position{Epoch: max(epoch+1, uint64(tx.Now.Unix())), Seq: tx.seq}
		return tx.putMeta("epoch", strconv.FormatUint(p.Epoch, 10))
	})
	return p, err
}

// beginWriting marks the database as open in this boot of the host. One that
// is a copy, or that the host lost power under, begins a new epoch: what was
// acknowledged last may be missing from it.
func (s *Store) beginWriting(ctx context.Context, st state) error {
	if st.copied || st.lost() {
		if _, err := s.NewEpoch(ctx); err != nil {
			return fmt.Errorf("begin a new epoch: %w", err)
		}
	}
	return s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.write("DELETE FROM meta WHERE key = 'copy'"); err != nil {
			return err
		}
		return tx.putMeta("open", bootID())
	})
}

// endWriting marks the database as closed and moves its log into it.
func (s *Store) endWriting() error {
	s.writer.broken = nil
	_, err1 := s.writer.exec("DELETE FROM meta WHERE key = 'open'")
	_, err2 := s.writer.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if err := errors.Join(err1, err2); err != nil {
		return s.mapped(context.Background(), fmt.Errorf("close the store: %w", err))
	}
	return nil
}
