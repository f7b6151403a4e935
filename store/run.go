package store

import (
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"sbx/engine"
)

// PutRun writes a heal run: a new one is started, one that has ended is
// finished, else it has changed. A second open run of a sandbox, a change of
// one that is not its sandbox's latest, and opening an ended one are refused.
func (tx *Tx) PutRun(r engine.HealRun) error {
	text, err := encode(r)
	if err != nil {
		return err
	}
	var (
		old  string
		open bool
	)
	found, err := tx.one("SELECT body, open FROM runs WHERE id = ?", []any{string(r.ID)}, &old, &open)
	switch {
	case err != nil:
		return err
	case !found:
		return tx.startRun(r, text)
	case old == text:
		return nil
	case r.Open() && !open:
		return engine.Errorf(engine.Conflict, "heal run %s has ended", r.ID)
	}
	n, err := tx.write(`UPDATE runs SET open = ?, fingerprint = ?, body = ? WHERE id = ? AND num = (SELECT max(num) FROM runs WHERE sandbox = ?)`,
		r.Open(), r.Fingerprint, text, string(r.ID), string(r.Sandbox))
	if err != nil {
		return err
	}
	if n == 0 {
		return engine.Errorf(engine.Conflict, "heal run %s is not the latest of %s", r.ID, r.Sandbox)
	}
	kind, past := engine.KindHealChanged, (*past)(nil)
	if !r.Open() {
		kind, past = engine.KindHealFinished, pastOf(r.Sandbox, r.ID)
	}
	tx.append(kind, `{"run":`+text+`}`, past)
	return nil
}

func (tx *Tx) startRun(r engine.HealRun, text string) error {
	_, err := tx.write("INSERT INTO runs (id, sandbox, open, started, fingerprint, body) VALUES (?, ?, ?, ?, ?, ?)",
		string(r.ID), string(r.Sandbox), r.Open(), ms(r.Started), r.Fingerprint, text)
	if sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return engine.Errorf(engine.Conflict, "sandbox %s is being healed already", r.Sandbox)
	}
	if err != nil {
		return orphan(r.Sandbox, err)
	}
	tx.append(engine.KindHealStarted, `{"run":`+text+`}`, pastOf(r.Sandbox, r.ID))
	return nil
}

// Run is a heal run.
func (tx *Tx) Run(id engine.RunID) (engine.HealRun, error) {
	r, ok, err := body[engine.HealRun](tx, "SELECT body FROM runs WHERE id = ?", string(id))
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "no heal run %s", id)
	}
	return r, err
}

// OpenRun is a sandbox's open run, and whether there is one.
func (tx *Tx) OpenRun(id engine.SandboxID) (engine.HealRun, bool, error) {
	return body[engine.HealRun](tx, "SELECT body FROM runs WHERE sandbox = ? AND open = 1", string(id))
}

// OpenRuns are those of the fleet, oldest first.
func (tx *Tx) OpenRuns() ([]engine.HealRun, error) {
	return bodies[engine.HealRun](tx, "SELECT body FROM runs WHERE open = 1 ORDER BY num", nil)
}

// RunsOf are the runs of a sandbox that started since a time, oldest first.
func (tx *Tx) RunsOf(id engine.SandboxID, since time.Time) ([]engine.HealRun, error) {
	return bodies[engine.HealRun](tx, "SELECT body FROM runs WHERE sandbox = ? AND started >= ? ORDER BY num",
		[]any{string(id), ms(since)})
}

func noRun(id engine.RunID, err error) error {
	if sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY {
		return engine.Errorf(engine.NotFound, "no heal run %s: %w", id, err)
	}
	return err
}

// PutAttempt writes an attempt, new or changed. What did not change is no event.
func (tx *Tx) PutAttempt(a engine.Attempt) error {
	text, err := encode(a)
	if err != nil {
		return err
	}
	n, err := tx.write(`INSERT INTO attempts (run, number, body) VALUES (?, ?, ?)
		ON CONFLICT (run, number) DO UPDATE SET body = excluded.body WHERE body <> excluded.body`,
		string(a.Run), a.Number, text)
	if err != nil || n == 0 {
		return noRun(a.Run, err)
	}
	tx.append(engine.KindHealAttempted, `{"attempt":`+text+`}`, pastOf(a.Sandbox, a.Run).at(a.Number))
	return nil
}

// Attempts are those of a run, in the order they began.
func (tx *Tx) Attempts(id engine.RunID) ([]engine.Attempt, error) {
	return bodies[engine.Attempt](tx, "SELECT body FROM attempts WHERE run = ? ORDER BY rowid", []any{string(id)})
}

// PutStep writes a step, new or changed. What did not change is no event.
func (tx *Tx) PutStep(st engine.Step) error {
	text, err := encode(st)
	if err != nil {
		return err
	}
	n, err := tx.write(`INSERT INTO steps (run, attempt, number, body) VALUES (?, ?, ?, ?)
		ON CONFLICT (run, attempt, number) DO UPDATE SET body = excluded.body WHERE body <> excluded.body`,
		string(st.Run), st.Attempt, st.Number, text)
	if err != nil || n == 0 {
		return noRun(st.Run, err)
	}
	past := pastOf(st.Sandbox, st.Run).at(st.Attempt)
	if st.State == engine.StepRunning {
		past = nil // its end will be told with all that it was
	}
	tx.append(engine.KindHealStepped, `{"step":`+text+`}`, past)
	return nil
}

// Steps are those of an attempt, in the order they began.
func (tx *Tx) Steps(id engine.RunID, attempt int) ([]engine.Step, error) {
	return bodies[engine.Step](tx, "SELECT body FROM steps WHERE run = ? AND attempt = ? ORDER BY rowid",
		[]any{string(id), attempt})
}
