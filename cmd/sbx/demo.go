package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
	"sbx/engine/local"
	"sbx/tui"
)

func newDemoCmd(c *cli) *cobra.Command {
	var plain bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Make three sandboxes, break one, and watch it being healed",
		Long: `Make three sandboxes, break one, and watch it being healed. It needs nothing but
this binary, uses a data directory of its own that is deleted at the end, and
leaves nothing running.`,
		Example: "  sbx demo\n  sbx demo --plain",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.demo(cmd.Context(), plain || c.json || !c.terminal)
		},
	}
	cmd.Flags().BoolVar(&plain, "plain", false, "lines instead of the dashboard; ends by itself")
	addJSON(c, cmd)
	return cmd
}

// demoScale speeds the detectors and the healer up, so that nobody waits
// twenty seconds for a probe.
const demoScale = 0.2

func (c *cli) demo(ctx context.Context, plain bool) (err error) {
	dir, err := os.MkdirTemp("", "sbx-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.cfg.home = dir
	c.cfg.scale *= demoScale
	e, err := c.newEngine(ctx, c.quietLog(), stopsIts)
	if err != nil {
		return err
	}
	defer func() {
		if err2 := e.Close(); err == nil {
			err = err2
		}
	}()
	if plain {
		return c.demoPlain(ctx, e)
	}
	return c.demoScreen(ctx, e)
}

var demoNames = []string{"bakery", "florist", "bookshop"}

// demoPlain tells the demo as lines and ends by itself.
func (c *cli) demoPlain(ctx context.Context, e *local.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c.tellf("sbx demo: three sandboxes from the demo template, isolation %s\n", c.isolationOf(ctx, e))
	ids, err := c.demoCreate(ctx, e)
	if err != nil {
		return err
	}
	for _, id := range ids {
		sb, err := c.untilSettled(ctx, e, engine.Sandbox{ID: id})
		if err != nil {
			return err
		}
		if sb.Health != engine.Ready {
			return engine.Errorf(engine.Internal, "%s is %s: %s", sb.Name, sb.Health, sb.Reason)
		}
		c.tellf("%s  %-10s ready\n", time.Now().Format("15:04:05"), sb.Name)
	}
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	c.tellf("\nnow its user deletes a part of %s and restarts it\n\n", demoNames[1])
	if err := demoBreak(ctx, e, ids[1]); err != nil {
		return err
	}
	if err := c.demoTell(ctx, e, snap, ids[1]); err != nil {
		return err
	}
	c.tellf("\nnothing of this is left running; start your own with: sbx create --template demo, then: sbx tui\n")
	return nil
}

// tellf writes what only people read: with --json the records speak alone.
func (c *cli) tellf(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.out, format, args...)
	}
}

func (c *cli) isolationOf(ctx context.Context, e engine.Engine) string {
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return "unknown"
	}
	return snap.About.Isolation.Name
}

func (c *cli) demoCreate(ctx context.Context, e engine.Engine) ([]engine.SandboxID, error) {
	var ids []engine.SandboxID
	for _, name := range demoNames {
		sb, err := engine.Create(ctx, e, engine.CreateSandbox{
			Name: name, Owner: userName(), Keep: true, Origin: engine.Origin{Kind: engine.FromTemplate, Ref: "demo"},
		})
		if err != nil {
			return nil, err
		}
		ids = append(ids, sb.ID)
	}
	return ids, nil
}

// demoBreak does what users do: it deletes a file that the app needs.
func demoBreak(ctx context.Context, e engine.Engine, id engine.SandboxID) error {
	cmd := engine.Command{Shell: "rm parts/menu.txt", Timeout: engine.Duration(20 * time.Second)}
	res, err := engine.Exec(ctx, e, id, cmd, func(engine.LogLine) {})
	if err != nil {
		return err
	}
	if !res.Success {
		return engine.Errorf(engine.Internal, "the part could not be deleted: exit %d", res.ExitCode)
	}
	_, err = engine.RestartProcess(ctx, e, id, "")
	return err
}

// demoTell tells the healer's story until the sandbox is ready again.
func (c *cli) demoTell(ctx context.Context, e engine.Engine, snap *engine.Snapshot, id engine.SandboxID) error {
	s := story{name: func(id engine.SandboxID) string { return nameOf(snap, id) }}
	for ev, err := range e.Events(ctx, snap.Position) {
		if err != nil {
			return err
		}
		if err := c.tellEvent(s, ev); err != nil {
			return err
		}
		end, ok := ev.Body.(engine.HealFinished)
		if !ok || end.Run.Sandbox != id {
			continue
		}
		if end.Run.Outcome != engine.Healed {
			return exit(exitBroken)
		}
		return nil
	}
	return ctx.Err()
}

// demoScreen shows the demo on the dashboard, where it goes on until the
// operator quits.
func (c *cli) demoScreen(ctx context.Context, e *local.Engine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		c.demoAct(ctx, e)
	}()
	cfg := c.tuiConfig(e, tuiOptions{})
	cfg.Name, cfg.Quit = "demo", tui.QuitText{}
	_, err := tui.Run(ctx, cfg)
	cancel()
	<-acted
	return err
}

// demoAct makes the sandboxes and breaks one after a look at them all ready.
// What goes wrong is on the screen: it is the journal's.
func (c *cli) demoAct(ctx context.Context, e *local.Engine) {
	ids, err := c.demoCreate(ctx, e)
	if err != nil {
		return
	}
	err = engine.Until(ctx, e, time.Minute, func(s *engine.Snapshot) bool {
		for _, id := range ids {
			if s.Sandboxes[id].Health != engine.Ready {
				return false
			}
		}
		return true
	})
	if err != nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(4 * time.Second):
		_ = demoBreak(ctx, e, ids[1]) // that it failed shows: nothing breaks
	}
}
