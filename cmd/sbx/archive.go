package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
	"sbx/engine/archive"
	"sbx/engine/archive/s3"
)

func newArchiveCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "List, save, restore and delete the archives of workspaces",
		Long: `List, save, restore and delete the archives of workspaces: one compressed file each, in
archive.dir and, if archive.url is set, in object storage, where they are uploaded
in the background. Evicted sandboxes are archived by themselves.`,
		Example: "  sbx archive ls\n  sbx archive save api\n  sbx archive restore api --yes",
	}
	for _, sub := range []*cobra.Command{newArchiveLsCmd(c), newArchiveSaveCmd(c), newArchiveRestoreCmd(c), newArchiveRmCmd(c)} {
		checkArgs(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func newArchiveLsCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls [SANDBOX]",
		Short:   "List archives, and which of them are yet to be uploaded",
		Example: "  sbx archive ls\n  sbx archive ls --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			e, err := c.open(ctx, toLook)
			if err != nil {
				return err
			}
			defer e.Close()
			var id engine.SandboxID
			if len(args) == 1 {
				sb, err := archivedAs(ctx, e, args[0])
				if err != nil {
					return err
				}
				id = sb.ID
			}
			list, err := e.Archives(ctx, id)
			if err != nil {
				return err
			}
			return c.printArchives(list)
		},
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) printArchives(list []engine.Archive) error {
	rows := [][]string{{"SANDBOX", "NAME", "AGE", "SIZE", "FILES", "WHERE", "UPLOAD"}}
	for _, a := range list {
		if c.json {
			if err := c.printJSON(a); err != nil {
				return err
			}
			continue
		}
		where := "local"
		switch {
		case a.Local && a.Remote:
			where = "local, remote"
		case a.Remote:
			where = "remote"
		}
		upload := ""
		switch {
		case a.Failure != "":
			upload = "failed, again in " + time.Until(a.Retry).Round(time.Second).String() + ": " + a.Failure
		case a.Pending:
			upload = "waiting"
		}
		rows = append(rows, []string{
			string(a.Sandbox), a.Name, age(time.Now(), a.Saved), engine.Size(a.Size).String(), strconv.FormatInt(a.Files, 10), where, upload,
		})
	}
	if c.json {
		return nil
	}
	return c.printTable(rows)
}

func newArchiveSaveCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "save SANDBOX",
		Short:   "Archive a sandbox's workspace now, unless it has not changed",
		Example: "  sbx archive save api",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				return c.act(ctx, e, sb, engine.SaveArchive{Sandbox: sb.ID}, sb.Name)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

func newArchiveRestoreCmd(c *cli) *cobra.Command {
	var yes bool
	var from string
	cmd := &cobra.Command{
		Use:     "restore SANDBOX",
		Short:   "Put a stopped sandbox's workspace back as it was archived",
		Example: "  sbx archive restore api --yes\n  sbx archive restore api --from remote --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.toSandbox(ctx, toChange, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				if err := c.confirm(yes, "replace all files of %s by its archive? What changed since is lost", sb.Name); err != nil {
					return err
				}
				return c.act(ctx, e, sb, engine.RestoreArchive{Sandbox: sb.ID, Where: engine.ArchivePlace(from)}, sb.Name)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "local or remote (local, else remote)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	addJSON(c, cmd)
	return cmd
}

// archivedAs is a sandbox, or what an archive says of one that is gone.
func archivedAs(ctx context.Context, e engine.Engine, ref string) (engine.Sandbox, error) {
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return engine.Sandbox{}, err
	}
	sb, err := snap.Find(ref)
	if engine.AsCode(err) != engine.NotFound {
		return sb, err
	}
	list, err2 := e.Archives(ctx, "")
	if err2 != nil {
		return sb, err2
	}
	for _, a := range list {
		if string(a.Sandbox) == ref {
			return engine.Sandbox{ID: a.Sandbox, Name: a.Name}, nil
		}
	}
	return sb, err
}

func newArchiveRmCmd(c *cli) *cobra.Command {
	var yes bool
	var from string
	cmd := &cobra.Command{
		Use:     "rm SANDBOX",
		Short:   "Delete a sandbox's archive, here and far away, also of one that is gone",
		Example: "  sbx archive rm api --yes\n  sbx archive rm api --from remote --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			e, err := c.open(ctx, toChange)
			if err != nil {
				return err
			}
			defer e.Close()
			sb, err := archivedAs(ctx, e, args[0])
			if err != nil {
				return err
			}
			if err := c.confirm(yes, "delete the archive of %s?", sb.Name); err != nil {
				return err
			}
			return c.act(ctx, e, sb, engine.RemoveArchive{Sandbox: sb.ID, Where: engine.ArchivePlace(from)}, sb.Name)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "local or remote (both)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	addJSON(c, cmd)
	return cmd
}

// newKeeper keeps archives as the settings say.
func newKeeper(cfg *config) (*archive.Keeper, error) {
	k := &archive.Keeper{Dir: cfg.archiveDir, Rebuildable: cfg.archiveRebuildable}
	if cfg.archiveURL == "" {
		return k, nil
	}
	far, err := s3.Open(s3.Config{URL: cfg.archiveURL, AccessKey: cfg.archiveAccess, SecretKey: cfg.archiveSecret})
	if err != nil {
		return nil, err
	}
	k.Remote = far
	return k, nil
}

// archiveSettings are those of archives and of files.
var archiveSettings = []setting{
	{key: "archive.dir", help: "where archives of workspaces are kept; empty: in the data directory", set: setString(func(c *config) *string { return &c.archiveDir })},
	{key: "archive.url", help: "object storage for archives: s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION", set: setString(func(c *config) *string { return &c.archiveURL })},
	{key: "archive.access_key", env: []string{"AWS_ACCESS_KEY_ID"}, secret: true, help: "access key for archive.url", set: setString(func(c *config) *string { return &c.archiveAccess })},
	{key: "archive.secret_key", env: []string{"AWS_SECRET_ACCESS_KEY"}, secret: true, help: "secret key for archive.url", set: setString(func(c *config) *string { return &c.archiveSecret })},
	{key: "archive.rebuildable", initial: "false", help: "archive node_modules and its like too", set: setBool(func(c *config) *bool { return &c.archiveRebuildable })},
	{key: "files.max_upload", initial: "4GiB", help: "the most that one upload may bring", set: setUpload},
}

func setUpload(c *config, v string) error {
	var n engine.Size
	if err := n.UnmarshalText([]byte(v)); err != nil || n <= 0 {
		return usagef("%q is no size, such as 4GiB", v)
	}
	c.maxUpload = int64(n)
	return nil
}
