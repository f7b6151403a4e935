package store

import "sbx/engine"

// noticesKept is how many notices are remembered.
const noticesKept = 500

// PutNotice writes a notice, new or changed. It is no event: it tells of one.
func (tx *Tx) PutNotice(n engine.Notice) error {
	text, err := encode(n)
	if err != nil {
		return err
	}
	_, err = tx.write(`INSERT INTO notices (id, open, body) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body`,
		string(n.ID), n.State == engine.NoticeQueued, text)
	return err
}

// Notices are the newest, oldest first.
func (tx *Tx) Notices() ([]engine.Notice, error) {
	return bodies[engine.Notice](tx, "SELECT body FROM (SELECT num, body FROM notices ORDER BY num DESC LIMIT ?) ORDER BY num", []any{noticesKept})
}

// OpenNotices are those still to be sent, oldest first.
func (tx *Tx) OpenNotices() ([]engine.Notice, error) {
	return bodies[engine.Notice](tx, "SELECT body FROM notices WHERE open = 1 ORDER BY num", nil)
}

func (tx *Tx) pruneNotices() (int64, error) {
	return tx.write(`DELETE FROM notices WHERE num IN (SELECT num FROM notices
		WHERE open = 0 AND num <= (SELECT max(num) FROM notices) - ? ORDER BY num LIMIT ?)`, noticesKept, pruned)
}

// HasNotice reports whether a notice was written before.
func (tx *Tx) HasNotice(id engine.NoticeID) (bool, error) {
	var n int
	return tx.one("SELECT 1 FROM notices WHERE id = ?", []any{string(id)}, &n)
}
