package store

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"sbx/engine"
)

// receiptsKept is how long an action that is sent again gets its first receipt.
const receiptsKept = 24 * time.Hour

// Receipt is what an action was answered, and whether it was done within the
// last 24 hours.
func (tx *Tx) Receipt(id engine.ActionID) (engine.Receipt, bool, error) {
	return body[engine.Receipt](tx, "SELECT body FROM receipts WHERE action = ? AND at > ?",
		string(id), ms(tx.Now.Add(-receiptsKept)))
}

// PutReceipt writes what an action is answered.
func (tx *Tx) PutReceipt(r engine.Receipt) error {
	text, err := encode(r)
	if err != nil {
		return err
	}
	_, err = tx.write(`INSERT INTO receipts (action, at, body) VALUES (?, ?, ?)
		ON CONFLICT (action) DO UPDATE SET at = excluded.at, body = excluded.body`,
		string(r.Action), ms(tx.Now), text)
	return err
}

// AppendAudit writes that somebody made a change. Time, actor and action are
// the transaction's where the entry has none.
func (tx *Tx) AppendAudit(e engine.AuditEntry) error {
	if e.At.IsZero() {
		e.At = tx.Now
	}
	if e.By == (engine.Actor{}) {
		e.By = tx.By
	}
	if e.Action == "" {
		e.Action = tx.Action
	}
	e.ID = 0 // the column's
	text, err := encode(e)
	if err != nil {
		return err
	}
	_, err = tx.write("INSERT INTO audit (at, action, kind, subject, body) VALUES (?, ?, ?, ?, ?)",
		ms(e.At), string(e.Action), e.Kind, e.Subject, text)
	return err
}

// Audit yields the entries that q selects, oldest first.
func (s *Store) Audit(ctx context.Context, q engine.AuditQuery) iter.Seq2[engine.AuditEntry, error] {
	const where = ` FROM audit WHERE id > ? AND at >= ? AND (? = '' OR subject = ?) `
	args := func(after int64) []any { return []any{after, ms(q.Since), q.Subject, q.Subject} }
	return pages(s, ctx, q.After,
		func(tx *Tx) (from int64, err error) {
			return newest(tx, "SELECT id"+where+"ORDER BY id DESC", args(q.After), q.Limit)
		},
		func(tx *Tx, after int64) (page []engine.AuditEntry, err error) {
			err = tx.each("SELECT id, body"+where+"ORDER BY id LIMIT ?", append(args(after), batch), func(r *sql.Rows) error {
				var (
					id int64
					b  sql.RawBytes
					e  engine.AuditEntry
				)
				if err := r.Scan(&id, &b); err != nil {
					return err
				}
				err := decode(b, &e)
				e.ID = id
				page = append(page, e)
				return err
			})
			return page, err
		},
		func(e engine.AuditEntry) int64 { return e.ID })
}
