package healer

import (
	"fmt"
	"time"

	"sbx/engine"
	"sbx/store"
)

// actor is who the loop's own changes are by.
var actor = engine.Actor{Kind: engine.ActorHealer}

// Open opens a run that somebody asked for. A healthy sandbox is left alone,
// and the note says so; one that is being healed is a Conflict that names who
// asked.
func Open(tx *store.Tx, p Policy, id engine.SandboxID, by engine.Actor) (engine.HealRun, string, error) {
	sb, run, err := mayOpen(tx, id)
	if err != nil {
		return run, "", err
	}
	if sb.Health == engine.Ready {
		return engine.HealRun{}, sb.Name + " is healthy: nothing to heal", nil
	}
	sig, err := raiseHand(tx, sb, handWords(sb, by, "a heal"))
	if err != nil {
		return engine.HealRun{}, "", err
	}
	v := engine.Verdict{Action: engine.Repair, Reason: "asked for by hand", At: tx.Now}
	run, err = openRun(tx, sb, sig, v, engine.HealRun{Cause: "by hand: " + by.String(), By: by})
	return run, "", err
}

func raiseHand(tx *store.Tx, sb engine.Sandbox, words string) (engine.Signal, error) {
	return tx.RaiseSignal(engine.Signal{Sandbox: sb.ID, Kind: engine.HandSignal, Observed: words, At: tx.Now})
}

// mayOpen is a sandbox that a run may be opened for, else a Conflict; one that
// names the open run comes with it.
func mayOpen(tx *store.Tx, id engine.SandboxID) (sb engine.Sandbox, run engine.HealRun, err error) {
	if sb, err = tx.Sandbox(id); err != nil {
		return sb, run, err
	}
	run, open, err := tx.OpenRun(id)
	if err != nil {
		return sb, run, err
	}
	switch {
	case open:
		doing := "is being healed already"
		if run.Plan {
			doing = "is being planned for already"
		}
		return sb, run, engine.Errorf(engine.Conflict, "%s %s: run %s, opened %s ago by %s (%s)",
			sb.Name, doing, engine.Short(run.ID), tx.Now.Sub(run.Started).Round(time.Second), run.By, run.Cause).
			WithHint("watch it with: sbx logs --healer %s", sb.Name)
	case sb.Chat != "":
		return sb, run, beingTalked(tx, sb)
	case sb.Wanted != engine.Up || !sb.State.Live():
		return sb, run, engine.Errorf(engine.Conflict, "%s is %s: there is nothing to heal", sb.Name, downWords(sb)).
			WithHint("start it first: sbx start %s", sb.Name)
	case sb.State == engine.Warming:
		return sb, run, engine.Errorf(engine.Conflict, "%s is coming up", sb.Name).
			WithHint("see how that goes with: sbx show %s", sb.Name)
	}
	return sb, run, nil
}

func downWords(sb engine.Sandbox) string {
	if sb.Wanted == engine.Removed {
		return "being removed"
	}
	if sb.Wanted == engine.Down {
		return "stopped"
	}
	return string(sb.State)
}

func handWords(sb engine.Sandbox, by engine.Actor, what string) string {
	words := fmt.Sprintf("%s asked for %s", by, what)
	if sb.Reason != "" {
		words += fmt.Sprintf(" (%s: %s)", sb.Health, sb.Reason)
	}
	return words
}

func judged(tx *store.Tx, sig engine.Signal, v engine.Verdict, run engine.RunID) error {
	sig.Verdict, sig.Run = &v, run
	return tx.JudgeSignal(sig)
}

// openRun writes the verdict and the queued run that it calls for, with the
// cause, the actor and the plan that run has, and makes the sandbox healing,
// visibly at once.
func openRun(tx *store.Tx, sb engine.Sandbox, sig engine.Signal, v engine.Verdict, run engine.HealRun) (engine.HealRun, error) {
	run.ID, run.Signal = engine.RunID(engine.NewID(engine.RunPrefix)), sig.ID
	if err := judged(tx, sig, v, run.ID); err != nil {
		return engine.HealRun{}, err
	}
	trigger := engine.Fault
	if sb.Health == engine.Broken {
		trigger = engine.Retry
	}
	sb, err := tx.FireHealth(sb.ID, trigger, run.Cause)
	if err != nil {
		return engine.HealRun{}, err
	}
	run = queued(tx, sb, run)
	sb.Run = run.ID
	if run.By.Kind != engine.ActorHealer {
		sb.Resumed = tx.Now // what came before is forgiven
	}
	if err := tx.PutSandbox(&sb); err != nil {
		return run, err
	}
	if err := tx.PutRun(run); err != nil {
		return run, err
	}
	return run, tx.TakeNotes(sb.ID, run.ID)
}

func queued(tx *store.Tx, sb engine.Sandbox, run engine.HealRun) engine.HealRun {
	run.Sandbox, run.State, run.Started = sb.ID, engine.RunQueued, tx.Now
	run.MaxAttempts = sb.Spec.Heal.Attempts
	return run
}

// Cancel ends the open run of a sandbox. One that has begun is cut by whoever
// works on it, who sees the outcome that is written here, undoes what it did
// and then ends it.
func Cancel(tx *store.Tx, id engine.SandboxID, by engine.Actor) error {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return err
	}
	run, open, err := tx.OpenRun(id)
	if err != nil {
		return err
	}
	if !open {
		return engine.Errorf(engine.Conflict, "%s is not being healed", sb.Name).
			WithHint("see what was done with: sbx logs --healer %s", sb.Name)
	}
	if run.Outcome != "" {
		return nil // cancelled already, and being undone
	}
	run.Outcome, run.Summary = engine.Cancelled, byHandPrefix+by.String()
	if run.State == engine.RunQueued {
		return closeQueued(tx, run)
	}
	return tx.PutRun(run)
}

// Resume gives a sandbox back to the loop: maintenance ends, and its heals of
// the last hour are forgiven.
func Resume(tx *store.Tx, id engine.SandboxID) error {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return err
	}
	paused := sb.Maintenance.Active(tx.Now)
	sb.Maintenance, sb.Resumed = engine.Maintenance{}, tx.Now
	if err := tx.PutSandbox(&sb); err != nil || !paused {
		return err
	}
	return Resumed(tx, id)
}

// TakeOver cuts the run that the loop has open for a sandbox, if there is one:
// somebody puts the sandbox in maintenance. What somebody asked for goes on.
func TakeOver(tx *store.Tx, id engine.SandboxID, by engine.Actor) (engine.RunID, error) {
	run, open, err := tx.OpenRun(id)
	if err != nil || !open || run.Outcome != "" || run.By.Kind != engine.ActorHealer {
		return "", err
	}
	return run.ID, Cancel(tx, id, by)
}

// closeQueued ends a run that nothing has worked on, and has the sandbox
// looked at again.
func closeQueued(tx *store.Tx, run engine.HealRun) error {
	run.State, run.Ended = engine.RunEnded, tx.Now
	if err := tx.PutRun(run); err != nil || run.Plan {
		return err
	}
	return fireHealth(tx, run.Sandbox, engine.Cut, run.Summary)
}

// fireHealth moves a sandbox's health unless somebody moved or removed it
// before: then what they wrote counts.
func fireHealth(tx *store.Tx, id engine.SandboxID, on engine.HealthTrigger, reason string) error {
	_, err := tx.FireHealth(id, on, reason)
	switch engine.AsCode(err) {
	case engine.Conflict, engine.NotFound:
		return nil
	}
	return err
}
