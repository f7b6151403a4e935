package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"sbx/engine"
)

// A Tx is one moment of the store: everything read through it is as of then,
// and what is written through it is committed whole or not at all. It must not
// be used after the function that got it returns.
type Tx struct {
	// By is who makes the changes; [engine.System] unless set.
	By engine.Actor
	// Action is the action that causes them, if one does.
	Action engine.ActionID
	// Now is the transaction's time: UTC, in whole milliseconds.
	Now time.Time

	ctx   context.Context
	conn  *conn
	group *group // nil in a View
	seq   engine.Seq
}

// Seq is the number of the last event that was appended by this transaction,
// or else that it can see.
func (tx *Tx) Seq() engine.Seq { return tx.seq }

// now is the present as rows keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// ms is a time as columns keep it: milliseconds UTC, 0 for the zero time.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fromMS reads what ms writes.
func fromMS(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

// write runs a statement that changes rows, and says how many.
func (tx *Tx) write(query string, args ...any) (int64, error) {
	if tx.group == nil {
		return 0, engine.Errorf(engine.Internal, "a change inside store.View")
	}
	if err := tx.ctx.Err(); err != nil {
		return 0, err
	}
	if err := tx.group.save(); err != nil {
		return 0, err
	}
	return tx.conn.exec(query, args...)
}

func (tx *Tx) one(query string, args []any, dest ...any) (bool, error) {
	if err := tx.ctx.Err(); err != nil {
		return false, err
	}
	return tx.conn.one(query, args, dest...)
}

func (tx *Tx) each(query string, args []any, fn func(*sql.Rows) error) error {
	if err := tx.ctx.Err(); err != nil {
		return err
	}
	return tx.conn.each(query, args, fn)
}

// bodies reads rows whose last column is their body, and whose others, if
// any, are scanned into more.
func bodies[T any](tx *Tx, query string, args []any) ([]T, error) {
	var list []T
	err := tx.each(query, args, func(r *sql.Rows) error {
		var b sql.RawBytes
		if err := r.Scan(&b); err != nil {
			return err
		}
		var v T
		if err := decode(b, &v); err != nil {
			return err
		}
		list = append(list, v)
		return nil
	})
	return list, err
}

// body reads one such row.
func body[T any](tx *Tx, query string, args ...any) (v T, ok bool, err error) {
	var b []byte
	if ok, err = tx.one(query, args, &b); !ok || err != nil {
		return v, false, err
	}
	return v, true, decode(b, &v)
}

func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return engine.Errorf(engine.Internal, "a row of the database is not what was written: %w", err).
			WithHint("the database may be damaged: restore a backup")
	}
	return nil
}

func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode a row: %w", err)
	}
	return string(b), nil
}
