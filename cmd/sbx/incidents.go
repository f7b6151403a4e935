package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newIncidentsCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "incidents",
		Short: "List the faults that several sandboxes have; show one, or say that you are on it",
		Long: `The same crash in three or more sandboxes within five minutes is one incident:
one of them is healed first, the rest are held and follow only if that worked.`,
		Example: "  sbx incidents\n  sbx incidents ls --all",
	}
	ls := newIncidentsLsCmd(c)
	cmd.Args, cmd.RunE = cobra.NoArgs, ls.RunE
	cmd.Flags().AddFlagSet(ls.Flags())
	cmd.AddCommand(ls, newIncidentsShowCmd(c), newIncidentsWatchCmd(c))
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
	return cmd
}

func newIncidentsLsCmd(c *cli) *cobra.Command {
	var all bool
	var since time.Duration
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List incidents, oldest first",
		Example: "  sbx incidents ls --since 24h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := c.open(cmd.Context(), toLook)
			if err != nil {
				return err
			}
			defer e.Close()
			q := engine.IncidentQuery{Open: !all && since == 0}
			if since > 0 {
				q.Since = time.Now().Add(-since)
			}
			list, err := e.Incidents(cmd.Context(), q)
			if err != nil {
				return err
			}
			return c.printIncidents(list)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "those that have ended, too")
	cmd.Flags().DurationVar(&since, "since", 0, "those opened since so long ago, ended ones too")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) printIncidents(list []engine.Incident) error {
	if c.json {
		if list == nil {
			list = []engine.Incident{}
		}
		return c.printJSON(list)
	}
	if len(list) == 0 {
		c.say("no incidents: no fault is in three sandboxes or more")
		return nil
	}
	rows := [][]string{{"INCIDENT", "STATE", "OPENED", "SANDBOXES", "WATCHED BY", "WHAT"}}
	now := time.Now()
	for _, i := range list {
		watcher := ""
		if i.Watcher.Kind != "" {
			watcher = i.Watcher.String()
		}
		rows = append(rows, []string{
			engine.Short(i.ID), string(i.State), age(now, i.Opened), strconv.Itoa(len(i.Members)), watcher, i.Title + " · " + i.Reason,
		})
	}
	return c.printTable(rows)
}

func newIncidentsShowCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show INCIDENT",
		Short: "Show an incident and what became of each of its sandboxes",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := c.open(cmd.Context(), toLook)
			if err != nil {
				return err
			}
			defer e.Close()
			i, err := findIncident(cmd.Context(), e, args[0])
			if err != nil {
				return err
			}
			return c.showIncident(i)
		},
	}
	addJSON(c, cmd)
	return cmd
}

// findIncident is the one that a person means by ref: an id or a unique prefix.
func findIncident(ctx context.Context, e engine.Engine, ref string) (engine.Incident, error) {
	all, err := e.Incidents(ctx, engine.IncidentQuery{})
	if err != nil {
		return engine.Incident{}, err
	}
	var hits []engine.Incident
	for _, i := range all {
		if string(i.ID) == ref {
			return i, nil
		}
		if len(ref) > len(engine.IncidentPrefix) && strings.HasPrefix(string(i.ID), ref) {
			hits = append(hits, i)
		}
	}
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return engine.Incident{}, engine.Errorf(engine.NotFound, "no incident %q", ref).WithHint("see them with: sbx incidents --all")
	}
	return engine.Incident{}, engine.Errorf(engine.Invalid, "%q fits %d incidents", ref, len(hits)).WithHint("type more of the id")
}

func (c *cli) showIncident(i engine.Incident) error {
	if c.json {
		return c.printJSON(i)
	}
	now := time.Now()
	state := join(string(i.State), i.Reason)
	rows := [][]string{
		{"incident", string(i.ID)},
		{"fault", i.Title},
		{"state", state},
		{"opened", age(now, i.Opened) + " ago"},
	}
	if !i.Open() {
		rows = append(rows, []string{"took", took(i.Ended.Sub(i.Opened))})
	}
	if i.Watcher.Kind != "" {
		rows = append(rows, []string{"watched by", i.Watcher.String() + " since " + age(now, i.Watched)})
	}
	if err := c.printTable(rows); err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	rows = [][]string{{"SANDBOX", "RUN", "OUTCOME", ""}}
	for _, m := range i.Members {
		outcome, first := string(m.Outcome), ""
		if outcome == "" {
			outcome = "open"
		}
		if m.Run == i.CanaryRun && m.Run != "" {
			first = "healed first"
		}
		rows = append(rows, []string{m.Name, engine.Short(m.Run), outcome, first})
	}
	return c.printTable(rows)
}

func newIncidentsWatchCmd(c *cli) *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "watch INCIDENT",
		Short: "Say that you are on it; it is shown to everybody",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			e, err := c.open(ctx, toChange)
			if err != nil {
				return err
			}
			defer e.Close()
			i, err := findIncident(ctx, e, args[0])
			if err != nil {
				return err
			}
			if _, err := e.Do(ctx, engine.NewAction(engine.WatchIncident{Incident: i.ID, Off: off})); err != nil {
				return err
			}
			if i, err = findIncident(ctx, e, string(i.ID)); err != nil {
				return err
			}
			return c.showIncident(i)
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "you aren't any more")
	addJSON(c, cmd)
	return cmd
}
