package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

// shellFlags are those of sbx shell.
type shellFlags struct {
	command commandFlags
	attach  string
	list    bool
	all     bool
	cast    string
	record  bool
	watch   bool
	name    string
	detach  string
	clip    bool
}

func newShellCmd(c *cli) *cobra.Command {
	var f shellFlags
	cmd := &cobra.Command{
		Use:   "shell SANDBOX [-- COMMAND...]",
		Short: "Open a terminal in a sandbox: its shell, or a command",
		Long: `Open a terminal in a sandbox: its shell, or a command. It is the engine's: ctrl+]
detaches and leaves it running, and --attach comes back to it, with its screen, from
anywhere and as many as like. The exit code is the shell's.

ctrl+] twice sends one; --detach-key changes the key. The program sees the smallest
window of all who are attached. What it draws reaches this terminal as it is; what
reaches further does not: the clipboard (unless --clipboard), notifications, links to
other than the web, window operations, and questions whose answers it could choose.

--record keeps the time of all that is printed; --cast writes that as an asciicast
(version 2) to stdout, as far back as the log reaches (64 MiB). What is typed is not
recorded, but what a program echoes is, and a secret that it prints: look before you
share one.`,
		Example: "  sbx shell api\n  sbx shell api -- vim src/main.js\n  sbx shell --list\n" +
			"  sbx shell --attach ps-k3vq\n  sbx shell --cast ps-k3vq > api.cast",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return c.shell(cmd.Context(), &f, args) },
	}
	f.command.add(cmd.Flags())
	fl := cmd.Flags()
	fl.Lookup("timeout").Hidden = true // a terminal has none
	fl.StringVar(&f.attach, "attach", "", "attach to this terminal: an id of --list, the beginning of one, or a pid")
	fl.BoolVarP(&f.list, "list", "l", false, "list the terminals that are open, of SANDBOX or of all")
	fl.BoolVarP(&f.all, "all", "a", false, "with --list: those that have ended, too")
	fl.StringVar(&f.cast, "cast", "", "write what this terminal printed to stdout, as an asciicast")
	fl.BoolVar(&f.record, "record", false, "keep exact times, for --cast")
	fl.BoolVar(&f.watch, "watch", false, "with --attach: only look, from a window that is no smaller; keys but the one that detaches do nothing")
	fl.StringVar(&f.name, "name", "", "a name for --list")
	fl.StringVar(&f.detach, "detach-key", "ctrl+]", "the key that detaches: ctrl+ and a letter or one of ] \\ ^ _")
	fl.BoolVar(&f.clip, "clipboard", false, "let the program write to this terminal's clipboard (never read it)")
	addJSON(c, cmd)
	return cmd
}

// check says what is wrong with how the flags are put together.
func (f *shellFlags) check(args []string) error {
	uses := 0
	for _, set := range []bool{f.attach != "", f.list, f.cast != ""} {
		if set {
			uses++
		}
	}
	switch {
	case uses > 1:
		return usagef("--attach, --list and --cast exclude each other")
	case f.list && len(args) > 1, (f.attach != "" || f.cast != "") && len(args) > 0:
		return usagef("there is nothing to run with --attach, --list and --cast")
	case uses == 0 && len(args) == 0:
		return usagef("name a sandbox: sbx shell SANDBOX, or --attach PROCESS")
	case f.command.timeout != 0:
		return usagef("a terminal has no timeout: run it with sbx exec --timeout")
	case f.watch && f.attach == "":
		return usagef("--watch needs --attach PROCESS")
	}
	return nil
}

func (c *cli) shell(ctx context.Context, f *shellFlags, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	key, err := parseKey(f.detach)
	if err != nil {
		return err
	}
	switch {
	case f.list:
		return c.listTerminals(ctx, args, f.all)
	case f.cast != "":
		return c.cast(ctx, f.cast)
	}
	con, err := c.console()
	if err != nil {
		return err
	}
	s := &shell{c: c, con: con, key: key, watch: f.watch}
	s.filter.Ask, s.filter.Clipboard = !f.watch, f.clip
	if f.attach != "" {
		e, err := c.open(ctx, toLook) // without an engine no terminal is open
		if err != nil {
			return err
		}
		defer e.Close()
		if s.p, err = engine.FindProcess(ctx, e, f.attach); err != nil {
			return err
		}
		s.e, s.from = e, engine.FromScreen
		return s.run(ctx)
	}
	return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
		body := engine.OpenTerminal{Sandbox: sb.ID, Name: f.name, Size: con.size(), Record: f.record}
		if len(args) > 1 {
			if body.Command, err = f.command.command(args[1:]); err != nil {
				return err
			}
		} else if body.Command.Env, err = parseEnv(f.command.env); err != nil {
			return err
		}
		body.Command.Dir = f.command.dir
		if s.p, err = engine.OpenShell(ctx, e, body); err != nil {
			return err
		}
		s.e = e
		return s.run(ctx)
	})
}

// parseKey is the character that a key sends: ctrl+] is 0x1d.
func parseKey(name string) (byte, error) {
	const prefix = "ctrl+"
	if len(name) == len(prefix)+1 && name[:len(prefix)] == prefix {
		switch k := name[len(prefix)]; {
		case k >= 'a' && k <= 'z' && k != 'c' && k != 'i' && k != 'j' && k != 'm' && k != 'z':
			return k - 'a' + 1, nil
		case k >= '\\' && k <= '_':
			return k - '@', nil
		}
	}
	return 0, usagef("--detach-key %q: write it as ctrl+] or ctrl+q; ctrl+c, ctrl+z, Tab and Enter are for the program", name)
}

// listTerminals lists terminals.
func (c *cli) listTerminals(ctx context.Context, args []string, all bool) error {
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
	procs, err := e.ListProcesses(ctx, of)
	if err != nil {
		return err
	}
	var list []engine.Process
	for _, p := range procs {
		if p.Terminal != nil && (all || !p.State.Over()) {
			list = append(list, p)
		}
	}
	return c.printTerminals(snap, list)
}

func (c *cli) printTerminals(snap *engine.Snapshot, list []engine.Process) error {
	if c.json {
		out := []processJSON{}
		for _, p := range list {
			out = append(out, jsonOf(p, snap.Sandboxes[p.Sandbox].Name))
		}
		return c.printJSON(out)
	}
	if len(list) == 0 {
		c.say("no terminal is open: open one with sbx shell SANDBOX")
		return nil
	}
	ids := make([]engine.ProcessID, 0, len(list))
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	short, now := engine.Shorten(ids), time.Now()
	rows := [][]string{{"PROCESS", "SANDBOX", "NAME", "STATE", "CODE", "SIZE", "VIEWERS", "USED", "RECORDED", "TITLE", "COMMAND"}}
	for _, p := range list {
		t, code, recorded := p.Terminal, "", ""
		if n, ok := p.ExitCode(); ok {
			code = strconv.Itoa(n)
		}
		if t.Recorded {
			recorded = "yes"
		}
		rows = append(rows, []string{
			short[p.ID], snap.Sandboxes[p.Sandbox].Name, p.Name, string(p.State), code,
			fmt.Sprintf("%dx%d", t.Size.Cols, t.Size.Rows), number(t.Viewers), age(now, t.Used), recorded,
			oneLine(t.Title, 30), oneLine(p.Command.Shell, 60),
		})
	}
	return c.printTable(rows)
}
