package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

type createFlags struct {
	template, from, adopt, git, spec, name, owner string
	labels                                        []string
	noWait                                        bool
	// drop: the pool may evict it and put it to sleep.
	drop bool
}

func newCreateCmd(c *cli) *cobra.Command {
	var (
		f    createFlags
		keep bool
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a sandbox and wait until it is ready",
		Example: "  sbx create --template demo\n  sbx create --from ./my-app --name api --label team=web\n" +
			"  sbx create --adopt /srv/app --spec sbx.toml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.drop = !keep
			return c.create(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.template, "template", "", "template: demo, node, python, go, static, or one of your own (default demo)")
	fl.StringVar(&f.from, "from", "", "copy this directory as it is")
	fl.StringVar(&f.adopt, "adopt", "", "use this directory in place; it is never deleted")
	fl.StringVar(&f.git, "git", "", "clone this repository")
	fl.StringVar(&f.spec, "spec", "", "sbx.toml to use instead of the workspace's own")
	fl.StringVar(&f.name, "name", "", "name (default: made up from where it comes from)")
	fl.StringVar(&f.owner, "owner", "", "owner (default: you)")
	fl.StringArrayVar(&f.labels, "label", nil, "label: k=v")
	fl.BoolVar(&keep, "keep", true, "the pool leaves it alone; --keep=false: it may be evicted, and is put to sleep when idle")
	fl.BoolVar(&f.noWait, "no-wait", false, "return as soon as it is accepted")
	cmd.MarkFlagsMutuallyExclusive("template", "from", "adopt", "git")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) create(ctx context.Context, f createFlags) error {
	body, err := f.body()
	if err != nil {
		return err
	}
	e, err := c.open(ctx, toChange)
	if err != nil {
		return err
	}
	defer e.Close()
	sb, err := engine.Create(ctx, e, body)
	if err != nil {
		return err
	}
	if !f.noWait {
		if sb, err = c.untilSettled(ctx, e, sb); err != nil {
			return err
		}
	}
	return c.created(ctx, e, sb)
}

func (f createFlags) body() (engine.CreateSandbox, error) {
	labels, err := parseLabels(f.labels)
	if err != nil {
		return engine.CreateSandbox{}, err
	}
	body := engine.CreateSandbox{Name: f.name, Owner: f.owner, Labels: labels, Keep: !f.drop}
	if body.Owner == "" {
		body.Owner = userName()
	}
	switch {
	case f.from != "":
		body.Origin, err = dirOrigin(engine.FromCopy, f.from)
	case f.adopt != "":
		body.Origin, err = dirOrigin(engine.FromAdopted, f.adopt)
	case f.git != "":
		body.Origin = engine.Origin{Kind: engine.FromGit, Ref: f.git}
	default:
		body.Origin = engine.Origin{Kind: engine.FromTemplate, Ref: f.template}
	}
	if err != nil || f.spec == "" {
		return body, err
	}
	data, err := os.ReadFile(f.spec)
	if err != nil {
		return body, engine.Errorf(engine.Invalid, "--spec: %w", err)
	}
	body.SpecTOML, body.File = string(data), f.spec
	return body, nil
}

func dirOrigin(kind engine.OriginKind, dir string) (engine.Origin, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return engine.Origin{}, err
	}
	return engine.Origin{Kind: kind, Ref: abs}, nil
}

// settleWithin bounds the wait for a sandbox beyond its own start timeout:
// making the workspace, and a heal if it needs one.
const settleWithin = 15 * time.Minute

// untilSettled waits until a sandbox is ready, broken, or known not to start.
func (c *cli) untilSettled(ctx context.Context, e engine.Engine, sb engine.Sandbox) (engine.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	said := ""
	hold := holdWatch{cancel: give}
	defer hold.free()
	err := engine.Watch(ctx, e, func(s *engine.Snapshot, _ *engine.Event) (bool, error) {
		now, ok := s.Sandboxes[sb.ID]
		if !ok {
			return true, engine.Errorf(engine.NotFound, "%s was removed", sb.Name)
		}
		sb = now
		if line := fmt.Sprintf("%s is %s: %s", now.Name, now.Health, now.Reason); c.terminal && now.Reason != "" && line != said {
			said = line
			c.say("%s", line)
		}
		hold.look(now, s.Runs[sb.ID])
		return settled(s, now), nil
	})
	if held := (*engine.Error)(nil); errors.As(context.Cause(ctx), &held) {
		return sb, held
	}
	if ctx.Err() == context.DeadlineExceeded {
		return sb, engine.Errorf(engine.Unavailable, "%s is still %s: %w", sb.Name, sb.Health, context.DeadlineExceeded)
	}
	return sb, err
}

// settled reports whether a sandbox is where it stays unless somebody acts.
func settled(s *engine.Snapshot, sb engine.Sandbox) bool {
	switch sb.Health {
	case engine.Ready, engine.Broken:
		return true
	case engine.Unknown:
		if sb.State == engine.Cold {
			return sb.Wanted != engine.Up
		}
		return sb.State != engine.Warming && sb.Spec.App.Health == "" && s.App(sb.ID).State == engine.ProcessRunning
	}
	return false
}

// created prints a sandbox that somebody made or started, and fails if it
// isn't up.
func (c *cli) created(ctx context.Context, e engine.Engine, sb engine.Sandbox) error {
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	app := snap.App(sb.ID)
	if c.json {
		if err := c.printJSON(sandboxJSON{sb, app.Port, app.PID}); err != nil {
			return err
		}
	} else {
		line := fmt.Sprintf("%s  %s  %s", sb.ID, sb.Name, sb.Health)
		if app.Port != 0 {
			line += fmt.Sprintf("  http://127.0.0.1:%d", app.Port)
		}
		fmt.Fprintln(c.out, cleanLine(line))
	}
	switch {
	case sb.Health == engine.Broken:
		c.say("%s is broken: %s: see sbx logs --healer %s", sb.Name, sb.Reason, sb.Name)
		return exit(exitBroken)
	case sb.State == engine.Cold && sb.Wanted != engine.Up:
		c.say("%s did not start: %s", sb.Name, sb.Reason)
		return exit(exitFailed)
	}
	return nil
}
