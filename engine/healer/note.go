package healer

import (
	"context"
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

// hear is what operators have told the model since it was last asked: each note
// once per conversation, so that a later attempt knows them too.
func (h *heal) hear(ctx context.Context) (string, error) {
	var list []engine.HealNote
	err := h.Store.View(ctx, func(tx *store.Tx) (err error) {
		list, err = tx.NotesOf(h.sb.ID, h.id)
		return err
	})
	if err != nil {
		return "", err
	}
	var words []string
	for _, n := range list {
		if n.ID > h.heard {
			h.heard = n.ID
			words = append(words, "A note from the operator: "+h.redact(n.Text))
		}
	}
	return strings.Join(words, "\n\n"), nil
}
