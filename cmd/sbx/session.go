package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newSessionCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Open, use and end sessions: each has a sandbox of its own, that comes back when it is gone",
		Example: "  sbx session create --template static --name chat-7\n" +
			"  sbx session exec chat-7 -- ls\n  sbx session end chat-7",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{
		newSessionCreateCmd(c), newSessionLsCmd(c), newSessionShowCmd(c), newSessionExecCmd(c),
		newSessionPauseCmd(c), newSessionResumeCmd(c), newSessionEndCmd(c), newSessionEventsCmd(c),
	} {
		checkArgs(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

// withSession opens an engine to change something, and finds the session.
func (c *cli) withSession(ctx context.Context, n need, ref string, fn func(engine.Engine, engine.Session, *engine.Snapshot) error) error {
	e, err := c.open(ctx, n)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	s, err := snap.FindSession(ref)
	if err != nil {
		return err
	}
	return fn(e, s, snap)
}

func newSessionCreateCmd(c *cli) *cobra.Command {
	var (
		f           createFlags
		env, labels []string
	)
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Open a session: claims a warm sandbox, or boots one",
		Example: "  sbx session create --template demo\n  sbx session create --from ~/app --env API=https://…",
		RunE: func(cmd *cobra.Command, _ []string) error {
			vars, err := parseEnv(env)
			if err != nil {
				return err
			}
			f.labels, f.drop = labels, true
			made, err := f.body()
			if err != nil {
				return err
			}
			return c.createSession(cmd.Context(), engine.CreateSession{
				Name: made.Name, Owner: made.Owner, Labels: made.Labels, Origin: made.Origin, Env: vars, SpecTOML: made.SpecTOML, File: made.File,
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.template, "template", "", "template (default demo)")
	fl.StringVar(&f.from, "from", "", "copy this directory")
	fl.StringVar(&f.git, "git", "", "clone this repository")
	fl.StringVar(&f.spec, "spec", "", "sbx.toml to use instead of the workspace's")
	fl.StringVar(&f.name, "name", "", "name of the session")
	fl.StringVar(&f.owner, "owner", "", "whose it is")
	fl.StringArrayVar(&env, "env", nil, "environment of the session: K=V")
	fl.StringArrayVar(&labels, "label", nil, "label: k=v")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) createSession(ctx context.Context, body engine.CreateSession) error {
	e, err := c.open(ctx, toChange)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := engine.OpenSession(ctx, e, body)
	if err != nil {
		return err
	}
	return c.printSession(s)
}

func (c *cli) printSession(s engine.Session) error {
	if c.json {
		return c.printJSON(s)
	}
	_, err := fmt.Fprintf(c.out, "%s  %s  %s  %s\n", s.ID, cmp.Or(cleanLine(s.Name), "—"), sessionWords(s), s.Sandbox)
	return err
}

// sessionWords is how a session is.
func sessionWords(s engine.Session) string {
	switch {
	case s.Live:
		return "active"
	case s.State == engine.SessionActive:
		return "coming up"
	case s.Reason != "":
		return string(s.State) + " (" + string(s.Reason) + ")"
	}
	return string(s.State)
}

func newSessionLsCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List the sessions", Example: "  sbx session ls --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.sessions(cmd.Context()) },
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) sessions(ctx context.Context) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	list := make([]engine.Session, 0, len(snap.Sessions))
	for _, s := range snap.Sessions {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b engine.Session) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(string(a.ID), string(b.ID)))
	})
	if c.json {
		return c.printJSON(list)
	}
	rows := [][]string{{"SESSION", "NAME", "OWNER", "IS", "SANDBOX", "CAME FROM", "AGE"}}
	for _, s := range list {
		rows = append(rows, []string{
			string(s.ID), cmp.Or(s.Name, "—"), cmp.Or(s.Owner, "—"), sessionWords(s), string(s.Sandbox),
			cmp.Or(string(s.Path), "—"), age(time.Now(), s.Created),
		})
	}
	return c.printTable(rows)
}

func newSessionShowCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show SESSION", Short: "Show a session", Example: "  sbx session show chat-7", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), toLook, args[0], func(_ engine.Engine, s engine.Session, _ *engine.Snapshot) error {
				return c.printSession(s)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

