package store

import (
	"database/sql"
	"errors"

	sqlite3 "modernc.org/sqlite/lib"

	"sbx/engine"
)

func noSandbox(id engine.SandboxID) error {
	return engine.Errorf(engine.NotFound, "no sandbox %s", id).WithHint("see them with: sbx ls")
}

// Sandbox is the row of a sandbox.
func (tx *Tx) Sandbox(id engine.SandboxID) (engine.Sandbox, error) {
	_, sb, err := tx.sandbox(id)
	return sb, err
}

// sandbox reads a row and its body as it was written.
func (tx *Tx) sandbox(id engine.SandboxID) (text string, sb engine.Sandbox, err error) {
	var seq engine.Seq
	ok, err := tx.one("SELECT body, seq FROM sandboxes WHERE id = ?", []any{string(id)}, &text, &seq)
	if err == nil && !ok {
		err = noSandbox(id)
	}
	if err != nil {
		return "", sb, err
	}
	cached := false
	if tx.group != nil {
		sb, cached = tx.group.rows.find(id, text)
	}
	if !cached {
		err = decode([]byte(text), &sb)
	}
	sb.Seq = seq
	return text, sb, err
}

// SandboxNamed is the sandbox of that name, and whether there is one.
func (tx *Tx) SandboxNamed(name string) (engine.Sandbox, bool, error) {
	list, err := tx.sandboxes("SELECT body, seq FROM sandboxes WHERE name = ?", name)
	if len(list) == 0 {
		return engine.Sandbox{}, false, err
	}
	return list[0], true, err
}

// Sandboxes are all of them, oldest first.
func (tx *Tx) Sandboxes() ([]engine.Sandbox, error) {
	return tx.sandboxes("SELECT body, seq FROM sandboxes ORDER BY rowid")
}

func (tx *Tx) sandboxes(query string, args ...any) ([]engine.Sandbox, error) {
	var list []engine.Sandbox
	err := tx.each(query, args, func(r *sql.Rows) error {
		var (
			b   sql.RawBytes
			seq engine.Seq
			sb  engine.Sandbox
		)
		if err := r.Scan(&b, &seq); err != nil {
			return err
		}
		err := decode(b, &sb)
		sb.Seq = seq
		list = append(list, sb)
		return err
	})
	return list, err
}

// Levels counts the sandboxes by state, without those that leave, and what the
// pool did. MaxCapacity is the policy's and left 0.
func (tx *Tx) Levels() (engine.PoolLevels, error) {
	var l engine.PoolLevels
	counts := map[engine.State]*int{
		engine.Cold: &l.Cold, engine.Warming: &l.Warming, engine.Warm: &l.Warm,
		engine.Waiting: &l.Waiting, engine.Running: &l.Running,
	}
	var err error
	if l.PoolCounters, err = tx.counters(); err != nil {
		return l, err
	}
	err = tx.each("SELECT state, count(*) FROM sandboxes WHERE leaving = 0 GROUP BY state", nil, func(r *sql.Rows) error {
		var (
			state engine.State
			n     int
		)
		if err := r.Scan(&state, &n); err != nil {
			return err
		}
		if c, ok := counts[state]; ok {
			*c = n
		}
		l.Total += n
		return nil
	})
	return l, err
}

// CountWarm counts the warm sandboxes of a template.
func (tx *Tx) CountWarm(template string) (n int, err error) {
	list, err := tx.sandboxes("SELECT body, seq FROM sandboxes WHERE state = ? AND leaving = 0", string(engine.Warm))
	for _, sb := range list {
		if sb.Template == template {
			n++
		}
	}
	return n, err
}

