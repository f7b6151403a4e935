// Package local is the engine in this process: it wires store, driver,
// supervisor, pool, healer and detectors together, and is an engine.Engine.
//
// The one rule: it decides nothing of its own. An action is written down here;
// what it leads to is done by whoever watches the rows.
package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/archive"
	"sbx/engine/detect"
	"sbx/engine/driver"
	"sbx/engine/healer"
	"sbx/engine/logs"
	"sbx/engine/pool"
	"sbx/engine/process"
	"sbx/store"
)

// Config is what an engine is made of. Policies that are zero are the defaults.
type Config struct {
	Dir     string // the data directory
	Version string
	// Actor is who acts through this engine when an action names nobody: the
	// person or script that embedded it.
	Actor engine.Actor
	// Driver is this engine's own: Close closes it. OpenDriver opens it once the
	// engine owns the directory, and not before: an engine that starts kills
	// what nobody's box has started, another's trial of its confinement too. nil:
	// it is open.
	Driver     driver.Driver
	OpenDriver func(context.Context) error
	// Model heals; nil for none, and then NoModel says why.
	Model   agent.Model
	NoModel string
	// Unconfined lets the agent work where nothing confines it.
	Unconfined bool
	// Templates is the directory of the user's own templates.
	Templates string
	// Keeper keeps archives; nil, or without a Dir: in Dir/archives.
	Keeper *archive.Keeper
	// MaxUpload is how many bytes one upload may bring; 0: DefaultMaxUpload.
	MaxUpload int64
	// MaxSandboxes is the pool's capacity, live and cold; 0: Pool.MaxSandboxes.
	MaxSandboxes int
	Store        store.Options
	Process      process.Policy
	Health       detect.HealthPolicy
	Stall        detect.StallPolicy
	Pressure     detect.PressurePolicy
	Wake         detect.WakePolicy
	Heal         healer.Policy
	Pool         pool.Policy
	// Archives keep workspaces; nil: nothing does.
	Archives pool.Archives
	// Gateway is where sandboxes reach model providers; its zero value is none.
	Gateway GatewayConfig
	// Notify is who is told of trouble; its zero value tells nobody.
	Notify NotifyConfig
	// DropIdle closes idle connections to the world after the host slept: they
	// lead nowhere any more. nil: there are none to close.
	DropIdle func()
	// Redact hides every secret that the engine knows.
	Redact func(string) string
	// Leave: what can outlive this engine does when it is closed; else only what
	// another engine has started.
	Leave bool
	Log   *slog.Logger
}

// Engine is an engine in this process.
type Engine struct {
	cfg    Config
	store  *store.Store
	logs   *logs.Store
	procs  *process.Supervisor
	pool   *pool.Pool
	about  engine.About
	gauges gauges
	// inherited are the processes that outlived the engine before this one.
	inherited []engine.ProcessID
	// metrics are what the journal told since the start.
	metrics metrics
	// changing: actions on the files of one sandbox take turns.
	changing turns
	// terminals are those with viewers.
	terminals hubs
	gate      *gate // nil: no gateway
	// keeper keeps the archives.
	keeper *archive.Keeper
	// notifier tells others of trouble; nil: nobody is told.
	notifier *notifier

	closing sync.Once
	closed  error
	stages  stages
}

var _ engine.Engine = (*Engine)(nil)

// Open starts an engine over the data directory. Where another process owns
// the directory, the error is a *store.OwnedError.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.MaxSandboxes != 0 {
		cfg.Pool.MaxSandboxes = cfg.MaxSandboxes
	}
	cfg.Pool = cfg.Pool.Filled()
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	cfg.Redact = hidingKeys(cfg.Redact)
	e := &Engine{cfg: cfg}
	if err := e.arrive(ctx); err != nil {
		leaveCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
		defer cancel()
		if err2 := e.stages.leaveAll(leaveCtx); err2 != nil {
			cfg.Log.Error("leaving after a start that failed", "err", err2)
		}
		return nil, err
	}
	return e, nil
}

