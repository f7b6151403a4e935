package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

// withSandbox opens an engine to change something, and finds the sandbox.
func (c *cli) withSandbox(ctx context.Context, ref string, fn func(engine.Engine, engine.Sandbox) error) error {
	e, err := c.open(ctx, toChange)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	sb, err := snap.Find(ref)
	if err != nil {
		return err
	}
	return fn(e, sb)
}

func newStartCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "start SANDBOX",
		Short:   "Start a stopped sandbox and wait until it is ready",
		Example: "  sbx start api",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if _, err := engine.Start(ctx, e, sb.ID); err != nil {
					return err
				}
				sb, err := c.untilSettled(ctx, e, sb)
				if err != nil {
					return err
				}
				return c.created(ctx, e, sb)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

func newRmCmd(c *cli) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "rm SANDBOX",
		Short:   "Stop a sandbox and delete it with its files (an adopted directory stays)",
		Example: "  sbx rm api --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if err := c.confirm(yes, "remove %s (%s) and its files?", sb.Name, sb.ID); err != nil {
					return err
				}
				if _, err := engine.Destroy(ctx, e, sb.ID); err != nil {
					return err
				}
				err := engine.Until(ctx, e, 10*time.Minute, func(s *engine.Snapshot) bool {
					_, ok := s.Sandboxes[sb.ID]
					return !ok
				})
				return c.done(err, sb, "removed")
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	addJSON(c, cmd)
	return cmd
}

func newRestartCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "restart SANDBOX [PROCESS]",
		Short:   "Restart the app of a sandbox, or another process of it, and wait until it is ready",
		Example: "  sbx restart api\n  sbx restart api watcher",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				name := ""
				if len(args) == 2 {
					name = args[1]
				}
				if _, err := engine.RestartProcess(ctx, e, sb.ID, name); err != nil {
					return err
				}
				sb, err := c.untilSettled(ctx, e, sb)
				if err != nil {
					return err
				}
				return c.created(ctx, e, sb)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

// done prints the end of a verb.
func (c *cli) done(err error, sb engine.Sandbox, how string) error {
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]string{"id": string(sb.ID), "name": sb.Name, "result": how})
	}
	fmt.Fprintf(c.out, "%s  %s  %s\n", sb.ID, cleanLine(sb.Name), how)
	return nil
}

// confirm asks before something that can't be undone. Without a terminal only
// --yes answers.
func (c *cli) confirm(yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	question := cleanLine(fmt.Sprintf(format, args...))
	if !c.terminal {
		return usagef("%s nobody is here to ask: add --yes", question)
	}
	fmt.Fprintf(c.err, "%s [y/N] ", question)
	var answer string
	if _, err := fmt.Fscanln(c.in, &answer); err != nil || (answer != "y" && answer != "yes") {
		c.say("nothing was changed")
		return exit(exitFailed)
	}
	return nil
}