// PutSandbox writes a new sandbox (its Seq is 0) or one that was read, and
// sets its Seq. One that was changed by somebody else since it was read is a
// [engine.Conflict], one that was removed [engine.NotFound]. What did not change
// is no event.
func (tx *Tx) PutSandbox(sb *engine.Sandbox) error {
	var (
		old string
		seq engine.Seq
	)
	ok, err := tx.one("SELECT body, seq FROM sandboxes WHERE id = ?", []any{string(sb.ID)}, &old, &seq)
	switch {
	case err != nil:
		return err
	case !ok && sb.Seq != 0:
		return noSandbox(sb.ID)
	case sb.Seq != seq:
		return engine.Errorf(engine.Conflict, "sandbox %s has changed since it was read", sb.ID).
			WithHint("read it again and repeat the change")
	}
	_, err = tx.putSandbox(sb, old)
	return err
}

// moveSandbox writes a row that was read by sandbox, with words and times of
// this transaction in it. Encoded and decoded it would be what it is, so those
// who read the event, and the next change, need not decode it.
func (tx *Tx) moveSandbox(sb *engine.Sandbox, old string) error {
	text, err := tx.putSandbox(sb, old)
	if err != nil || text == old {
		return err
	}
	row := cloneSandbox(*sb)
	tx.group.rows.put(text, row)
	last := tx.group.events[len(tx.group.events)-1]
	last.once.Do(func() { last.ev = last.with(engine.SandboxChanged{Sandbox: row}) })
	return nil
}

// putSandbox writes a row whose body was old ("": there was none), and returns
// what it is now.
func (tx *Tx) putSandbox(sb *engine.Sandbox, old string) (text string, err error) {
	row := *sb
	row.Seq = 0 // stands in its column, and in the event as its number
	if text, err = encode(row); err != nil || text == old {
		return text, err
	}
	seq := tx.next()
	if old == "" {
		_, err = tx.write("INSERT INTO sandboxes (id, name, state, leaving, seq, body) VALUES (?, ?, ?, ?, ?, ?)",
			string(sb.ID), sb.Name, string(sb.State), sb.Leaving, int64(seq), text)
	} else {
		err = tx.updateSandbox(sb, seq, text)
	}
	if sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		err = engine.Errorf(engine.Conflict, "the name %q is taken", sb.Name).WithHint("choose another name")
	}
	if err != nil {
		return "", err
	}
	tx.append(engine.KindSandboxChanged, `{"sandbox":`+text+`}`, nil)
	sb.Seq = seq
	tx.group.index.put(sb)
	return text, nil
}

// updateSandbox leaves the name alone where it did not change: naming it in
// the statement would write its index again.
func (tx *Tx) updateSandbox(sb *engine.Sandbox, seq engine.Seq, text string) error {
	n, err := tx.write("UPDATE sandboxes SET state = ?, leaving = ?, seq = ?, body = ? WHERE id = ? AND name = ?",
		string(sb.State), sb.Leaving, int64(seq), text, string(sb.ID), sb.Name)
	if err != nil || n == 1 {
		return err
	}
	_, err = tx.write("UPDATE sandboxes SET name = ?, state = ?, leaving = ?, seq = ?, body = ? WHERE id = ?",
		sb.Name, string(sb.State), sb.Leaving, int64(seq), text, string(sb.ID))
	return err
}

// RemoveSandbox deletes a sandbox's row and those of its processes, signals,
// runs and checkpoints. The healer's history and the audit log stay.
func (tx *Tx) RemoveSandbox(id engine.SandboxID) error {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return err
	}
	if err := tx.EndSandbox(id, engine.EndedByRemoval); err != nil {
		return err
	}
	if _, err := tx.write("DELETE FROM sandboxes WHERE id = ?", string(id)); err != nil {
		return err
	}
	tx.group.index.remove(id)
	text, err := encode(engine.SandboxRemoved{ID: id, Name: sb.Name})
	if err == nil {
		tx.append(engine.KindSandboxRemoved, text, nil)
	}
	return err
}

// orphan says of a row that its sandbox is gone, if that is what err is.
func orphan(id engine.SandboxID, err error) error {
	if sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY {
		return errors.Join(noSandbox(id), err)
	}
	return err
}
