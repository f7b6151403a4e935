package store

import (
	"database/sql"

	sqlite3 "modernc.org/sqlite/lib"

	"sbx/engine"
)

// Session is the row of a session, ended ones included for as long as they are
// kept.
func (tx *Tx) Session(id engine.SessionID) (engine.Session, error) {
	s, ok, err := body[engine.Session](tx, "SELECT body FROM sessions WHERE id = ?", string(id))
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "no session %s", id).WithHint("see them with: sbx session ls")
	}
	return s, err
}

// Sessions are those that have not ended, oldest first.
func (tx *Tx) Sessions() ([]engine.Session, error) {
	return bodies[engine.Session](tx, "SELECT body FROM sessions WHERE open = 1 ORDER BY rowid", nil)
}

// SessionOf is the open session that a sandbox belongs to, if one does.
func (tx *Tx) SessionOf(id engine.SandboxID) (engine.Session, bool, error) {
	return body[engine.Session](tx, "SELECT body FROM sessions WHERE sandbox = ? AND open = 1 AND sandbox <> ''", string(id))
}

// PutSession writes a session, new or changed. What did not change is no
// event; a sandbox that another session has is a [engine.Conflict].
func (tx *Tx) PutSession(s engine.Session) error {
	s.Changed = tx.Now
	text, err := encode(s)
	if err != nil {
		return err
	}
	_, err = tx.write(`INSERT INTO sessions (id, sandbox, open, changed, body) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET sandbox = excluded.sandbox, open = excluded.open, changed = excluded.changed, body = excluded.body`,
		string(s.ID), string(s.Sandbox), s.Open(), ms(s.Changed), text)
	if sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return engine.Errorf(engine.Conflict, "sandbox %s belongs to another session", s.Sandbox)
	}
	if err != nil {
		return err
	}
	tx.append(engine.KindSessionChanged, `{"session":`+text+`}`, nil)
	return nil
}

// EndSandbox tells the session of a sandbox, if there is one, that it is no
// longer there for it. Telling twice tells once: the first cause counts. Fire
// and RemoveSandbox do it for whoever forgot.
func (tx *Tx) EndSandbox(id engine.SandboxID, why engine.Termination) error {
	s, ok, err := tx.SessionOf(id)
	if err != nil || !ok || s.State != engine.SessionActive {
		return err
	}
	s.Live, s.Reason, s.Told = false, why, engine.SandboxTerminated
	s.State = engine.SessionPaused
	return tx.PutSession(s)
}

// beginSandbox tells the session of a sandbox that it is up.
func (tx *Tx) beginSandbox(id engine.SandboxID) error {
	s, ok, err := tx.SessionOf(id)
	if err != nil || !ok || s.Live {
		return err
	}
	s.Live, s.Reason, s.Told = true, "", engine.SandboxActive
	s.State = engine.SessionActive
	return tx.PutSession(s)
}

// Count adds one to a counter of the pool.
func (tx *Tx) Count(name string) error {
	_, err := tx.write("INSERT INTO counters (name, n) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET n = n + 1", name)
	return err
}

// The names of the counters: those of SPEC §4, as they stand in JSON.
const (
	CountWarm      = "resumeWarmHits"
	CountWorkspace = "resumeColdHits"
	CountLocal     = "resumeColdLocalHits"
	CountCloud     = "resumeColdCloudHits"
	CountFresh     = "resumeColdFreshHits"
	CountPreWarm   = "preWarmHits"
	CountEviction  = "evictions"
	CountIdle      = "idleSweeps"
	CountCleanup   = "coldCleanups"
)

// CountPath is the counter of a step of the resume walk, or "".
func CountPath(p engine.ResumePath) string {
	return map[engine.ResumePath]string{
		engine.PathAlive: CountWarm, engine.PathWorkspace: CountWorkspace, engine.PathLocal: CountLocal,
		engine.PathRemote: CountCloud, engine.PathFresh: CountFresh, engine.PathPreWarm: CountPreWarm,
	}[p]
}

func (tx *Tx) counters() (c engine.PoolCounters, err error) {
	at := map[string]*int64{
		CountWarm: &c.ResumeWarmHits, CountWorkspace: &c.ResumeColdHits, CountLocal: &c.ResumeColdLocalHits,
		CountCloud: &c.ResumeColdCloudHits, CountFresh: &c.ResumeColdFreshHits, CountPreWarm: &c.PreWarmHits,
		CountEviction: &c.Evictions, CountIdle: &c.IdleSweeps, CountCleanup: &c.ColdCleanups,
	}
	err = tx.each("SELECT name, n FROM counters", nil, func(r *sql.Rows) error {
		var (
			name string
			n    int64
		)
		err := r.Scan(&name, &n)
		if p := at[name]; p != nil {
			*p = n
		}
		return err
	})
	return c, err
}
