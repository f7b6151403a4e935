package store

import (
	"database/sql"

	"sbx/engine"
)

// Process is the row of a process.
func (tx *Tx) Process(id engine.ProcessID) (engine.Process, error) {
	p, ok, err := body[engine.Process](tx, "SELECT body FROM processes WHERE id = ?", string(id))
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "no process %s", id).WithHint("see them with: sbx ps")
	}
	return p, err
}

// ProcessesOf are the processes of a sandbox, those that are over included,
// oldest first.
func (tx *Tx) ProcessesOf(id engine.SandboxID) ([]engine.Process, error) {
	return bodies[engine.Process](tx, "SELECT body FROM processes WHERE sandbox = ? ORDER BY rowid", []any{string(id)})
}

// LiveProcesses are those of the fleet with something left to happen: what is
// not over, and what is over and supervised but wanted running. Oldest first.
func (tx *Tx) LiveProcesses() ([]engine.Process, error) {
	return bodies[engine.Process](tx, "SELECT body FROM processes WHERE live = 1 ORDER BY rowid", nil)
}

// live says whether a process has something left to happen.
func live(p engine.Process) bool {
	return !p.State.Over() || p.Kind == engine.Supervised && p.Wanted != engine.WantStopped
}

// Ports are the ports that are taken, by whom.
func (tx *Tx) Ports() (map[int]engine.ProcessID, error) {
	ports := map[int]engine.ProcessID{}
	err := tx.each("SELECT port, id FROM processes WHERE held = 1 AND port <> 0", nil, func(r *sql.Rows) error {
		var (
			port int
			id   engine.ProcessID
		)
		err := r.Scan(&port, &id)
		ports[port] = id
		return err
	})
	return ports, err
}

// PutProcess writes a process, new or changed. What did not change is no event.
func (tx *Tx) PutProcess(p engine.Process) error {
	text, err := encode(p)
	if err != nil {
		return err
	}
	n, err := tx.write(`INSERT INTO processes (id, sandbox, held, live, port, body) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET held = excluded.held, live = excluded.live, port = excluded.port, body = excluded.body
		WHERE body <> excluded.body`,
		string(p.ID), string(p.Sandbox), p.Holds(), live(p), p.Port, text)
	if err != nil || n == 0 {
		return orphan(p.Sandbox, err)
	}
	tx.append(engine.KindProcessChanged, `{"process":`+text+`}`, nil)
	return nil
}
