package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newCheckpointCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "List, save, compare and restore what a sandbox's files were",
		Long: `List, save, compare and restore what a sandbox's files were. One is made before each
heal run, before each change of files by an operator, and when a sandbox has been
ready for a minute (good). Rebuildable directories and .git are in none.`,
		Example: "  sbx checkpoint ls api\n  sbx checkpoint diff api cp-4f2a\n  sbx checkpoint restore api --yes",
	}
	for _, sub := range []*cobra.Command{newCheckpointLsCmd(c), newCheckpointSaveCmd(c), newCheckpointDiffCmd(c), newCheckpointRestoreCmd(c)} {
		checkArgs(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func newCheckpointLsCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls SANDBOX",
		Short:   "List a sandbox's checkpoints, newest first",
		Example: "  sbx checkpoint ls api",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toLook, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				list, err := e.Checkpoints(ctx, sb.ID)
				if err != nil {
					return err
				}
				rows := [][]string{{"ID", "AGE", "WHY"}}
				for _, cp := range list {
					if c.json {
						if err := c.printJSON(cp); err != nil {
							return err
						}
						continue
					}
					rows = append(rows, []string{string(cp.ID), age(time.Now(), cp.Created), whyCheckpoint(cp)})
				}
				if c.json {
					return nil
				}
				return c.printTable(rows)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

func whyCheckpoint(cp engine.Checkpoint) string {
	switch {
	case cp.Change != nil && cp.Change.Undone:
		return fmt.Sprintf("before: %s, by %s (taken back)", cp.Change.Words, cp.Change.By)
	case cp.Change != nil:
		return fmt.Sprintf("before: %s, by %s", cp.Change.Words, cp.Change.By)
	case cp.Run != "":
		return "before heal run " + string(cp.Run)
	case cp.Manual && cp.Note == "":
		return "saved by hand"
	case cp.Good:
		return "good: " + cp.Note
	}
	return cp.Note
}

func newCheckpointSaveCmd(c *cli) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "save SANDBOX",
		Short:   "Save a sandbox's files as they are",
		Example: "  sbx checkpoint save api --note 'before the upgrade'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				r, err := e.Do(ctx, engine.NewAction(engine.SaveCheckpoint{Sandbox: sb.ID, Note: note}))
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(r)
				}
				_, err = fmt.Fprintln(c.out, r.Checkpoint)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what it is for")
	addJSON(c, cmd)
	return cmd
}

// checkpointOf is the checkpoint that a person means by ref: "" is the last
// good one, else an id or a unique beginning of one.
func checkpointOf(ctx context.Context, e engine.Engine, sb engine.Sandbox, ref string) (engine.Checkpoint, error) {
	list, err := e.Checkpoints(ctx, sb.ID)
	if err != nil {
		return engine.Checkpoint{}, err
	}
	var hits []engine.Checkpoint
	for _, cp := range list {
		switch {
		case ref == "" && cp.Good, string(cp.ID) == ref:
			return cp, nil
		case ref != "" && strings.HasPrefix(string(cp.ID), ref):
			hits = append(hits, cp)
		}
	}
	switch {
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		return engine.Checkpoint{}, engine.Errorf(engine.Invalid, "%q fits %d checkpoints", ref, len(hits)).WithHint("type more of the id")
	case ref == "":
		return engine.Checkpoint{}, engine.Errorf(engine.NotFound, "%s has no good checkpoint yet", sb.Name).WithHint("see all: sbx checkpoint ls %s", sb.Name)
	}
	return engine.Checkpoint{}, engine.Errorf(engine.NotFound, "%s has no checkpoint %q", sb.Name, ref).WithHint("see them: sbx checkpoint ls %s", sb.Name)
}

func newCheckpointDiffCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "diff SANDBOX [FROM [TO]]",
		Short:   "Show what changed since a checkpoint (the last good one), or between two",
		Example: "  sbx checkpoint diff api\n  sbx checkpoint diff api cp-4f2a cp-77ab",
		Args:    cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toLook, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				var ends [2]engine.CheckpointID
				for i := range ends {
					if i == 1 && len(args) < 3 {
						break
					}
					ref := ""
					if len(args) > i+1 {
						ref = args[i+1]
					}
					cp, err := checkpointOf(ctx, e, sb, ref)
					if err != nil {
						return err
					}
					ends[i] = cp.ID
				}
				d, err := e.Diff(ctx, sb.ID, ends[0], ends[1])
				if err != nil {
					return err
				}
				return c.printDiff(d)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) printDiff(d engine.Diff) error {
	if c.json {
		return c.printJSON(d)
	}
	if len(d.Changes) == 0 {
		c.say("nothing differs")
		return nil
	}
	for _, ch := range d.Changes {
		fmt.Fprintf(c.out, "%s %s\n", ch.Status, cleanLine(ch.Path))
	}
	fmt.Fprintln(c.out)
	if err := c.copyClean(strings.NewReader(d.Patch)); err != nil {
		return err
	}
	if d.Cut {
		c.say("the rest is left out")
	}
	return nil
}

// copyClean writes lines so that none can act on a terminal.
func (c *cli) copyClean(r io.Reader) error {
	for br := bufio.NewReaderSize(r, 64<<10); ; {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			if _, err := fmt.Fprintln(c.out, cleanLine(strings.TrimRight(string(line), "\r\n"))); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func newCheckpointRestoreCmd(c *cli) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "restore SANDBOX [CHECKPOINT] [PATH...]",
		Short: "Put files back as they were in a checkpoint (the last good one); sbx undo takes it back",
		Example: "  sbx checkpoint restore api --yes\n" +
			"  sbx checkpoint restore api cp-4f2a src/index.js --yes",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				body := engine.RestoreCheckpoint{Sandbox: sb.ID}
				ref := ""
				if len(args) > 1 {
					ref, body.Paths = args[1], args[2:]
				}
				cp, err := checkpointOf(ctx, e, sb, ref)
				if err != nil {
					return err
				}
				body.Checkpoint = cp.ID
				if !yes && c.terminal {
					d, err := e.Diff(ctx, sb.ID, cp.ID, "")
					if err != nil {
						return err
					}
					for _, ch := range d.Changes {
						fmt.Fprintf(c.err, "%s %s\n", ch.Status, cleanLine(ch.Path))
					}
				}
				if err := c.confirm(yes, "put the files of %s back as they were %s ago (%s)?", sb.Name, age(time.Now(), cp.Created), whyCheckpoint(cp)); err != nil {
					return err
				}
				return c.act(ctx, e, sb, body, sb.Name)
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	addJSON(c, cmd)
	return cmd
}

func newUndoCmd(c *cli) *cobra.Command {
	var yes bool
	var run string
	cmd := &cobra.Command{
		Use:   "undo SANDBOX",
		Short: "Take back the last change of files by an operator; once more does it again",
		Long: `Take back the last change of files by an operator: a file written, moved or deleted, a
checkpoint restored, a heal run rolled back. Once more does it again. A file that
changed since refuses it and is named. With --run what a heal run changed is put back.`,
		Example: "  sbx undo api --yes\n  sbx undo api --run ru-81c2 --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if cmd.Flags().Changed("run") {
					if err := c.confirm(yes, "put back what heal run %s changed in %s?", run, sb.Name); err != nil {
						return err
					}
					return c.act(ctx, e, sb, engine.RollBack{Sandbox: sb.ID, Run: engine.RunID(run)}, sb.Name)
				}
				list, err := e.Checkpoints(ctx, sb.ID)
				if err != nil {
					return err
				}
				for _, cp := range list {
					if cp.Change == nil || cp.Change.Undone {
						continue
					}
					if err := c.confirm(yes, "take back in %s: %s, by %s, %s ago?", sb.Name, cp.Change.Words, cp.Change.By, age(time.Now(), cp.Created)); err != nil {
						return err
					}
					break
				}
				return c.act(ctx, e, sb, engine.Undo{Sandbox: sb.ID}, sb.Name)
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	cmd.Flags().StringVar(&run, "run", "", "a heal run whose changes are put back")
	addJSON(c, cmd)
	return cmd
}
