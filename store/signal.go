package store

import (
	"time"

	"sbx/engine"
)

// RaiseSignal writes that trouble was noticed. It sets the signal's ID and
// time.
func (tx *Tx) RaiseSignal(s engine.Signal) (engine.Signal, error) {
	s.ID, s.At = engine.SignalID(tx.next()), tx.Now
	text, err := encode(s)
	if err != nil {
		return s, err
	}
	_, err = tx.write("INSERT INTO signals (id, sandbox, at, body) VALUES (?, ?, ?, ?)",
		int64(s.ID), string(s.Sandbox), ms(s.At), text)
	if err != nil {
		return s, orphan(s.Sandbox, err)
	}
	tx.append(engine.KindSignalRaised, `{"signal":`+text+`}`, pastOf(s.Sandbox, s.Run))
	return s, nil
}

// JudgeSignal writes what a signal calls for; the caller has set its Verdict,
// and its Run if it led to one.
func (tx *Tx) JudgeSignal(s engine.Signal) error {
	text, err := encode(s)
	if err != nil {
		return err
	}
	n, err := tx.write("UPDATE signals SET body = ? WHERE id = ? AND sandbox = ?", text, int64(s.ID), string(s.Sandbox))
	if err != nil {
		return err
	}
	if n == 0 {
		return engine.Errorf(engine.NotFound, "no signal %d of sandbox %s", s.ID, s.Sandbox)
	}
	tx.append(engine.KindSignalJudged, `{"signal":`+text+`}`, pastOf(s.Sandbox, s.Run))
	return nil
}

// Signals are those of a sandbox since a time, oldest first.
func (tx *Tx) Signals(id engine.SandboxID, since time.Time) ([]engine.Signal, error) {
	return bodies[engine.Signal](tx, "SELECT body FROM signals WHERE sandbox = ? AND at >= ? ORDER BY id",
		[]any{string(id), ms(since)})
}
