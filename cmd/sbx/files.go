package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newFilesCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "files",
		Short: "List, read, write, move, delete and search files of a sandbox",
		Long: `List, read, write, move, delete and search files of a sandbox. Paths are relative to
its workspace and can't leave it. Looking wakes nothing. What put, rm, mv and cp
change can be taken back with sbx undo.`,
		Example: "  sbx files ls api src\n  sbx files grep api listen --name '*.js'",
	}
	for _, sub := range []*cobra.Command{
		newFilesLsCmd(c), newFilesCatCmd(c), newFilesGrepCmd(c), newFilesPutCmd(c), newFilesGetCmd(c),
		newFilesMvCmd(c), newFilesRmCmd(c), newFilesMkdirCmd(c),
	} {
		checkArgs(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

// toSandbox opens an engine for what is needed, and finds the sandbox.
func (c *cli) toSandbox(ctx context.Context, n need, ref string, fn func(engine.Engine, engine.Sandbox) error) error {
	e, err := c.open(ctx, n)
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
	return fn(e, sb)
}

func newFilesLsCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls SANDBOX [DIR]",
		Short:   "List a directory",
		Example: "  sbx files ls api\n  sbx files ls api src --json",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, dir := cmd.Context(), ""
			if len(args) == 2 {
				dir = args[1]
			}
			return c.toSandbox(ctx, toLook, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				list, err := e.ReadDir(ctx, sb.ID, dir)
				if err != nil {
					return err
				}
				return c.printFiles(list)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) printFiles(list []engine.FileInfo) error {
	if c.json {
		for _, fi := range list {
			if err := c.printJSON(fi); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{{"MODE", "SIZE", "CHANGED", "NAME"}}
	for _, fi := range list {
		name, size := fi.Name, engine.Size(fi.Size).String()
		switch {
		case fi.Mode.IsDir():
			name, size = name+"/", "-"
		case fi.Target != "":
			name += " -> " + fi.Target
		}
		rows = append(rows, []string{fi.Mode.String(), size, fi.ModTime.Local().Format("2006-01-02 15:04"), name})
	}
	return c.printTable(rows)
}

func newFilesCatCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "cat SANDBOX FILE",
		Short: "Write a file to stdout; on a terminal what could act on it is shown instead",
		Example: "  sbx files cat api package.json\n" +
			"  sbx files cat api dump.bin > dump.bin",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toLook, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				f, r, err := e.OpenFile(ctx, sb.ID, args[1], 0)
				if err != nil {
					return err
				}
				defer r.Close()
				if f.Mode.IsDir() {
					return usagef("%s is a directory: list it with sbx files ls, or copy it with sbx cp", args[1])
				}
				if !isTerminal(c.out) {
					_, err := io.Copy(c.out, r)
					return err
				}
				return c.copyClean(r)
			})
		},
	}
}

func newFilesGrepCmd(c *cli) *cobra.Command {
	var q engine.FindQuery
	cmd := &cobra.Command{
		Use:   "grep SANDBOX [TEXT]",
		Short: "Find lines by text, or files by name; binary files and node_modules and its like are passed over",
		Example: "  sbx files grep api listen\n  sbx files grep api --name '*.go'\n" +
			"  sbx files grep api -E 'func .*Handler' --name '*.go'",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 2 {
				q.Text = args[1]
			}
			if q.Text == "" && q.Name == "" {
				return usagef("nothing to look for: give a text, or --name")
			}
			return c.toSandbox(ctx, toLook, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				q.Sandbox = sb.ID
				return c.find(ctx, e, q)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Dir, "dir", "", "look in this directory only")
	f.StringVar(&q.Name, "name", "", "only files whose name fits: a pattern, or a part of the path")
	f.BoolVarP(&q.Regexp, "regexp", "E", false, "the text is a regular expression")
	f.BoolVarP(&q.Fold, "ignore-case", "i", false, "case doesn't count")
	f.IntVar(&q.Limit, "limit", 0, "at most so many (10000)")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) find(ctx context.Context, e engine.Engine, q engine.FindQuery) error {
	n := 0
	for f, err := range e.Find(ctx, q) {
		if err != nil {
			return err
		}
		n++
		switch {
		case c.json:
			err = c.printJSON(f)
		case q.Text == "":
			_, err = fmt.Fprintln(c.out, cleanLine(f.Name))
		default:
			_, err = fmt.Fprintf(c.out, "%s:%d: %s\n", cleanLine(f.Name), f.Line, cleanLine(f.Text))
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		return exit(exitFailed) // as grep
	}
	return nil
}

func newFilesPutCmd(c *cli) *cobra.Command {
	var mode string
	cmd := &cobra.Command{
		Use:     "put SANDBOX FILE [LOCAL]",
		Short:   "Write a file from a local one or from stdin; one that is there is replaced",
		Example: "  sbx files put api .env local.env\n  echo hello | sbx files put api greeting.txt",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, in := cmd.Context(), c.in
			body := engine.PlaceFile{Name: args[1], Overwrite: true}
			if len(args) == 3 && args[2] != "-" {
				f, err := os.Open(args[2])
				if err != nil {
					return usagef("%w", err)
				}
				defer f.Close()
				if st, err := f.Stat(); err == nil && !st.IsDir() {
					body.Mode = st.Mode().Perm()
				}
				in = f
			}
			if mode != "" {
				var bits uint32
				if _, err := fmt.Sscanf(mode, "%o", &bits); err != nil || bits > 0o777 {
					return usagef("--mode %s: the form is 755", mode)
				}
				body.Mode = fs.FileMode(bits)
			}
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				return c.put(ctx, e, sb, body, in)
			})
		},
	}
	cmd.Flags().StringVar(&mode, "mode", "", "permissions, such as 755 (the local file's, else as it had, else 644)")
	addJSON(c, cmd)
	return cmd
}

