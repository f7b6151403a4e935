package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// The groups that help shows the commands in.
const (
	groupWatch  = "watch"
	groupChange = "change"
	groupEngine = "engine"
)

func newRootCmd(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "sbx",
		Short: "Keep a fleet of dev sandboxes alive",
		Long: `sbx keeps a fleet of dev sandboxes alive: it supervises their dev servers, notices
when they break, repairs them by playbook or with Claude, and shows all of it on
one screen.

Start with: sbx demo`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(c)
			c.cfg = cfg
			return err
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&c.home, "home", "", "data directory (SBX_HOME; default: the XDG data directory)")
	f.StringVar(&c.engineURL, "engine", "", "attach to a remote engine: http://host:7443 (SBX_ENGINE)")
	f.StringVar(&c.token, "token", "", "token for the remote engine; better in SBX_TOKEN")
	f.StringVar(&c.configFile, "config", "", "configuration file (SBX_CONFIG)")
	f.BoolVar(&c.embed, "embed", false, "run the engine inside this command and stop what it started")
	f.StringArrayVar(&c.set, "set", nil, "override a setting for this command: --set timings.scale=0.5")
	root.AddGroup(
		&cobra.Group{ID: groupWatch, Title: "Watch:"},
		&cobra.Group{ID: groupChange, Title: "Change:"},
		&cobra.Group{ID: groupEngine, Title: "Engine:"},
	)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w: see %s --help", err, cmd.CommandPath())
	})
	for _, group := range []struct {
		id   string
		cmds []*cobra.Command
	}{
		{groupWatch, []*cobra.Command{newTUICmd(c), newLsCmd(c), newShowCmd(c), newPsCmd(c), newLogsCmd(c), newIncidentsCmd(c), newEventsCmd(c), newStatusCmd(c), newPoolCmd(c)}},
		{groupChange, []*cobra.Command{
			newCreateCmd(c), newStartCmd(c), newStopCmd(c), newRestartCmd(c), newHealCmd(c), newMaintenanceCmd(c), newExecCmd(c),
			newSpawnCmd(c), newAttachCmd(c), newKillCmd(c), newShellCmd(c), newRmCmd(c), newKeepCmd(c), newSessionCmd(c),
		}},
		{groupEngine, []*cobra.Command{newServeCmd(c), newDemoCmd(c), newConfigCmd(c), newThemeCmd(c), newDoctorCmd(c), newVersionCmd(c)}},
		{groupChange, []*cobra.Command{newFilesCmd(c), newCpCmd(c), newCheckpointCmd(c), newUndoCmd(c), newArchiveCmd(c)}},
		{groupChange, []*cobra.Command{newChatCmd(c), newKeyCmd(c), newNotifyCmd(c), newBundleCmd(c)}},
	} {
		for _, cmd := range group.cmds {
			cmd.GroupID = group.id
			checkArgs(cmd)
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"})
	return root
}

// checkArgs makes cobra's complaints about arguments usage errors that say how
// the command is called.
func checkArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%w: the form is: %s", err, strings.TrimSpace(cmd.UseLine()))
		}
		return nil
	}
}

// addJSON gives a command that prints its --json flag.
func addJSON(c *cli, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON with stable fields")
}
