package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newPoolCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pool", Short: "Show the pool: its levels, and what it did", Example: "  sbx pool\n  sbx pool --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.pool(cmd.Context()) },
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) pool(ctx context.Context) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	levels := statusOf(snap).Pool
	levels.MaxCapacity = c.cfg.maxSandboxes
	if snap.About.PID != 0 {
		for g, err := range e.Gauges(ctx, time.Second) {
			if err != nil {
				return err
			}
			levels = g.Pool
			break
		}
	}
	if c.json {
		return c.printJSON(levels)
	}
	return c.printPool(levels)
}

func (c *cli) printPool(p engine.PoolLevels) error {
	n := func(v int64) string { return fmt.Sprint(v) }
	rows := [][]string{
		{"COUNTER", "IS", "MEANS"},
		{"total", n(int64(p.Total)), fmt.Sprintf("of %d places", p.MaxCapacity)},
		{"cold", n(int64(p.Cold)), "a record, and perhaps a workspace"},
		{"warming", n(int64(p.Warming)), "coming up"},
		{"warm", n(int64(p.Warm)), "ready and unclaimed"},
		{"waiting", n(int64(p.Waiting)), "between commands"},
		{"running", n(int64(p.Running)), "at work: never evicted"},
		{"preWarmHits", n(p.PreWarmHits), "sessions that claimed a warm one"},
		{"resumeWarmHits", n(p.ResumeWarmHits), "resumes that found theirs alive"},
		{"resumeColdHits", n(p.ResumeColdHits), "… its workspace on disk"},
		{"resumeColdLocalHits", n(p.ResumeColdLocalHits), "… in the local archive"},
		{"resumeColdCloudHits", n(p.ResumeColdCloudHits), "… in the remote archive"},
		{"resumeColdFreshHits", n(p.ResumeColdFreshHits), "… nowhere: made anew"},
		{"evictions", n(p.Evictions), "made room for another"},
		{"idleSweeps", n(p.IdleSweeps), "put to sleep when idle"},
		{"coldCleanups", n(p.ColdCleanups), "deleted when cold for too long"},
	}
	for _, w := range p.PreWarm {
		words := fmt.Sprintf("of %d wanted", w.Wanted)
		if w.Failure != "" {
			words += ", the last failed: " + w.Failure
		}
		rows = append(rows, []string{"warm " + w.Template, n(int64(w.Ready)), words})
	}
	return c.printTable(rows)
}

func newKeepCmd(c *cli) *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:     "keep SANDBOX",
		Short:   "Have the pool leave a sandbox alone: no eviction, idle sweep or cleanup",
		Example: "  sbx keep api\n  sbx keep --off api",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				_, err := e.Do(ctx, engine.NewAction(engine.KeepSandbox{Sandbox: sb.ID, Keep: !off}))
				how := "kept"
				if off {
					how = "given to the pool"
				}
				return c.done(err, sb, how)
			})
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "give it back to the pool")
	addJSON(c, cmd)
	return cmd
}
