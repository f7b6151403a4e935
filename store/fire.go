package store

import (
	"strings"

	"sbx/engine"
)

// Fire moves a sandbox through the pool by the table in engine: it reads,
// steps, writes and appends in this one transaction, so of two who want to
// move a sandbox the second gets a [engine.Conflict] that a person can read. To
// Gone it removes the sandbox. Evict refuses one that is kept or healing.
func (tx *Tx) Fire(id engine.SandboxID, on engine.LifeTrigger) (engine.Sandbox, error) {
	old, sb, err := tx.sandbox(id)
	if err != nil {
		return sb, err
	}
	next, err := sb.State.Next(on)
	if err != nil {
		return sb, err
	}
	if on == engine.Evict && sb.Keep {
		return sb, engine.Errorf(engine.Conflict, "sandbox is kept: cannot evict").
			WithHint("sbx keep says how to give it to the pool")
	}
	if on == engine.Evict && sb.Health == engine.Healing {
		return sb, engine.Errorf(engine.Conflict, "sandbox is being healed: cannot evict")
	}
	from := sb.State
	sb.State, sb.StateChanged = next, tx.Now
	if next == engine.Gone {
		return sb, tx.RemoveSandbox(id)
	}
	if err := tx.moveSandbox(&sb, old); err != nil {
		return sb, err
	}
	return sb, tx.tellSession(sb, from, on)
}

// tellSession tells a sandbox's session that it came up or went down.
func (tx *Tx) tellSession(sb engine.Sandbox, from engine.State, on engine.LifeTrigger) error {
	switch {
	case from == engine.Warming && sb.State.Live():
		return tx.beginSandbox(sb.ID)
	case sb.State == engine.Cold:
		return tx.EndSandbox(sb.ID, endings[on])
	}
	return nil
}

// endings are the causes of going down, where nobody gave a better one before.
var endings = map[engine.LifeTrigger]engine.Termination{
	engine.BootFailed: engine.EndedByBoot, engine.Evict: engine.EndedByEviction,
	engine.Stop: engine.EndedByStop, engine.Lost: engine.EndedByCrash,
}

// FireHealth changes a sandbox's condition by the table in engine, with the
// reason that stands beside it; a ready one has none.
func (tx *Tx) FireHealth(id engine.SandboxID, on engine.HealthTrigger, reason string) (engine.Sandbox, error) {
	old, sb, err := tx.sandbox(id)
	if err != nil {
		return sb, err
	}
	next, err := sb.Health.Next(on)
	if err != nil {
		return sb, err
	}
	if next == engine.Ready {
		reason = ""
	}
	sb.Health, sb.HealthChanged, sb.Reason = next, tx.Now, strings.ToValidUTF8(reason, "\uFFFD")
	return sb, tx.moveSandbox(&sb, old)
}
