package store

import (
	"strconv"

	"sbx/engine"
)

// AddNote writes what somebody tells the model that heals a sandbox. It sets
// the note's ID and time.
func (tx *Tx) AddNote(n engine.HealNote) (engine.HealNote, error) {
	n.ID, n.At = int64(tx.next()), tx.Now
	return n, tx.putNote(n)
}

func (tx *Tx) putNote(n engine.HealNote) error {
	text, err := encode(n)
	if err != nil {
		return err
	}
	_, err = tx.write(`INSERT INTO notes (id, sandbox, run, body) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET run = excluded.run, body = excluded.body`,
		n.ID, string(n.Sandbox), string(n.Run), text)
	if err != nil {
		return orphan(n.Sandbox, err)
	}
	tx.append(engine.KindHealNoted, `{"note":`+text+`}`, pastOf(n.Sandbox, n.Run))
	return nil
}

// NotesOf are the notes for a run, oldest first; those of no run if it is "".
func (tx *Tx) NotesOf(id engine.SandboxID, run engine.RunID) ([]engine.HealNote, error) {
	return bodies[engine.HealNote](tx, "SELECT body FROM notes WHERE sandbox = ? AND run = ? ORDER BY id",
		[]any{string(id), string(run)})
}

// TakeNotes gives a run the notes of its sandbox that were for no run yet.
func (tx *Tx) TakeNotes(id engine.SandboxID, run engine.RunID) error {
	list, err := tx.NotesOf(id, "")
	if err != nil {
		return err
	}
	for _, n := range list {
		n.Run = run
		if err := tx.putNote(n); err != nil {
			return err
		}
	}
	return nil
}

// PutPlan keeps what a plan would write; body is the healer's own.
func (tx *Tx) PutPlan(run engine.RunID, body string) error {
	_, err := tx.write("INSERT INTO plans (run, body) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET body = excluded.body",
		string(run), body)
	return noRun(run, err)
}

// Plan is what PutPlan kept.
func (tx *Tx) Plan(run engine.RunID) (string, error) {
	var text string
	ok, err := tx.one("SELECT body FROM plans WHERE run = ?", []any{string(run)}, &text)
	if err == nil && !ok {
		err = engine.Errorf(engine.NotFound, "run %s has no plan", strconv.Quote(string(run)))
	}
	return text, err
}
