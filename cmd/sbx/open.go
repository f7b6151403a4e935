package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/host"
	"sbx/engine/local"
	"sbx/store"
)

// need is what a command needs of an engine when none runs (SPEC §1).
type need int

const (
	// toLook: the store is opened read-only, nothing is started.
	toLook need = iota
	// toChange: an engine is started in the background and attached to.
	toChange
	// toEmbed: the engine runs inside the command.
	toEmbed
)

// open gives the engine that this command is to speak to: the remote one that
// was named, else the one that owns the data directory, else what the command
// needs.
func (c *cli) open(ctx context.Context, n need) (engine.Engine, error) {
	if c.engineURL != "" {
		if c.embed {
			return nil, usagef("--embed and --engine exclude each other")
		}
		return client.Dial(ctx, client.Config{URL: c.engineURL, Token: c.remoteToken()})
	}
	e, err := c.dialSocket(ctx)
	if err == nil {
		if c.embed {
			c.say("an engine owns %s already: attached to it", c.cfg.home)
		}
		return e, nil
	}
	if !errors.Is(err, engine.Unavailable) {
		return nil, err
	}
	switch {
	case c.embed || n == toEmbed:
		return c.embedEngine(ctx, n)
	case n == toLook:
		return c.openToLook(ctx)
	}
	return c.startDetached(ctx)
}

// remoteToken is the token for a remote engine: flag, environment, or the one
// that an engine of this data directory left for its own user.
func (c *cli) remoteToken() string {
	if c.token != "" {
		return c.token
	}
	b, err := os.ReadFile(tokenFile(c.cfg.home))
	if err != nil {
		return "" // the engine will say that it wants one
	}
	return strings.TrimSpace(string(b))
}

func tokenFile(home string) string { return filepath.Join(home, "token") }

func (c *cli) dialSocket(ctx context.Context) (engine.Engine, error) {
	path := socketPath(c.cfg.home)
	if _, err := os.Stat(path); err != nil {
		return nil, engine.Errorf(engine.Unavailable, "no engine is running on %s", c.cfg.home)
	}
	if err := checkSocketDir(c.cfg.home); err != nil {
		return nil, err
	}
	e, err := client.Dial(ctx, client.Config{Socket: path})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// openToLook opens the store read-only. An empty data directory is an empty
// fleet.
func (c *cli) openToLook(ctx context.Context) (engine.Engine, error) {
	return local.Look(ctx, c.cfg.home, version, healPolicy(c.cfg), func(ctx context.Context) []driver.KeptProcess {
		return host.Kept(ctx, c.cfg.home)
	})
}

// embedEngine runs the engine in this process: a dashboard leaves its sandboxes
// running, a command with --embed stops what it started. Losing the race for the data
// directory means attaching to the winner.
func (c *cli) embedEngine(ctx context.Context, n need) (engine.Engine, error) {
	e, err := c.newEngine(ctx, c.quietLog(), stay(n == toEmbed))
	var owned *store.OwnedError
	if errors.As(err, &owned) {
		return c.dialOwner(ctx, owned)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (c *cli) dialOwner(ctx context.Context, owned *store.OwnedError) (engine.Engine, error) {
	e, err := c.dialSocket(ctx)
	if err != nil {
		return nil, engine.Errorf(engine.Unavailable, "process %d owns %s and does not answer: %w", owned.PID, owned.Dir, err).
			WithHint("is it still starting? see %s", engineLog(c.cfg.home))
	}
	return e, nil
}
