package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newExecCmd(c *cli) *cobra.Command {
	var f commandFlags
	cmd := &cobra.Command{
		Use:   "exec SANDBOX -- COMMAND...",
		Short: "Run a command in a sandbox and exit with its code",
		Example: "  sbx exec api -- npm test\n  sbx exec api --timeout 30s -- 'make check | tail -5'\n" +
			"  sbx exec api --json -- ls",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := f.command(args[1:])
			if err != nil {
				return err
			}
			return c.withSandbox(cmd.Context(), args[0], func(e engine.Engine, sb engine.Sandbox) error {
				return c.exec(cmd.Context(), e, sb, command)
			})
		},
	}
	f.add(cmd.Flags())
	addJSON(c, cmd)
	return cmd
}

// shellLine is the command for the shell: one argument is a line of shell
// already, several are words.
func shellLine(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

func parseEnv(env []string) (map[string]string, error) {
	m := map[string]string{}
	for _, kv := range env {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, usagef("--env %s: the form is --env KEY=value", kv)
		}
		m[k] = v
	}
	return m, nil
}

// maxExecJSON is how much of each stream exec --json prints: as much as a log
// keeps.
const maxExecJSON = 64 << 20

func (c *cli) exec(ctx context.Context, e engine.Engine, sb engine.Sandbox, command engine.Command) error {
	o := engine.SpawnOptions{OnStdout: c.lineWriter(c.out), OnStderr: c.lineWriter(c.err), Keep: -1}
	if c.json {
		o = engine.SpawnOptions{Keep: maxExecJSON}
	}
	h, err := engine.SpawnHandle(ctx, e, sb.ID, command, o)
	if err != nil {
		return err
	}
	res, err := h.Wait(context.WithoutCancel(ctx)) // ctx's end kills the command, which is waited for
	switch {
	case ctx.Err() != nil && (err != nil || res.Killed):
		return ctx.Err()
	case err != nil:
		return err
	case c.json:
		if err := c.printJSON(res); err != nil {
			return err
		}
	}
	switch {
	case res.TimedOut:
		c.say("timed out after %s and was killed with its children", command.Timeout)
	case res.OOM:
		c.say("out of memory: the sandbox is over limits.memory of its spec")
	case res.Error != "" && res.ExitCode == engine.ExitNotExecutable:
		c.say("the command was not started: %s", res.Error)
	case res.Error != "":
		c.say("the command was cut: %s", res.Error)
	}
	if res.ExitCode != 0 {
		return exit(res.ExitCode)
	}
	return nil
}

func newEventsCmd(c *cli) *cobra.Command {
	var after string
	var follow bool
	cmd := &cobra.Command{
		Use:     "events",
		Short:   "Print the journal: every change, in order, without a gap",
		Example: "  sbx events --follow\n  sbx events --after 1.480 --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.events(cmd.Context(), after, follow) },
	}
	cmd.Flags().StringVar(&after, "after", "", "begin after this position (default: the oldest that is kept)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as more happens")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) events(ctx context.Context, after string, follow bool) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	pos := engine.Position{Epoch: snap.Position.Epoch}
	if after != "" {
		if pos, err = engine.ParsePosition(after); err != nil {
			return err
		}
	}
	if !follow && pos.Seq >= snap.Position.Seq {
		return nil
	}
	for ev, err := range e.Events(ctx, pos) {
		if err != nil {
			return err
		}
		if err := c.printEvent(snap, ev); err != nil {
			return err
		}
		if !follow && ev.Seq >= snap.Position.Seq {
			return nil
		}
	}
	return ctx.Err()
}

func (c *cli) printEvent(snap *engine.Snapshot, ev engine.Event) error {
	if c.json {
		return c.printJSON(ev)
	}
	line := fmt.Sprintf("#%-6d %s  %-16s %-14s %s", ev.Seq, ev.Time.Local().Format("15:04:05.000"), ev.Kind(),
		nameOf(snap, ev.Body.Of()), eventText(ev))
	_, err := fmt.Fprintln(c.out, cleanLine(line))
	return err
}

// eventText is an event's new state in a few words.
func eventText(ev engine.Event) string {
	switch b := ev.Body.(type) {
	case engine.SandboxChanged:
		return join(string(b.Sandbox.State), string(b.Sandbox.Health), b.Sandbox.Reason)
	case engine.SandboxRemoved:
		return b.Name + " removed"
	case engine.ProcessChanged:
		return join(b.Process.Name, string(b.Process.State), b.Process.Reason)
	}
	lines := story{}.facts(ev)
	if len(lines) == 0 {
		return ""
	}
	return strings.TrimSpace(lines[0])
}
