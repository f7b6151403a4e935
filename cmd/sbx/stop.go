package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

// allDownWithin is how long sandboxes may take to stop.
const allDownWithin = 2 * time.Minute

func newStopCmd(c *cli) *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:     "stop SANDBOX | --all",
		Short:   "Stop a sandbox, or all of them; their files stay",
		Example: "  sbx stop api\n  sbx stop --all --yes",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			switch {
			case all && len(args) > 0:
				return usagef("either one sandbox or --all")
			case all:
				return c.stopAll(ctx, yes)
			case len(args) == 0:
				return usagef("which sandbox? sbx stop SANDBOX, or sbx stop --all")
			}
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if _, err := engine.StopAll(ctx, e, sb.ID); err != nil {
					return err
				}
				return c.done(untilDown(ctx, e, sb.ID), sb, "stopped")
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all sandboxes that are up")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --all: don't ask")
	addJSON(c, cmd)
	return cmd
}

// stopAll stops what is up, and waits for it.
func (c *cli) stopAll(ctx context.Context, yes bool) error {
	e, err := c.open(ctx, toChange)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	up := len(upIn(snap))
	if up == 0 {
		c.say("no sandbox is up")
		return nil
	}
	if err := c.confirm(yes, "stop all sandboxes that are up (%d)?", up); err != nil {
		return err
	}
	stopped, err := stopAll(ctx, e, snap)
	for _, sb := range stopped {
		err = errors.Join(err, c.done(nil, sb, "stopped"))
	}
	return err
}

// upIn are the sandboxes that are up, or wanted to be.
func upIn(snap *engine.Snapshot) (ids []engine.SandboxID) {
	for id, sb := range snap.Sandboxes {
		if sb.Wanted == engine.Up || sb.State.Live() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// stopAll stops what is up, so that the next engine leaves it down, and returns
// when it is down: an engine that leaves earlier leaves running what can go on
// without it.
func stopAll(ctx context.Context, e engine.Engine, snap *engine.Snapshot) (stopped []engine.Sandbox, err error) {
	var errs []error
	var ids []engine.SandboxID
	for _, id := range upIn(snap) {
		switch _, err := engine.StopAll(ctx, e, id); engine.AsCode(err) {
		case "":
			ids = append(ids, id)
			stopped = append(stopped, snap.Sandboxes[id])
		case engine.NotFound: // somebody has removed it
		default:
			errs = append(errs, err)
		}
	}
	if err := untilDown(ctx, e, ids...); err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	return stopped, errors.Join(errs...)
}

// untilDown waits until sandboxes have stopped, or are gone.
func untilDown(ctx context.Context, e engine.Engine, ids ...engine.SandboxID) error {
	return engine.Until(ctx, e, allDownWithin, func(s *engine.Snapshot) bool {
		return !slices.ContainsFunc(ids, func(id engine.SandboxID) bool { return s.Sandboxes[id].State.Live() })
	})
}
