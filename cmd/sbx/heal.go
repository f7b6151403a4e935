package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newHealCmd(c *cli) *cobra.Command {
	var cancel, full, diffs, resume, plan, apply bool
	var note string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "heal SANDBOX",
		Short: "Heal a sandbox now, tell how it goes, and exit by the outcome",
		Long: `Heal a sandbox now, tell how it goes, and exit by the outcome:

  0 healed, or healthy already   3 still broken   4 no such sandbox
  5 somebody else heals it       6 budget spent   124 timed out

With --plan nothing is changed: what is wrong is found out, and what would be
done is told (0, or 3 if nothing was found that would help). A model then works
without running anything: its changes are kept aside, and shown as a diff.
--apply does the latest plan and nothing else; it is refused (5) if any file
has changed since.`,
		Example: "  sbx heal --plan api\n  sbx heal --apply api\n  sbx heal api\n  sbx heal api --json\n  sbx heal --resume api\n  sbx heal --cancel api",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var stop func()
				ctx, stop = context.WithTimeout(ctx, timeout)
				defer stop()
			}
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if cancel {
					_, err := e.Do(ctx, engine.NewAction(engine.CancelHeal{Sandbox: sb.ID}))
					return c.done(err, sb, "heal cancelled")
				}
				if apply {
					return c.heal(ctx, e, sb, engine.ApplyPlan{Sandbox: sb.ID}, story{full: full, diffs: diffs})
				}
				open := snapRunOpen(ctx, e, sb.ID)
				if note != "" && open {
					_, err := e.Do(ctx, engine.NewAction(engine.NoteHeal{Sandbox: sb.ID, Text: note}))
					return c.done(err, sb, "the model is told with its next request")
				}
				body := engine.StartHeal{Sandbox: sb.ID, Resume: resume, Note: note, Plan: plan}
				return c.heal(ctx, e, sb, body, story{full: full, diffs: diffs, plan: plan})
			})
		},
	}
	cmd.Flags().BoolVar(&cancel, "cancel", false, "abort the open heal run; what it changed is rolled back")
	cmd.Flags().BoolVar(&plan, "plan", false, "only find out what is wrong and what would help; nothing is changed")
	cmd.Flags().BoolVar(&apply, "apply", false, "do what the latest plan says, and nothing else")
	cmd.Flags().BoolVar(&resume, "resume", false, "give it back to the healer's loop as well: maintenance and quarantine end")
	cmd.Flags().StringVar(&note, "note", "", "tell the model something; while it works, with its next request")
	cmd.Flags().BoolVar(&diffs, "diffs", false, "unfold diffs")
	cmd.Flags().BoolVar(&full, "full", false, "unfold results and diffs")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "stop waiting after this long (the run goes on)")
	cmd.MarkFlagsMutuallyExclusive("plan", "apply", "cancel", "resume")
	cmd.MarkFlagsMutuallyExclusive("apply", "note")
	addJSON(c, cmd)
	return cmd
}

// snapRunOpen reports whether a sandbox is being healed; what can't be read is
// told by what is asked next.
func snapRunOpen(ctx context.Context, e engine.Engine, id engine.SandboxID) bool {
	snap, err := e.Snapshot(ctx)
	return err == nil && snap.Runs[id].ID != "" && snap.Runs[id].Open()
}

// heal opens a run and tells it to its end.
func (c *cli) heal(ctx context.Context, e engine.Engine, sb engine.Sandbox, body engine.ActionBody, s story) error {
	before, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	r, err := e.Do(ctx, engine.NewAction(body))
	if err != nil {
		return err
	}
	if r.Run == "" {
		return c.done(nil, sb, r.Note)
	}
	for ev, err := range e.Events(ctx, before.Position) {
		if err != nil {
			return err
		}
		if ev.Body.Of() != sb.ID {
			continue
		}
		if err := c.tellEvent(s, ev); err != nil {
			return err
		}
		if end, ok := ev.Body.(engine.HealFinished); ok && end.Run.ID == r.Run {
			return healExit(end.Run)
		}
	}
	return ctx.Err()
}

func healExit(r engine.HealRun) error {
	switch r.Outcome {
	case engine.Healed, engine.Planned:
		return nil
	case engine.NotHealed:
		return exit(exitBroken)
	case engine.OverBudget:
		return exit(exitBudget)
	}
	return exit(exitFailed)
}
