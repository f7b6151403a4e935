package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newShowCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show SANDBOX",
		Short:   "Show a sandbox: how it is, what runs in it, what the healer did last",
		Example: "  sbx show api\n  sbx show sb-7f3c --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := c.open(cmd.Context(), toLook)
			if err != nil {
				return err
			}
			defer e.Close()
			snap, err := e.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			sb, err := snap.Find(args[0])
			if err != nil {
				return err
			}
			keys, err := e.Keys(cmd.Context(), sb.ID)
			if err != nil {
				return err
			}
			return c.show(snap, sb, usedOf(keys))
		},
	}
	addJSON(c, cmd)
	return cmd
}

// showJSON is what show --json prints.
type showJSON struct {
	Sandbox   engine.Sandbox   `json:"sandbox"`
	Processes []engine.Process `json:"processes"`
	Signal    *engine.Signal   `json:"signal,omitempty"`
	Run       *engine.HealRun  `json:"run,omitempty"`
	Attempts  []engine.Attempt `json:"attempts,omitempty"`
	Gateway   engine.KeyUse    `json:"gateway,omitzero"`
}

// usedOf is what was asked for through the gateway, with all keys together.
func usedOf(keys []engine.Key) (use engine.KeyUse) {
	for _, k := range keys {
		use = use.Add(k.Use)
	}
	return use
}

func (c *cli) show(snap *engine.Snapshot, sb engine.Sandbox, use engine.KeyUse) error {
	procs := snap.Of(sb.ID)
	if c.json {
		out := showJSON{Sandbox: sb, Processes: procs, Attempts: snap.Attempts[sb.ID], Gateway: use}
		if sig, ok := snap.Signals[sb.ID]; ok {
			out.Signal = &sig
		}
		if run, ok := snap.Runs[sb.ID]; ok {
			out.Run = &run
		}
		return c.printJSON(out)
	}
	facts := factsOf(sb)
	if use.Requests+use.Refused > 0 {
		facts = append(facts, []string{"gateway", fmt.Sprintf("%d requests, %d refused, %d tokens, $%.4f", use.Requests, use.Refused, use.Spent.Tokens(), use.Spent.Dollars)})
	}
	if err := c.printTable(facts); err != nil {
		return err
	}
	if err := c.showProcesses(procs); err != nil {
		return err
	}
	return c.showHealer(snap, sb)
}

func factsOf(sb engine.Sandbox) [][]string {
	now := time.Now()
	rows := [][]string{
		{"name", sb.Name},
		{"id", string(sb.ID)},
		{"health", join(string(sb.Health), "since "+age(now, sb.HealthChanged), sb.Reason)},
		{"life", join(string(sb.State), "since "+age(now, sb.StateChanged), "wanted "+string(sb.Wanted))},
		{"owner", sb.Owner},
		{"from", fmt.Sprintf("%s %s", sb.Origin.Kind, sb.Origin.Ref)},
		{"isolation", sb.Isolation},
		{"command", sb.Spec.App.Command},
		{"health check", probeOf(sb.Spec.App)},
	}
	if len(sb.Labels) > 0 {
		rows = append(rows, []string{"labels", labelText(sb.Labels)})
	}
	if sb.Maintenance.Active(now) {
		until := "until resumed"
		if !sb.Maintenance.Until.IsZero() {
			until = "until " + sb.Maintenance.Until.Local().Format("15:04")
		}
		rows = append(rows, []string{"auto-heal", join("paused by "+sb.Maintenance.By, until, sb.Maintenance.Reason)})
	}
	return rows
}

func probeOf(p engine.ProcessSpec) string {
	if p.Health == "" {
		return "none: nothing to probe"
	}
	return "GET " + p.Health
}

func labelText(labels map[string]string) string {
	var list []string
	for k, v := range labels {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == "since —" }), " · ")
}

func (c *cli) showProcesses(procs []engine.Process) error {
	rows := [][]string{{"PROCESS", "STATE", "PID", "PORT", "STARTS", "LAST EXIT", "WHY"}}
	for _, p := range procs {
		name := p.Name
		if name == "" {
			name = engine.Short(p.ID) + " " + p.Command.Shell
		}
		exit := ""
		if p.Exit != nil {
			exit = p.Exit.String()
		}
		rows = append(rows, []string{name, string(p.State), number(p.PID), number(p.Port), number(p.Starts), exit, p.Reason})
	}
	fmt.Fprintln(c.out)
	return c.printTable(rows)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (c *cli) showHealer(snap *engine.Snapshot, sb engine.Sandbox) error {
	var rows [][]string
	if sig, ok := snap.Signals[sb.ID]; ok {
		verdict := "not judged yet"
		if sig.Verdict != nil {
			verdict = string(sig.Verdict.Action) + ": " + sig.Verdict.Reason
		}
		rows = append(rows, []string{"last signal", join(string(sig.Kind), sig.Observed)}, []string{"verdict", verdict})
	}
	if run, ok := snap.Runs[sb.ID]; ok {
		state := string(run.State)
		if !run.Open() {
			state = string(run.Outcome)
		}
		rows = append(rows, []string{"last heal", join(state, run.Cause, run.Summary)})
		if run.Next != "" {
			rows = append(rows, []string{"next", run.Next})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(c.out)
	return c.printTable(rows)
}
