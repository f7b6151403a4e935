package main

import (
	"context"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
	"sbx/tui/clean"
)

type logsFlags struct {
	healer, follow, full, diffs, raw bool
	process, grep, run               string
	since                            time.Duration
	tail, attempt                    int
	stamps                           bool
}

func newLogsCmd(c *cli) *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs [SANDBOX]",
		Short: "Print a sandbox's log, or with --healer what the healer saw and did",
		Example: "  sbx logs api --tail 100 --follow\n  sbx logs api --grep 'error|warn'\n" +
			"  sbx logs --healer --since 1h\n  sbx logs --healer api --attempt 2 --diffs",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref := ""
			if len(args) == 1 {
				ref = args[0]
			}
			if f.healer {
				return c.healerLog(cmd.Context(), ref, f, cmd.Flags().Changed("attempt"))
			}
			if ref == "" {
				return usagef("whose log? sbx logs SANDBOX, or sbx logs --healer for the fleet")
			}
			return c.appLog(cmd.Context(), ref, f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.healer, "healer", false, "what the healer saw and did, of one sandbox or the whole fleet")
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on as more is written")
	fl.IntVarP(&f.tail, "tail", "n", 0, "only the last so many lines")
	fl.DurationVar(&f.since, "since", 0, "only what is younger than this")
	fl.IntVar(&f.attempt, "attempt", 0, "with --healer: only this attempt (0: the playbooks)")
	fl.StringVar(&f.grep, "grep", "", "only lines that match this regular expression")
	fl.StringVar(&f.process, "process", "", "another process than the app: its name or id")
	fl.BoolVar(&f.full, "full", false, "with --healer: unfold results and diffs")
	fl.BoolVar(&f.diffs, "diffs", false, "with --healer: unfold diffs")
	fl.StringVar(&f.run, "run", "", "with --healer: only this heal run")
	fl.BoolVar(&f.raw, "raw", false, "exactly what the app wrote, escape sequences included")
	fl.BoolVarP(&f.stamps, "time", "t", false, "when each line arrived")
	addJSON(c, cmd)
	return cmd
}

func (f logsFlags) check() (*regexp.Regexp, error) {
	if f.tail < 0 || f.since < 0 || f.attempt < 0 {
		return nil, usagef("--tail, --since and --attempt can't be negative")
	}
	re, err := regexp.Compile(f.grep)
	if err != nil {
		return nil, usagef("--grep: %v", err)
	}
	return re, nil
}

func (f logsFlags) from() time.Time {
	if f.since == 0 {
		return time.Time{}
	}
	return time.Now().Add(-f.since)
}

// appLog prints what a process wrote.
func (c *cli) appLog(ctx context.Context, ref string, f logsFlags) error {
	match, err := f.check()
	if err != nil {
		return err
	}
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	sb, err := snap.Find(ref)
	if err != nil {
		return err
	}
	q := engine.LogQuery{Sandbox: sb.ID, Process: f.process, Tail: f.tail, Since: f.from(), Follow: f.follow}
	for line, err := range e.Logs(ctx, q) {
		if err != nil {
			return err
		}
		if line.Lost > 0 {
			c.say("%d bytes fell off the end before they were read", line.Lost)
		}
		if !match.MatchString(line.Text) {
			continue
		}
		if err := c.printLogLine(line, f); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) printLogLine(line engine.LogLine, f logsFlags) error {
	if c.json {
		return c.printJSON(line)
	}
	stamp := ""
	if f.stamps {
		stamp = line.Time.Local().Format("15:04:05.000 ")
	}
	text := line.Text
	if !f.raw {
		text = clean.Line(text)
	}
	end := "\n"
	if line.Partial && f.raw {
		end = ""
	}
	_, err := io.WriteString(c.out, stamp+text+end)
	return err
}

func nameOf(s *engine.Snapshot, id engine.SandboxID) string {
	if sb, ok := s.Sandboxes[id]; ok {
		return sb.Name
	}
	return engine.Short(id)
}
