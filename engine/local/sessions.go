package local

import (
	"sbx/engine"
	"sbx/store"
)

// sessionEffect is what an action on a session does.
func (e *Engine) sessionEffect(b engine.ActionBody) effect {
	return func(tx *store.Tx, _ *engine.Receipt) error {
		if _, err := tx.Session(engine.SessionID(b.Subject())); err != nil {
			return err
		}
		return engine.Errorf(engine.Invalid, "this engine has no sessions yet")
	}
}
