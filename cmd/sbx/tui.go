package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	toml "github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/local"
	"sbx/tui"
)

func newTUICmd(c *cli) *cobra.Command {
	var o tuiOptions
	var listKeys bool
	cmd := &cobra.Command{
		Use:   "tui [SANDBOX]",
		Short: "Open the dashboard",
		Long: `Open the dashboard: on the engine that owns the data directory if one runs, on a
remote one with --engine, else with the engine inside the dashboard. With a
sandbox it opens on that one.

Keys are changed in keys.toml beside config.toml:

    preset = "k9s"                      # optional: d overview, l logs
    [keys]
    "sandbox.restart" = ["ctrl+r"]      # names: sbx tui --keys`,
		Example: "  sbx tui\n  sbx tui shop --pane healer\n  sbx tui --engine http://127.0.0.1:7443",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if listKeys {
				return c.printKeys()
			}
			if len(args) > 0 {
				o.open = args[0]
			}
			return c.tui(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.theme, "theme", "", "theme: auto, or the name of one (sbx theme ls)")
	f.StringVar(&o.pane, "pane", "", "tab of the sandbox to begin with: "+strings.Join(tui.Panes(), ", "))
	f.BoolVar(&listKeys, "keys", false, "print every key and its name in keys.toml, and what is wrong with that file")
	addJSON(c, cmd)
	return cmd
}

// tuiOptions are what the dashboard is started with.
type tuiOptions struct{ theme, open, pane string }

// check refuses a tab that isn't there, and a tab of nothing.
func (o tuiOptions) check() error {
	if o.pane == "" {
		return nil
	}
	if !slices.Contains(tui.Panes(), o.pane) {
		return usagef("no pane %q: there is %s", o.pane, strings.Join(tui.Panes(), ", "))
	}
	if o.open == "" {
		return usagef("--pane %s of which sandbox? the form is: sbx tui SANDBOX --pane %s", o.pane, o.pane)
	}
	return nil
}

func (c *cli) tui(ctx context.Context, o tuiOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if !c.terminal {
		return usagef("the dashboard needs a terminal: sbx ls and sbx logs --healer work without one")
	}
	e, err := c.open(ctx, toEmbed)
	if err != nil {
		return err
	}
	embedded, _ := e.(*local.Engine)
	choice, err := tui.Run(ctx, c.tuiConfig(e, o))
	if embedded == nil {
		return errors.Join(err, e.Close())
	}
	return errors.Join(err, c.leaveEmbedded(ctx, e, choice))
}

// leaveEmbedded does what the operator chose at quitting: the sandboxes stop
// with the engine, or a background engine takes them over. Whoever chose
// nothing, by closing the window, has stopped nobody's sandbox.
func (c *cli) leaveEmbedded(ctx context.Context, e engine.Engine, choice tui.Choice) error {
	ctx = context.WithoutCancel(ctx) // leaving is bounded by its own stages
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	if choice == tui.StopAll {
		_, err := stopAll(ctx, e, snap)
		return errors.Join(err, e.Close())
	}
	if err := e.Close(); err != nil || !anyWantedUp(snap) {
		return err
	}
	if err := c.spawnServe(ctx, serveFlags{listen: "none"}); err != nil {
		return err
	}
	c.say("your sandboxes are with an engine in the background: sbx tui shows them, sbx status tells about it")
	return nil
}

func anyWantedUp(s *engine.Snapshot) bool {
	for _, sb := range s.Sandboxes {
		if sb.Wanted == engine.Up {
			return true
		}
	}
	return false
}

func (c *cli) tuiConfig(e engine.Engine, o tuiOptions) tui.Config {
	cfg := tui.Config{
		Engine: e, Name: c.engineName(), Me: userName(), Where: c.engineURL, Open: o.open, Pane: o.pane,
		Theme: cmp.Or(o.theme, c.cfg.theme), ThemeDir: themeDir(c), NoColor: c.env["NO_COLOR"] != "",
		Mouse: tui.Mouse(c.cfg.mouse),
	}
	var err error
	if cfg.Keys, err = readKeys(c); err != nil {
		cfg.Notices = append(cfg.Notices, err.Error())
	}
	if _, ok := e.(*client.Client); !ok {
		cfg.Quit = tui.QuitText{
			Title: "Leave sbx? The engine runs inside this dashboard",
			Body:  []string{"Left to a background engine, the apps go on as they are."},
			Leave: "leave the sandboxes to an engine in the background",
			Stop:  "stop the sandboxes; their files stay",
		}
	}
	return cfg
}

// engineName is what the dashboard calls the engine: "local", or its host.
func (c *cli) engineName() string {
	if c.engineURL == "" {
		return "local"
	}
	u, err := url.Parse(c.engineURL)
	if err != nil || u.Host == "" {
		return c.engineURL
	}
	return u.Host
}

// readKeys reads keys.toml beside config.toml.
func readKeys(c *cli) (tui.KeysFile, error) {
	return tui.ReadKeys(filepath.Join(configDir(c), "keys.toml"), toml.Unmarshal)
}

// printKeys prints the keys as keys.toml leaves them; what is wrong with that
// file goes to stderr and fails the command.
func (c *cli) printKeys() error {
	file, err := readKeys(c)
	if err != nil {
		return engine.Errorf(engine.Invalid, "%w", err)
	}
	list := tui.KeyLines(file)
	if c.json {
		err = c.printJSON(list)
	} else {
		rows := [][]string{{"NAME", "KEYS", "WHAT IT DOES"}}
		for _, l := range list {
			rows = append(rows, []string{l.Name, strings.Join(l.Keys, " "), l.Words})
		}
		err = c.printTable(rows)
	}
	wrong := tui.CheckKeys(file)
	for _, line := range wrong {
		c.say("keys.toml: %s", line)
	}
	if len(wrong) > 0 && err == nil {
		return exit(exitUsage)
	}
	return err
}
