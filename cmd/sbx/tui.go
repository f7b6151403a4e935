package main

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/local"
	"sbx/tui"
)

func newTUICmd(c *cli) *cobra.Command {
	var theme string
	cmd := &cobra.Command{
		Use:   "tui",
		Short: "Open the dashboard",
		Long: `Open the dashboard: on the engine that owns the data directory if one runs, on a
remote one with --engine, else with the engine inside the dashboard.`,
		Example: "  sbx tui\n  sbx tui --engine http://127.0.0.1:7443",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if theme == "" {
				theme = c.cfg.theme
			}
			return c.tui(cmd.Context(), theme)
		},
	}
	cmd.Flags().StringVar(&theme, "theme", "", "theme: auto, or the name of one")
	return cmd
}

func (c *cli) tui(ctx context.Context, theme string) error {
	if !c.terminal {
		return usagef("the dashboard needs a terminal: sbx ls and sbx logs --healer work without one")
	}
	e, err := c.open(ctx, toEmbed)
	if err != nil {
		return err
	}
	embedded, _ := e.(*local.Engine)
	choice, err := tui.Run(ctx, c.tuiConfig(e, theme))
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
		return errors.Join(stopAll(ctx, e, snap), e.Close())
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

// stopAll stops what is up, so that the next engine leaves it down.
func stopAll(ctx context.Context, e engine.Engine, snap *engine.Snapshot) error {
	var errs []error
	for id, sb := range snap.Sandboxes {
		if sb.Wanted != engine.Up {
			continue
		}
		if _, err := engine.StopAll(ctx, e, id); err != nil && engine.AsCode(err) != engine.NotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *cli) tuiConfig(e engine.Engine, theme string) tui.Config {
	cfg := tui.Config{
		Engine: e, Name: c.engineName(), Me: userName(), Where: c.engineURL, Theme: theme, ThemeDir: filepath.Join(configDir(c), "themes"),
		NoColor: c.env["NO_COLOR"] != "",
	}
	if _, ok := e.(*client.Client); !ok {
		cfg.Quit = tui.QuitText{
			Title: "Leave sbx? The engine runs inside this dashboard",
			Body:  []string{"Either way the apps stop now. Left to a background engine, they start again there."},
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
