package store

import (
	"context"
	"strconv"
	"time"

	"sbx/engine"
)

// pruned is how many rows one transaction deletes, so that writers wait for
// none for long.
const pruned = 500

// Prune forgets what is too old: events but the newest keepEvents, never past
// the slowest cursor; history, ended runs, signals and audit entries older
// than keepHistory, but each sandbox's latest run and signal; receipts after
// 24 hours.
func (s *Store) Prune(ctx context.Context, keepEvents int, keepHistory time.Duration) error {
	for _, step := range []func(*Tx) (int64, error){
		func(tx *Tx) (int64, error) { return tx.pruneEvents(keepEvents) },
		func(tx *Tx) (int64, error) { return tx.pruneHistory(keepHistory) },
		func(tx *Tx) (int64, error) { return tx.pruneRuns(keepHistory) },
		func(tx *Tx) (int64, error) { return tx.pruneSignals(keepHistory) },
		func(tx *Tx) (int64, error) { return tx.pruneAudit(keepHistory) },
		(*Tx).pruneReceipts,
		func(tx *Tx) (int64, error) { return tx.pruneMessages(keepHistory) },
		(*Tx).pruneNotices,
		func(tx *Tx) (int64, error) { return tx.pruneSessions(keepHistory) },
	} {
		if err := s.repeat(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// repeat runs a step in transactions of its own until it finds no more.
func (s *Store) repeat(ctx context.Context, step func(*Tx) (int64, error)) error {
	for {
		var n int64
		err := s.Update(ctx, func(tx *Tx) (err error) {
			n, err = step(tx)
			return err
		})
		if err != nil || n < pruned {
			return err
		}
	}
}

func (tx *Tx) pruneEvents(keep int) (int64, error) {
	upTo := tx.seq - engine.Seq(max(keep, 0))
	var slowest engine.Seq
	ok, err := tx.one("SELECT seq FROM cursors ORDER BY seq LIMIT 1", nil, &slowest)
	if err != nil {
		return 0, err
	}
	if ok {
		upTo = min(upTo, slowest)
	}
	return tx.write("DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <= ? ORDER BY seq LIMIT ?)",
		int64(upTo), pruned)
}

// pruneHistory looks at the oldest only: numbers and times grow together.
func (tx *Tx) pruneHistory(keep time.Duration) (int64, error) {
	return tx.write("DELETE FROM history WHERE time < ? AND seq IN (SELECT seq FROM history ORDER BY seq LIMIT ?)",
		ms(tx.Now.Add(-keep)), pruned)
}

// pruneRuns takes their attempts and steps along.
func (tx *Tx) pruneRuns(keep time.Duration) (int64, error) {
	return tx.write(`DELETE FROM runs WHERE num IN (SELECT num FROM runs
		WHERE started < ? AND open = 0 AND num NOT IN (`+latestRuns+`) ORDER BY num LIMIT ?)`,
		ms(tx.Now.Add(-keep)), pruned)
}

func (tx *Tx) pruneSignals(keep time.Duration) (int64, error) {
	return tx.write(`DELETE FROM signals WHERE id IN (SELECT id FROM signals
		WHERE at < ? AND id NOT IN (SELECT max(id) FROM signals GROUP BY sandbox) ORDER BY id LIMIT ?)`,
		ms(tx.Now.Add(-keep)), pruned)
}

func (tx *Tx) pruneAudit(keep time.Duration) (int64, error) {
	horizon := ms(tx.Now.Add(-keep))
	if err := tx.putMeta("audit_horizon", strconv.FormatInt(horizon, 10)); err != nil {
		return 0, err
	}
	return tx.write("DELETE FROM audit WHERE at < ? AND id IN (SELECT id FROM audit ORDER BY id LIMIT ?)", horizon, pruned)
}

func (tx *Tx) pruneReceipts() (int64, error) {
	return tx.write("DELETE FROM receipts WHERE action IN (SELECT action FROM receipts WHERE at <= ? ORDER BY at LIMIT ?)",
		ms(tx.Now.Add(-receiptsKept)), pruned)
}

// pruneSessions forgets those that have ended.
func (tx *Tx) pruneSessions(keep time.Duration) (int64, error) {
	return tx.write("DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE open = 0 AND changed < ? LIMIT ?)",
		ms(tx.Now.Add(-keep)), pruned)
}
