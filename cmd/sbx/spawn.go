package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/engine"
	"sbx/engine/local"
)

// commandFlags are those of a command to run: exec and spawn have them.
type commandFlags struct {
	dir     string
	env     []string
	timeout time.Duration
}

func (f *commandFlags) add(fl *pflag.FlagSet) {
	fl.SetInterspersed(true)
	fl.StringVar(&f.dir, "cwd", "", "directory in the workspace")
	fl.StringArrayVar(&f.env, "env", nil, "environment variable: K=V")
	fl.DurationVar(&f.timeout, "timeout", 0, "kill the command and its children after this long; the exit code is then 124")
}

func (f *commandFlags) command(words []string) (engine.Command, error) {
	vars, err := parseEnv(f.env)
	if err != nil {
		return engine.Command{}, err
	}
	if f.timeout < 0 {
		return engine.Command{}, usagef("--timeout can't be negative")
	}
	return engine.Command{Shell: shellLine(words), Dir: f.dir, Env: vars, Timeout: engine.Duration(f.timeout)}, nil
}

func newSpawnCmd(c *cli) *cobra.Command {
	var f commandFlags
	var stdin bool
	cmd := &cobra.Command{
		Use:   "spawn SANDBOX -- COMMAND...",
		Short: "Run a command in the background; prints its process id and returns",
		Long: `Run a command in the background; prints its process id and returns.

It goes on until it exits, sbx kill ends it, its timeout is over or its sandbox is
stopped. sbx attach reads what it writes and feeds its input, sbx ps tells how it
ended.`,
		Example: "  sbx spawn api -- npm run watch\n  sbx spawn api --timeout 10m -- make nightly\n" +
			"  sbx attach $(sbx spawn api --stdin -- node repl.js)",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := f.command(args[1:])
			if err != nil {
				return err
			}
			if c.embed {
				return usagef("--embed would end the command as soon as it began: leave it out, and the engine runs in the background")
			}
			ctx := cmd.Context()
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				return c.spawn(ctx, e, sb, engine.Spawn{Sandbox: sb.ID, Command: command, Stdin: stdin})
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&stdin, "stdin", false, "keep its input open, for sbx attach")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) spawn(ctx context.Context, e engine.Engine, sb engine.Sandbox, body engine.Spawn) error {
	r, err := e.Do(ctx, engine.NewAction(body))
	if err != nil {
		return err
	}
	if !c.json {
		_, err = fmt.Fprintln(c.out, r.Process)
		return err
	}
	p, err := e.ProcessByID(ctx, r.Process)
	if err != nil {
		return err
	}
	return c.printJSON(jsonOf(p, sb.Name))
}

// processJSON is a process as --json prints it: the row, and what is asked of
// it most.
type processJSON struct {
	engine.Process
	SandboxName string `json:"sandboxName"`
	Running     bool   `json:"running"`
	ExitCode    *int   `json:"exitCode,omitempty"`
}

func jsonOf(p engine.Process, sandbox string) processJSON {
	j := processJSON{Process: p, SandboxName: sandbox, Running: p.Running()}
	if code, ok := p.ExitCode(); ok {
		j.ExitCode = &code
	}
	return j
}

// fewFinished is how many commands that are over ps shows of each sandbox.
const fewFinished = 10

func newPsCmd(c *cli) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "ps [SANDBOX]",
		Short:   "List the processes of a sandbox, or of all: what runs, and how the others ended",
		Example: "  sbx ps\n  sbx ps api --all\n  sbx ps api --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			e, err := c.open(ctx, toLook)
			if err != nil {
				return err
			}
			defer e.Close()
			snap, err := e.Snapshot(ctx)
			if err != nil {
				return err
			}
			var of engine.SandboxID
			if len(args) == 1 {
				sb, err := snap.Find(args[0])
				if err != nil {
					return err
				}
				of = sb.ID
			}
			list, err := e.ListProcesses(ctx, of)
			if err != nil {
				return err
			}
			if !all {
				list = latest(list, fewFinished)
			}
			return c.ps(snap, list)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, fmt.Sprintf("all commands that are over, not the latest %d of each sandbox only", fewFinished))
	addJSON(c, cmd)
	return cmd
}

// latest is a list of processes with at most n commands that are over of each
// sandbox, the latest.
func latest(list []engine.Process, n int) []engine.Process {
	over := map[engine.SandboxID]int{}
	var kept []engine.Process
	for _, p := range slices.Backward(list) {
		if p.Once() && p.State.Over() {
			if over[p.Sandbox]++; over[p.Sandbox] > n {
				continue
			}
		}
		kept = append(kept, p)
	}
	slices.Reverse(kept)
	return kept
}

func (c *cli) ps(snap *engine.Snapshot, list []engine.Process) error {
	if c.json {
		out := []processJSON{}
		for _, p := range list {
			out = append(out, jsonOf(p, snap.Sandboxes[p.Sandbox].Name))
		}
		return c.printJSON(out)
	}
	if len(list) == 0 {
		c.say("no processes: run one with sbx exec or sbx spawn")
		return nil
	}
	ids := make([]engine.ProcessID, 0, len(list))
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	short, now := engine.Shorten(ids), time.Now()
	rows := [][]string{{"PROCESS", "SANDBOX", "NAME", "STATE", "PID", "CODE", "SINCE", "COMMAND", "WHY"}}
	for _, p := range list {
		code, since := "", p.Started
		if n, ok := p.ExitCode(); ok {
			code, since = strconv.Itoa(n), p.Exit.At
		}
		rows = append(rows, []string{
			short[p.ID], snap.Sandboxes[p.Sandbox].Name, p.Name, string(p.State), number(p.PID), code,
			age(now, since), oneLine(p.Command.Shell, 60), oneLine(p.Reason, 60),
		})
	}
	return c.printTable(rows)
}

func newKillCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kill PROCESS",
		Short: "End a spawned command and all its children, and wait until they are gone",
		Long: `End a spawned command and all its children (TERM, then KILL), and wait until they
are gone. PROCESS is an id of sbx ps, the beginning of one, or a pid. Exits 0 if it
was killed, 1 if it had exited, 4 if there is no such process.`,
		Example: "  sbx kill ps-k3vq\n  sbx kill 48213",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			e, err := c.open(ctx, toLook)
			if err != nil {
				return err
			}
			defer func() { e.Close() }()
			p, err := engine.FindProcess(ctx, e, args[0])
			if err != nil {
				return err
			}
			if _, looks := e.(*local.Looker); looks && p.Running() {
				e.Close()
				if e, err = c.open(ctx, toChange); err != nil {
					return err
				}
			}
			return c.kill(ctx, e, p)
		},
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) kill(ctx context.Context, e engine.Engine, p engine.Process) error {
	killed := false
	if p.Kind == engine.Supervised || !p.State.Over() { // what is supervised is refused, with what to do instead
		var err error
		if killed, err = engine.KillTree(ctx, e, p.ID); err != nil {
			return err
		}
	}
	if c.json {
		if err := c.printJSON(map[string]any{"id": p.ID, "killed": killed}); err != nil {
			return err
		}
	} else if killed {
		fmt.Fprintf(c.out, "%s  killed\n", p.ID)
	}
	if !killed {
		c.say("%s: it had exited", p.ID)
		return exit(exitFailed)
	}
	return nil
}
