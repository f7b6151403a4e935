package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newLsCmd(c *cli) *cobra.Command {
	var owner string
	var labels []string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the sandboxes, broken ones first",
		Example: "  sbx ls\n  sbx ls --owner dana --label team=web\n  sbx ls --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := parseLabels(labels)
			if err != nil {
				return err
			}
			e, err := c.open(cmd.Context(), toLook)
			if err != nil {
				return err
			}
			defer e.Close()
			snap, err := e.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			return c.list(snap, func(sb engine.Sandbox) bool { return (owner == "" || sb.Owner == owner) && hasLabels(sb, want) })
		},
	}
	cmd.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	cmd.Flags().StringArrayVar(&labels, "label", nil, "only those with this label: k=v")
	addJSON(c, cmd)
	return cmd
}

// sandboxJSON is a sandbox as --json prints it: the row, and what is asked of
// it most.
type sandboxJSON struct {
	engine.Sandbox
	Port int `json:"port,omitempty"`
	PID  int `json:"pid,omitempty"`
}

func (c *cli) list(snap *engine.Snapshot, shown func(engine.Sandbox) bool) error {
	apps := map[engine.SandboxID]engine.Process{}
	for _, p := range snap.Processes {
		if p.Kind == engine.Supervised && p.Name == engine.AppName {
			apps[p.Sandbox] = p
		}
	}
	ids := make([]engine.SandboxID, 0, len(snap.Sandboxes))
	for id := range snap.Sandboxes {
		ids = append(ids, id)
	}
	short := engine.Shorten(ids)
	rows := [][]string{{"HEALTH", "LIFE", "ID", "NAME", "OWNER", "PORT", "SINCE", "WHAT"}}
	list := []sandboxJSON{}
	now := time.Now()
	for _, sb := range attention(snap) {
		if !shown(sb) {
			continue
		}
		app := apps[sb.ID]
		list = append(list, sandboxJSON{sb, app.Port, app.PID})
		port := ""
		if app.Port != 0 {
			port = strconv.Itoa(app.Port)
		}
		rows = append(rows, []string{
			string(sb.Health), string(sb.State), short[sb.ID], sb.Name, sb.Owner, port, age(now, sb.HealthChanged), what(sb),
		})
	}
	if c.json {
		return c.printJSON(list)
	}
	if len(list) == 0 {
		c.say("no sandboxes: make one with sbx create --template demo")
		return nil
	}
	return c.printTable(rows)
}

// what is the one thing to know about a sandbox beside its health.
func what(sb engine.Sandbox) string {
	switch {
	case sb.Maintenance.Active(time.Now()):
		return "auto-heal paused by " + sb.Maintenance.By
	case sb.Reason != "":
		return sb.Reason
	case sb.State == engine.Cold && sb.Wanted == engine.Down:
		return "stopped"
	}
	return ""
}

func parseLabels(labels []string) (map[string]string, error) {
	m := map[string]string{}
	for _, l := range labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, usagef("--label %s: the form is --label key=value", l)
		}
		m[k] = v
	}
	return m, nil
}

func hasLabels(sb engine.Sandbox, want map[string]string) bool {
	for k, v := range want {
		if got, ok := sb.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
