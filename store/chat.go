package store

import (
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"sbx/engine"
)

// PutMessage writes a message of a chat, new or changed. A new one (Number 0)
// gets the next number of its sandbox. What did not change is no event, and a
// second open turn of a sandbox is refused.
func (tx *Tx) PutMessage(m *engine.Message) error {
	if m.Number == 0 {
		if _, err := tx.one("SELECT coalesce(max(number), 0) + 1 FROM messages WHERE sandbox = ?", []any{string(m.Sandbox)}, &m.Number); err != nil {
			return err
		}
	}
	text, err := encode(m)
	if err != nil {
		return err
	}
	open := m.Kind == engine.MessageSaid && !m.State.Over()
	n, err := tx.write(`INSERT INTO messages (id, sandbox, number, turn, open, started, body) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body WHERE body <> excluded.body`,
		string(m.ID), string(m.Sandbox), m.Number, string(m.Turn), open, ms(m.Started), text)
	if sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return engine.Errorf(engine.Conflict, "sandbox %s is being talked about already", m.Sandbox)
	}
	if err != nil || n == 0 {
		return orphan(m.Sandbox, err)
	}
	tx.append(engine.KindChatMessaged, `{"message":`+text+`}`, nil)
	return nil
}

// Message is one of a chat.
func (tx *Tx) Message(id engine.MessageID) (engine.Message, error) {
	m, ok, err := body[engine.Message](tx, "SELECT body FROM messages WHERE id = ?", string(id))
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "no message %s", id).WithHint("see them with: sbx chat --history SANDBOX")
	}
	return m, err
}

// Messages are those of a chat that q selects, in order.
func (tx *Tx) Messages(q engine.MessageQuery) ([]engine.Message, error) {
	if q.Limit <= 0 {
		return bodies[engine.Message](tx, "SELECT body FROM messages WHERE sandbox = ? AND number > ? ORDER BY number",
			[]any{string(q.Sandbox), q.After})
	}
	return bodies[engine.Message](tx, `SELECT body FROM (SELECT number, body FROM messages WHERE sandbox = ? AND number > ?
		ORDER BY number DESC LIMIT ?) ORDER BY number`, []any{string(q.Sandbox), q.After, q.Limit})
}

// LastSaid is what a person said last in a chat, and whether anybody did.
func (tx *Tx) LastSaid(id engine.SandboxID) (engine.Message, bool, error) {
	return body[engine.Message](tx, "SELECT body FROM messages WHERE sandbox = ? AND turn = id ORDER BY number DESC LIMIT 1", string(id))
}

// OpenTurns are the turns under way, in all of the fleet.
func (tx *Tx) OpenTurns() ([]engine.Message, error) {
	return bodies[engine.Message](tx, "SELECT body FROM messages WHERE open = 1 ORDER BY rowid", nil)
}

func (tx *Tx) pruneMessages(keep time.Duration) (int64, error) {
	return tx.write(`DELETE FROM messages WHERE id IN (SELECT id FROM messages
		WHERE started < ? AND open = 0 ORDER BY rowid LIMIT ?)`, ms(tx.Now.Add(-keep)), pruned)
}
