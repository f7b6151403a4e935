package healer

import (
	"strings"

	"sbx/engine"
	"sbx/store"
)

// Note keeps what an operator tells the model that heals a sandbox: for the
// open run, else for the next.
func Note(tx *store.Tx, id engine.SandboxID, by engine.Actor, text string, redact func(string) string) (engine.HealNote, error) {
	n := engine.HealNote{Sandbox: id, By: by}
	text = strings.TrimSpace(clean(text))
	if text == "" || len(text) > engine.MaxNote {
		return n, engine.Errorf(engine.Invalid, "a note has 1 to %d bytes, this one has %d", engine.MaxNote, len(text)).
			WithHint(`for example: sbx heal --note "the cache directory was renamed" SANDBOX`)
	}
	run, open, err := tx.OpenRun(id)
	if err != nil {
		return n, err
	}
	if open && run.Outcome == "" {
		n.Run = run.ID
	}
	if n.Text = text; redact != nil {
		n.Text = redact(text)
	}
	return tx.AddNote(n)
}
