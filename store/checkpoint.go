package store

import "sbx/engine"

// PutCheckpoint writes a checkpoint. It is no event: checkpoints are asked for.
func (tx *Tx) PutCheckpoint(c engine.Checkpoint) error {
	text, err := encode(c)
	if err != nil {
		return err
	}
	_, err = tx.write(`INSERT INTO checkpoints (id, sandbox, created, body) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET body = excluded.body`,
		string(c.ID), string(c.Sandbox), ms(c.Created), text)
	return orphan(c.Sandbox, err)
}

// Checkpoint is one of them.
func (tx *Tx) Checkpoint(id engine.CheckpointID) (engine.Checkpoint, error) {
	c, ok, err := body[engine.Checkpoint](tx, "SELECT body FROM checkpoints WHERE id = ?", string(id))
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "no checkpoint %s", id)
	}
	return c, err
}

// Checkpoints are those of a sandbox, newest first.
func (tx *Tx) Checkpoints(id engine.SandboxID) ([]engine.Checkpoint, error) {
	return bodies[engine.Checkpoint](tx,
		"SELECT body FROM checkpoints WHERE sandbox = ? ORDER BY created DESC, rowid DESC", []any{string(id)})
}

// DropCheckpoint forgets a checkpoint; forgetting one that is gone is fine.
func (tx *Tx) DropCheckpoint(id engine.CheckpointID) error {
	_, err := tx.write("DELETE FROM checkpoints WHERE id = ?", string(id))
	return err
}
