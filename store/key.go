package store

import (
	"database/sql"
	"time"

	"sbx/engine"
)

// PutKey writes a virtual key. A new one comes with its hash, a changed one
// without. What is read of its use stays out of the row.
func (tx *Tx) PutKey(k engine.Key, hash []byte) error {
	k.Use = engine.KeyUse{}
	text, err := encode(k)
	if err != nil {
		return err
	}
	n, err := int64(0), error(nil)
	if hash != nil {
		n, err = tx.write("INSERT INTO keys (id, sandbox, hash, body) VALUES (?, ?, ?, ?)", string(k.ID), string(k.Sandbox), hash, text)
	} else {
		n, err = tx.write("UPDATE keys SET body = ? WHERE id = ? AND body <> ?", text, string(k.ID), text)
	}
	if err != nil || n == 0 {
		return orphan(k.Sandbox, err)
	}
	tx.append(engine.KindKeyChanged, `{"key":`+text+`}`, nil)
	return nil
}

// Key is one of them, without its use.
func (tx *Tx) Key(id engine.KeyID) (engine.Key, error) {
	k, ok, err := body[engine.Key](tx, "SELECT body FROM keys WHERE id = ?", string(id))
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "no key %s", id).WithHint("see them with: sbx key ls")
	}
	return k, err
}

// KeyByHash is the key with that hash, and whether there is one. The caller
// looks at whether it is valid.
func (tx *Tx) KeyByHash(hash []byte) (engine.Key, bool, error) {
	return body[engine.Key](tx, "SELECT body FROM keys WHERE hash = ?", hash)
}

// Keys are those of a sandbox, or of the fleet if id is "", oldest first, with
// their use.
func (tx *Tx) Keys(id engine.SandboxID) ([]engine.Key, error) {
	list, err := bodies[engine.Key](tx, "SELECT body FROM keys WHERE ? = '' OR sandbox = ? ORDER BY rowid", []any{string(id), string(id)})
	for i := range list {
		if err == nil {
			list[i].Use, err = tx.use("key = ?", string(list[i].ID))
		}
	}
	return list, err
}

// UseKey adds to the use of a key on the transaction's day.
func (tx *Tx) UseKey(k engine.Key, u engine.KeyUse) error {
	_, err := tx.write(`INSERT INTO key_use (key, day, sandbox, requests, refused, input, cache_writes, cache_reads, output, dollars, last)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key, day) DO UPDATE SET requests = requests + excluded.requests, refused = refused + excluded.refused,
		input = input + excluded.input, cache_writes = cache_writes + excluded.cache_writes,
		cache_reads = cache_reads + excluded.cache_reads, output = output + excluded.output,
		dollars = dollars + excluded.dollars, last = max(last, excluded.last)`,
		string(k.ID), day(tx.Now), string(k.Sandbox), u.Requests, u.Refused, u.Spent.InputTokens, u.Spent.CacheWrites,
		u.Spent.CacheReads, u.Spent.OutputTokens, u.Spent.Dollars, ms(tx.Now))
	return orphan(k.Sandbox, err)
}

// UseToday is what a sandbox's keys were used for on the transaction's day,
// UTC; of all sandboxes if id is "".
func (tx *Tx) UseToday(id engine.SandboxID) (engine.KeyUse, error) {
	if id == "" {
		return tx.use("day = ?", day(tx.Now))
	}
	return tx.use("sandbox = ? AND day = ?", string(id), day(tx.Now))
}

func (tx *Tx) use(where string, args ...any) (u engine.KeyUse, err error) {
	err = tx.each(`SELECT coalesce(sum(requests), 0), coalesce(sum(refused), 0), coalesce(sum(input), 0), coalesce(sum(cache_writes), 0),
		coalesce(sum(cache_reads), 0), coalesce(sum(output), 0), coalesce(sum(dollars), 0.0), coalesce(max(last), 0)
		FROM key_use WHERE `+where, args, func(r *sql.Rows) error {
		var last int64
		s := &u.Spent
		err := r.Scan(&u.Requests, &u.Refused, &s.InputTokens, &s.CacheWrites, &s.CacheReads, &s.OutputTokens, &s.Dollars, &last)
		u.Last = fromMS(last)
		return err
	})
	return u, err
}

// day is a date as the columns keep it.
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
