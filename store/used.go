package store

import (
	"fmt"
	"time"

	"sbx/engine"
)

// Use counts what a model has used for a sandbox to the day that tx is in. A
// negative count gives back.
func (tx *Tx) Use(id engine.SandboxID, u engine.Use) error {
	day, _ := engine.DayOf(tx.Now)
	_, err := tx.write(`INSERT INTO used (day, sandbox, attempts, steps, time, tokens, dollars) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (day, sandbox) DO UPDATE SET attempts = attempts + excluded.attempts, steps = steps + excluded.steps,
		time = time + excluded.time, tokens = tokens + excluded.tokens, dollars = dollars + excluded.dollars`,
		day, string(id), u.Attempts, u.Steps, u.Time.D().Milliseconds(), u.Tokens, u.Dollars)
	return err
}

const usedSums = "coalesce(sum(attempts), 0), coalesce(sum(steps), 0), coalesce(sum(time), 0), coalesce(sum(tokens), 0), coalesce(sum(dollars), 0.0)"

// Used is what models have used for a sandbox on the day that tx is in; for
// the whole fleet if id is "".
func (tx *Tx) Used(id engine.SandboxID) (engine.Use, error) {
	day, _ := engine.DayOf(tx.Now)
	var u engine.Use
	var millis int64
	_, err := tx.one("SELECT "+usedSums+" FROM used WHERE day = ? AND (? = '' OR sandbox = ?)",
		[]any{day, string(id), string(id)}, &u.Attempts, &u.Steps, &millis, &u.Tokens, &u.Dollars)
	u.Time = engine.Duration(time.Duration(millis) * time.Millisecond)
	return u, err
}

// UsedByAll is what models have used for each sandbox on the day that tx is in.
func (tx *Tx) UsedByAll() (map[engine.SandboxID]engine.Use, error) {
	day, _ := engine.DayOf(tx.Now)
	all := map[engine.SandboxID]engine.Use{}
	list, err := bodies[usedRow](tx, `SELECT json_object('sandbox', sandbox, 'attempts', attempts, 'steps', steps, 'time', time,
		'tokens', tokens, 'dollars', dollars) FROM used WHERE day = ? ORDER BY sandbox`, []any{day})
	if err != nil {
		return nil, fmt.Errorf("what was used: %w", err)
	}
	for _, r := range list {
		all[r.Sandbox] = engine.Use{
			Attempts: r.Attempts, Steps: r.Steps, Tokens: r.Tokens, Dollars: r.Dollars,
			Time: engine.Duration(time.Duration(r.Time) * time.Millisecond),
		}
	}
	return all, nil
}

type usedRow struct {
	Sandbox         engine.SandboxID
	Attempts, Steps int
	Time, Tokens    int64
	Dollars         float64
}
