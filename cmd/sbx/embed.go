package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/agent/claude"
	"sbx/engine/detect"
	"sbx/engine/driver/host"
	"sbx/engine/gateway"
	"sbx/engine/healer"
	"sbx/engine/local"
	"sbx/engine/notify"
	"sbx/engine/process"
	"sbx/engine/redact"
	"sbx/store"
)

// stay is what becomes of an engine's processes when it ends.
type stay bool

const (
	stopsIts  stay = false // what it started is stopped
	leavesIts stay = true  // they go on, for the next engine
)

// newEngine makes the engine of the data directory, with everything that the
// settings say.
func (c *cli) newEngine(ctx context.Context, log *slog.Logger, stay stay) (*local.Engine, error) {
	cfg := c.cfg
	if err := makeHome(cfg.home); err != nil {
		return nil, err
	}
	model, err := newModel(cfg)
	if err != nil {
		return nil, err
	}
	keeper, err := newKeeper(cfg)
	if err != nil {
		return nil, err
	}
	drv, err := newDriver(cfg, log)
	if err != nil {
		return nil, err
	}
	e, err := local.Open(ctx, local.Config{
		Dir:          cfg.home,
		Version:      version,
		Actor:        c.actor(),
		Driver:       drv,
		OpenDriver:   drv.Open,
		Model:        model,
		NoModel:      cfg.noModel(),
		Unconfined:   cfg.healUnconfined,
		Templates:    filepath.Join(configDir(c), "templates"),
		MaxSandboxes: cfg.maxSandboxes,
		MaxUpload:    cfg.maxUpload,
		Keeper:       keeper,
		Store:        store.Options{Sync: cfg.sync},
		Process:      processPolicy(cfg),
		Health:       healthPolicy(cfg),
		Stall:        detect.StallPolicy{Scale: cfg.scale},
		Pressure:     detect.PressurePolicy{Scale: cfg.scale},
		Wake:         detect.WakePolicy{Scale: cfg.scale},
		Heal:         healPolicy(cfg),
		Pool:         poolPolicy(cfg),
		Gateway:      gatewayConfig(cfg),
		Notify: local.NotifyConfig{
			Sender: notify.Sender{Webhook: cfg.notifyWebhook, Secret: cfg.notifySecret, Command: cfg.notifyCommand, Engine: hostName()},
			On:     cfg.notifyOn, Scale: cfg.scale,
		},
		DropIdle: dropIdle(model),
		Redact:   redact.New(cfg.secrets()...).String,
		Leave:    bool(stay),
		Log:      log,
	})
	if err != nil {
		return nil, err // what had arrived has left again, the driver too
	}
	return e, nil
}

// makeHome makes the data directory, and refuses one that can't be written.
func makeHome(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		if err = unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			err = fmt.Errorf("%s: %w", dir, err)
		}
	}
	if err != nil {
		return engine.Errorf(engine.Internal, "data directory: %w", err).WithHint("set SBX_HOME to a directory that you may write")
	}
	return nil
}

// newDriver is this host's driver, to be opened.
func newDriver(cfg *config, log *slog.Logger) (*host.Host, error) {
	mode := cfg.isolation
	if mode == "auto" {
		mode = ""
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own binary: %w", err)
	}
	return host.New(host.Config{
		Dir:       cfg.home,
		Helper:    []string{exe},
		Isolation: mode,
		Require:   cfg.require,
		Protect:   true,
		AllowRoot: cfg.allowRoot,
		PortRange: [2]int{cfg.portFrom, cfg.portTo},
		Shims: &host.Shims{
			Args: []string{"shim"}, Logs: filepath.Join(cfg.home, "logs"), Per: cfg.shimSandboxes, Idle: cfg.shimIdle,
		},
		Log: log,
	}), nil
}

// newModel is the model that heals, or nil where none is configured.
func newModel(cfg *config) (agent.Model, error) {
	if cfg.noModel() != "" {
		return nil, nil
	}
	m, err := claude.New(claude.Config{
		BaseURL: cfg.modelURL, Key: cfg.modelKey, AuthToken: cfg.modelToken, Model: cfg.modelName,
		IdleTimeout: cfg.modelIdle, TurnTimeout: cfg.modelTurn,
	})
	if err != nil {
		return nil, engine.Errorf(engine.Invalid, "model: %w", err).WithHint("see model.* in: sbx config")
	}
	if cfg.modelBreaker == 0 {
		return m, nil
	}
	return &agent.Breaker{Model: m, After: cfg.modelBreaker}, nil
}

// dropIdle closes the model's connections that wait for a next request.
func dropIdle(m agent.Model) func() {
	c, ok := m.(io.Closer)
	if !ok {
		return nil
	}
	return func() { _ = c.Close() } // they are idle: nothing is lost with them
}

func processPolicy(cfg *config) process.Policy {
	p := process.DefaultPolicy()
	p.FirstPort, p.LastPort = cfg.portFrom, cfg.portTo
	return p
}

func healthPolicy(cfg *config) detect.HealthPolicy {
	p := detect.HealthPolicy{Timeout: 5 * time.Second}
	p.Scale = cfg.scale
	return p
}

func healPolicy(cfg *config) healer.Policy {
	p := healer.Policy{Scale: cfg.scale, MaxModelRuns: cfg.maxModelRuns, Retry: cfg.modelRetry}
	run := endless(cfg.budgets.run)
	p.Attempts, p.RunSteps, p.Minutes, p.Tokens, p.Dollars = run.Attempts, run.Steps, run.Time.D(), run.Tokens, run.Dollars
	p.SandboxDay, p.FleetDay = cfg.budgets.sandbox, cfg.budgets.fleet
	if p.Retry == 0 {
		p.Retry = 1 // zero would be the default
	}
	p.IncidentSize = cfg.incidentSize
	return p
}

// hostName is this host's name, for those who are told of trouble here.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "" // it is left out
	}
	return name
}

func gatewayConfig(cfg *config) local.GatewayConfig {
	if !cfg.gatewayOn {
		return local.GatewayConfig{}
	}
	g := local.GatewayConfig{
		Listen: cfg.gatewayListen, TokensPerDay: int64(cfg.gatewayTokens), DollarsPerDay: float64(cfg.gatewayDollars),
	}
	if cfg.noModel() == "" {
		g.Anthropic = gateway.Upstream{URL: cmp.Or(cfg.modelURL, "https://api.anthropic.com"), Key: cfg.modelKey, Token: cfg.modelToken}
		if cfg.modelKey != "" {
			g.Anthropic.Token = "" // the key counts, as it does for the healer
		}
	}
	if cfg.openaiKey != "" {
		g.OpenAI = gateway.Upstream{URL: cfg.openaiURL, Key: cfg.openaiKey}
	}
	return g
}

// actor is who acts by this command.
func (c *cli) actor() engine.Actor {
	kind := engine.ActorScript
	if c.terminal {
		kind = engine.ActorOperator
	}
	return engine.Actor{Kind: kind, Name: userName(), From: "embedded"}
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf("uid %d", os.Getuid())
	}
	return u.Username
}

func engineLog(home string) string { return filepath.Join(home, "engine.log") }

// quietLog logs to the engine's log file: an embedded engine must not write
// over the screen of the command that it is in.
func (c *cli) quietLog() *slog.Logger {
	if err := os.MkdirAll(c.cfg.home, 0o700); err != nil {
		return slog.New(slog.DiscardHandler) // opening the engine will say it
	}
	f, err := os.OpenFile(engineLog(c.cfg.home), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(f, nil))
}
