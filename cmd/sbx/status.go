package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newStatusCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the engine, the pool's levels and the fleet's health",
		Example: "  sbx status\n  sbx status --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.status(cmd.Context()) },
	}
	addJSON(c, cmd)
	return cmd
}

// statusJSON is what status --json prints.
type statusJSON struct {
	Running  bool                  `json:"running"`
	About    engine.About          `json:"about"`
	Position engine.Position       `json:"position"`
	Pool     engine.PoolLevels     `json:"pool"`
	Health   map[engine.Health]int `json:"health"`
	Runs     int                   `json:"openRuns"`
	Engine   *engine.EngineUsage   `json:"engine,omitempty"`
	// Budgets are what models may use and have used today; Incidents are open.
	Budgets   engine.Budgets `json:"budgets"`
	Incidents int            `json:"openIncidents"`
}

func (c *cli) status(ctx context.Context) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	st := statusOf(snap)
	st.Pool.MaxCapacity = c.cfg.maxSandboxes
	if st.Running {
		for g, err := range e.Gauges(ctx, time.Second) {
			if err == nil {
				st.Engine, st.Pool = &g.Engine, g.Pool
			}
			break
		}
	}
	if st.Budgets, err = e.Budgets(ctx); err != nil && engine.AsCode(err) != engine.Unavailable {
		return err
	}
	if c.json {
		return c.printJSON(st)
	}
	return c.printStatus(st)
}

func statusOf(snap *engine.Snapshot) statusJSON {
	st := statusJSON{
		Running: snap.About.PID != 0, About: snap.About, Position: snap.Position,
		Health: map[engine.Health]int{},
	}
	for _, sb := range snap.Sandboxes {
		st.Pool.Total++
		st.Health[sb.Health]++
		switch sb.State {
		case engine.Cold:
			st.Pool.Cold++
		case engine.Warming:
			st.Pool.Warming++
		case engine.Warm:
			st.Pool.Warm++
		case engine.Waiting:
			st.Pool.Waiting++
		case engine.Running:
			st.Pool.Running++
		}
	}
	st.Incidents = len(snap.Incidents)
	for _, r := range snap.Runs {
		if r.Open() {
			st.Runs++
		}
	}
	return st
}

func (c *cli) printStatus(st statusJSON) error {
	a := st.About
	rows := [][]string{{"engine", "not running: sbx serve --detach starts it"}}
	if st.Running {
		rows = [][]string{
			{"engine", fmt.Sprintf("running · sbx %s · pid %d · up %s", a.Version, a.PID, took(time.Since(a.Started)))},
			{"isolation", a.Isolation.Name},
		}
		if a.Model != "" {
			rows = append(rows, []string{"model", a.Model})
		} else {
			rows = append(rows, []string{"model", "none · " + a.NoModel})
		}
	}
	if st.Engine != nil {
		rows = append(rows, []string{"uses", fmt.Sprintf("%.1f%% of a core · %d MiB", 100*st.Engine.CPU, st.Engine.Memory/engine.MiB)})
	}
	p := st.Pool
	rows = append(rows,
		[]string{"data", c.cfg.home},
		[]string{"journal", st.Position.String()},
		[]string{"pool", fmt.Sprintf("%d of %d · %d cold · %d warming · %d warm · %d waiting · %d running",
			p.Total, p.MaxCapacity, p.Cold, p.Warming, p.Warm, p.Waiting, p.Running)},
		[]string{"served", fmt.Sprintf("%d claimed warm · resumed: %d alive, %d from disk, %d local, %d remote, %d fresh · %d evicted, %d idle",
			p.PreWarmHits, p.ResumeWarmHits, p.ResumeColdHits, p.ResumeColdLocalHits, p.ResumeColdCloudHits, p.ResumeColdFreshHits,
			p.Evictions, p.IdleSweeps)},
		[]string{"health", fmt.Sprintf("%d broken · %d healing · %d starting · %d ready · %d unknown",
			st.Health[engine.Broken], st.Health[engine.Healing], st.Health[engine.Starting], st.Health[engine.Ready], st.Health[engine.Unknown])},
		[]string{"heals", fmt.Sprintf("%d open · %d incidents", st.Runs, st.Incidents)},
	)
	if st.Budgets.Day != "" {
		rows = append(rows, []string{"models today", budgetWords(st.Budgets.Fleet)})
	}
	return c.printTable(rows)
}