func newSessionExecCmd(c *cli) *cobra.Command {
	var (
		f       commandFlags
		sandbox string
	)
	cmd := &cobra.Command{
		Use:   "exec SESSION -- COMMAND...",
		Short: "Run a command in a session's sandbox and exit with its code",
		Long: `Run a command in a session's sandbox, which is brought back first if it isn't
there, and exit with its code. If the sandbox is terminated before the command is
over, that is said, and the exit code is 1.`,
		Example: "  sbx session exec chat-7 -- npm test\n  sbx session exec chat-7 --sandbox sb-mdcnhjx6nj -- ls",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := f.command(args[1:])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return c.withSession(ctx, toChange, args[0], func(e engine.Engine, s engine.Session, _ *engine.Snapshot) error {
				return c.sessionExec(ctx, e, s.ID, engine.SandboxID(sandbox), command)
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&sandbox, "sandbox", "", "the sandbox that you remember: it is proven alive first, and replaced if it isn't")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) sessionExec(ctx context.Context, e engine.Engine, id engine.SessionID, remembered engine.SandboxID, command engine.Command) error {
	o := engine.SpawnOptions{OnStdout: c.lineWriter(c.out), OnStderr: c.lineWriter(c.err), Keep: -1}
	if c.json {
		o = engine.SpawnOptions{Keep: maxExecJSON}
	}
	end, err := engine.ExecInSession(ctx, e, id, remembered, command, o)
	if err != nil {
		return err
	}
	if c.json {
		if err := c.printJSON(end); err != nil {
			return err
		}
	}
	switch {
	case end.Terminated != "":
		c.say("sandbox %s was terminated (%s) before the command was over", end.Sandbox, end.Terminated)
		return exit(exitFailed)
	case end.TimedOut:
		c.say("timed out after %s and was killed with its children", command.Timeout)
	case end.Error != "":
		c.say("the command did not run to its end: %s", end.Error)
	}
	if end.ExitCode != 0 {
		return exit(end.ExitCode)
	}
	return nil
}

// newSessionVerb is a command that does one thing to a session.
func newSessionVerb(c *cli, cmd *cobra.Command, body func(engine.SessionID) engine.ActionBody) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return c.withSession(ctx, toChange, args[0], func(e engine.Engine, s engine.Session, _ *engine.Snapshot) error {
			r, err := e.Do(ctx, engine.NewAction(body(s.ID)))
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(r)
			}
			_, err = fmt.Fprintln(c.out, strings.TrimRight(fmt.Sprintf("%s  %s  %s", s.ID, r.Sandbox, r.Note), " "))
			return err
		})
	}
	addJSON(c, cmd)
	return cmd
}

func newSessionPauseCmd(c *cli) *cobra.Command {
	var abort bool
	cmd := newSessionVerb(c, &cobra.Command{
		Use: "pause SESSION", Short: "Take a session's sandbox down and keep its workspace",
		Example: "  sbx session pause chat-7\n  sbx session pause --abort chat-7",
	}, func(id engine.SessionID) engine.ActionBody { return engine.PauseSession{Session: id, Abort: abort} })
	cmd.Flags().BoolVar(&abort, "abort", false, "kill what runs")
	return cmd
}

func newSessionResumeCmd(c *cli) *cobra.Command {
	var sandbox string
	cmd := newSessionVerb(c, &cobra.Command{
		Use: "resume SESSION", Short: "Bring a session's sandbox back: alive, from its workspace, from an archive, or fresh",
		Example: "  sbx session resume chat-7",
	}, func(id engine.SessionID) engine.ActionBody {
		return engine.ResumeSession{Session: id, Sandbox: engine.SandboxID(sandbox)}
	})
	cmd.Flags().StringVar(&sandbox, "sandbox", "", "the sandbox that you remember")
	return cmd
}

func newSessionEndCmd(c *cli) *cobra.Command {
	return newSessionVerb(c, &cobra.Command{
		Use: "end SESSION", Short: "End a session and remove its sandbox, unless that is kept",
		Example: "  sbx session end chat-7",
	}, func(id engine.SessionID) engine.ActionBody { return engine.EndSession{Session: id} })
}

func newSessionEventsCmd(c *cli) *cobra.Command {
	var after string
	cmd := &cobra.Command{
		Use: "events SESSION", Short: "Tell what becomes of a session's sandbox, as it happens",
		Example: "  sbx session events chat-7 --json\n  sbx session events chat-7 --after 1.480", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withSession(ctx, toLook, args[0], func(e engine.Engine, s engine.Session, snap *engine.Snapshot) error {
				return c.sessionEvents(ctx, e, s, snap.Position, after)
			})
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "begin after this position (default: how it is now)")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) sessionEvents(ctx context.Context, e engine.Engine, s engine.Session, pos engine.Position, after string) error {
	if after != "" {
		var err error
		if pos, err = engine.ParsePosition(after); err != nil {
			return err
		}
	} else if now, ok := s.Now(pos); ok {
		if err := c.printSessionEvent(now); err != nil {
			return err
		}
	}
	for ev, err := range engine.SessionEvents(ctx, e, s.ID, pos) {
		if err != nil {
			return err
		}
		if err := c.printSessionEvent(ev); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *cli) printSessionEvent(ev engine.SessionEvent) error {
	if c.json {
		return c.printJSON(ev)
	}
	_, err := fmt.Fprintf(c.out, "%s  %s  %-18s  %s  %s\n", ev.Position, ev.Time.Local().Format("15:04:05"), ev.Kind, ev.Sandbox,
		cmp.Or(string(ev.Reason), string(ev.Path)))
	return err
}
