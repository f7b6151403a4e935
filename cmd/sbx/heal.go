package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newHealCmd(c *cli) *cobra.Command {
	var cancel, full bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "heal SANDBOX",
		Short: "Heal a sandbox now, tell how it goes, and exit by the outcome",
		Long: `Heal a sandbox now, tell how it goes, and exit by the outcome:

  0 healed, or healthy already   3 still broken   4 no such sandbox
  5 somebody else heals it       6 budget spent   124 timed out`,
		Example: "  sbx heal api\n  sbx heal api --json\n  sbx heal --cancel api",
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
				return c.heal(ctx, e, sb, story{full: full})
			})
		},
	}
	cmd.Flags().BoolVar(&cancel, "cancel", false, "abort the open heal run; what it changed is rolled back")
	cmd.Flags().BoolVar(&full, "full", false, "unfold results and diffs")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "stop waiting after this long (the run goes on)")
	addJSON(c, cmd)
	return cmd
}

// heal opens a run and tells it to its end.
func (c *cli) heal(ctx context.Context, e engine.Engine, sb engine.Sandbox, s story) error {
	before, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	r, err := engine.Heal(ctx, e, sb.ID)
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
	case engine.Healed:
		return nil
	case engine.NotHealed:
		return exit(exitBroken)
	case engine.OverBudget:
		return exit(exitBudget)
	}
	return exit(exitFailed)
}