// put uploads what in has, and puts it at its place.
func (c *cli) put(ctx context.Context, e engine.Engine, sb engine.Sandbox, body engine.PlaceFile, in io.Reader) error {
	p := c.progress(body.Name, -1)
	up, err := e.Upload(ctx, sb.ID, p.reader(in))
	p.end()
	if err != nil {
		return err
	}
	body.Sandbox, body.Upload = sb.ID, up
	return c.act(ctx, e, sb, body, body.Name)
}

// act does an action on files, and says that it was done.
func (c *cli) act(ctx context.Context, e engine.Engine, sb engine.Sandbox, body engine.ActionBody, what string) error {
	r, err := e.Do(ctx, engine.NewAction(body))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(r)
	}
	if r.Note != "" {
		c.say("%s: %s", what, r.Note)
	}
	return nil
}

func newFilesGetCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "get SANDBOX FILE [LOCAL]",
		Short:   "Copy a file to a local one of the same name, or to LOCAL (- is stdout)",
		Example: "  sbx files get api dist/app.js\n  sbx files get api data.db backup.db",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, to := cmd.Context(), path.Base(args[1])
			if len(args) == 3 {
				to = args[2]
			}
			return c.toSandbox(ctx, toLook, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if to == "-" {
					_, r, err := e.OpenFile(ctx, sb.ID, args[1], 0)
					if err != nil {
						return err
					}
					_, err = io.Copy(c.out, r)
					return errors.Join(err, r.Close())
				}
				return c.copyOut(ctx, e, sb, args[1], to)
			})
		},
	}
}

func newFilesMvCmd(c *cli) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "mv SANDBOX FROM TO",
		Short:   "Rename or move a file or directory",
		Example: "  sbx files mv api old.js src/new.js",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				return c.act(ctx, e, sb, engine.RenameFile{Sandbox: sb.ID, From: args[1], To: args[2], Overwrite: force}, args[2])
			})
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "take the place of a file that is there")
	addJSON(c, cmd)
	return cmd
}

func newFilesRmCmd(c *cli) *cobra.Command {
	var yes, recursive bool
	cmd := &cobra.Command{
		Use:     "rm SANDBOX FILE",
		Short:   "Delete a file, a link or an empty directory; with -r all that is in it",
		Example: "  sbx files rm api old.js --yes\n  sbx files rm api build -r --yes",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if err := c.confirm(yes, "delete %s in %s?", args[1], sb.Name); err != nil {
					return err
				}
				return c.act(ctx, e, sb, engine.RemoveFile{Sandbox: sb.ID, Name: args[1], Recursive: recursive}, args[1])
			})
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "a directory with all that is in it")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	addJSON(c, cmd)
	return cmd
}

func newFilesMkdirCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "mkdir SANDBOX DIR",
		Short:   "Make a directory, with those above it",
		Example: "  sbx files mkdir api src/routes",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				return c.act(ctx, e, sb, engine.MakeDir{Sandbox: sb.ID, Name: args[1]}, args[1])
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

// progress tells how far a copy is, on stderr, if somebody is there to see.
type progress struct {
	c     *cli
	what  string
	total int64 // -1: unknown
	n     int64
	told  time.Time
	shown bool
}

func (c *cli) progress(what string, total int64) *progress {
	return &progress{c: c, what: cleanLine(what), total: total, told: time.Now()}
}

// reader is r, counted.
func (p *progress) reader(r io.Reader) io.Reader { return io.TeeReader(r, p) }

// Write counts, and tells twice a second.
func (p *progress) Write(b []byte) (int, error) {
	p.n += int64(len(b))
	if time.Since(p.told) < 500*time.Millisecond || !isTerminal(p.c.err) {
		return len(b), nil
	}
	p.told, p.shown = time.Now(), true
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %s", engine.Size(p.total))
	}
	fmt.Fprintf(p.c.err, "\r\x1b[K%s  %s%s", p.what, engine.Size(p.n), of)
	return len(b), nil
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.c.err, "\r\x1b[K")
	}
}
