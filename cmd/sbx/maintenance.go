package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newMaintenanceCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "maintenance",
		Short: "Take a sandbox over from the healer's loop, or give it back",
		Long: `Take a sandbox over from the healer's loop, or give it back. While it is in
maintenance nothing heals it by itself; a heal under way is cut, and what it had
changed is rolled back. sbx heal still heals it when you ask.`,
		Example: "  sbx maintenance on api --for 2h --reason 'new schema'\n  sbx maintenance off api",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMaintenanceOnCmd(c), newMaintenanceOffCmd(c))
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
	return cmd
}

func newMaintenanceOnCmd(c *cli) *cobra.Command {
	var within time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "on SANDBOX",
		Short: "The healer's loop leaves the sandbox alone",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if within < 0 {
				return usagef("--for can't be negative")
			}
			return c.maintain(cmd, args[0], engine.SetMaintenance{On: true, For: engine.Duration(within), Reason: reason})
		},
	}
	cmd.Flags().DurationVar(&within, "for", 0, "end it by itself after so long")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever wonders")
	addJSON(c, cmd)
	return cmd
}

func newMaintenanceOffCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "off SANDBOX",
		Short: "The healer's loop looks after the sandbox again",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.maintain(cmd, args[0], engine.SetMaintenance{})
		},
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) maintain(cmd *cobra.Command, ref string, body engine.SetMaintenance) error {
	ctx := cmd.Context()
	return c.withSandbox(ctx, ref, func(e engine.Engine, sb engine.Sandbox) error {
		body.Sandbox = sb.ID
		r, err := e.Do(ctx, engine.NewAction(body))
		how := "auto-heal goes on"
		if body.On {
			how = "auto-heal is paused"
			if body.For > 0 {
				how += fmt.Sprintf(" for %s", body.For)
			}
		}
		if r.Note != "" {
			how += "; " + r.Note
		}
		return c.done(err, sb, how)
	})
}