// leaveWithin bounds the whole of leaving (DESIGN §7).
const leaveWithin = 15 * time.Second

func (e *Engine) arrive(ctx context.Context) error {
	// The driver came with the config: it leaves last but for nothing.
	e.stages.push("driver", time.Second, func(context.Context) error { return e.cfg.Driver.Close() })
	st, err := store.Open(ctx, e.cfg.Dir, e.cfg.Store)
	if err != nil {
		return err
	}
	e.store = st
	e.stages.push("store", 3*time.Second, func(context.Context) error { return st.Close() })
	if e.cfg.OpenDriver != nil {
		if err := e.cfg.OpenDriver(ctx); err != nil {
			return err
		}
	}

	ls, err := logs.Open(filepath.Join(e.cfg.Dir, "logs"), logs.Options{})
	if err != nil {
		return fmt.Errorf("open logs: %w", err)
	}
	e.logs = ls
	e.stages.push("logs", time.Second, func(context.Context) error { return ls.Close() })

	if err := e.openArchives(); err != nil {
		return err
	}
	e.about = e.sayAbout()
	if err := e.recover(ctx); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	e.stages.push("park", 2*time.Second, e.park)
	if err := e.openGateway(); err != nil {
		return err
	}
	e.startParts()
	return nil
}

// startParts starts what runs, in the order of arriving.
func (e *Engine) startParts() {
	e.procs = &process.Supervisor{
		Store: e.store, Logs: e.logs, Box: e.cfg.Driver.Attach, Policy: e.cfg.Process, Log: e.cfg.Log,
		Env:       e.gate.env,
		Inherited: e.inherited, Leave: e.cfg.Leave,
	}
	// After the processes: whoever watches one end sees it.
	e.stages.push("terminals", 3*time.Second, e.terminals.close)
	e.start("processes", 10*time.Second, component{"supervisor", e.procs.Run})

	e.pool = &pool.Pool{
		Store: e.store, Driver: e.cfg.Driver, Template: e.unpack, Forget: e.logs.Remove, EndLog: e.logs.End,
		NewWarm: e.newWarm, Archives: e.poolArchives(), Policy: e.cfg.Pool, Log: e.cfg.Log,
	}
	e.start("pool", 5*time.Second, component{"pool", e.pool.Run})

	e.start("archives", 2*time.Second, component{"archives", e.keeper.Run})
	e.startNotify()
	stall := e.stall()
	hl := e.healer(stall)
	e.start("healer", 5*time.Second, component{"healer", hl.Run})
	e.start("detectors", 2*time.Second, append(e.detectors(stall), component{"pruning", e.prune}, component{"metrics", e.count})...)
}

func (e *Engine) sayAbout() engine.About {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // it is shown, nothing depends on it
	}
	about := engine.About{
		Version: e.cfg.Version, Protocol: engine.Protocol, Host: host, PID: os.Getpid(),
		Started: time.Now().UTC(), Isolation: e.cfg.Driver.Isolation(), NoModel: e.cfg.NoModel,
	}
	if e.cfg.Model != nil {
		about.Model = e.cfg.Model.Name()
	}
	return about
}

// Close stops the engine, and its processes: those that [Config.Leave] leaves
// go on, and the next engine takes them up; the others it starts again. Closing
// twice does nothing more.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
		defer cancel()
		e.closed = e.stages.leaveAll(ctx)
	})
	return e.closed
}

// prune keeps the journal a ring and the history ninety days (DESIGN §4).
func (e *Engine) prune(ctx context.Context) error {
	const (
		every       = 10 * time.Minute
		keepEvents  = 100_000
		keepHistory = 90 * 24 * time.Hour
	)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := e.store.Prune(ctx, keepEvents, keepHistory); err != nil {
				return fmt.Errorf("prune: %w", err)
			}
		}
	}
}
