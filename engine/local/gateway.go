package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/agent/claude"
	"sbx/engine/gateway"
	"sbx/store"
)

// GatewayConfig is the gateway of an engine. Sandboxes reach it over loopback,
// as they share the host's network; a key is what tells them apart.
type GatewayConfig struct {
	// Listen is its address; "": there is no gateway. With port 0 it takes the
	// one that it had before, if it can: what outlives an engine finds the next.
	Listen            string
	Anthropic, OpenAI gateway.Upstream
	// TokensPerDay and DollarsPerDay bound each sandbox, by the UTC day. 0: no bound.
	TokensPerDay  int64
	DollarsPerDay float64
}

// gate is the gateway of a running engine; nil is none.
type gate struct {
	e    *Engine
	gw   *gateway.Gateway
	addr string

	mu      sync.Mutex
	secrets map[engine.SandboxID]string // of the keys that were issued for their processes
}

// autoKeys is how many keys of a sandbox's own processes are valid at once: one
// for each engine whose processes may still live.
const autoKeys = 4

// openGateway listens, if there is to be a gateway.
func (e *Engine) openGateway() error {
	cfg := e.cfg.Gateway
	if cfg.Listen == "" {
		return nil
	}
	ln, err := e.listenGateway(cfg.Listen)
	if err != nil {
		return engine.Errorf(engine.Unavailable, "gateway: %w", err).WithHint("set gateway.listen to a free address, such as 127.0.0.1:0")
	}
	g := &gate{e: e, addr: ln.Addr().String(), secrets: map[engine.SandboxID]string{}}
	g.gw = &gateway.Gateway{
		Anthropic: cfg.Anthropic, OpenAI: cfg.OpenAI, Find: g.find, Left: g.left, Spend: g.spend, Report: g.report, Log: e.cfg.Log,
	}
	srv := &http.Server{
		Handler: g.gw.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	e.gate = g
	e.start("gateway", 3*time.Second, component{"gateway", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // streams end with the engine
		defer stop()
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return ctx.Err()
	}}, component{"keys", g.watch})
	return nil
}

// listenGateway listens where it did before, if it may choose.
func (e *Engine) listenGateway(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s is not a loopback address: virtual keys would cross a network in clear", addr)
	}
	file := filepath.Join(e.cfg.Dir, "gateway.addr")
	if port == "0" {
		if before, err := os.ReadFile(file); err == nil {
			if ln, err := net.Listen("tcp", strings.TrimSpace(string(before))); err == nil {
				return ln, nil
			}
		}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(ln.Addr().String()+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// watch ends the requests of keys that were revoked and of sandboxes that are
// gone.
func (g *gate) watch(ctx context.Context) error {
	pos, err := g.e.store.Position(ctx)
	if err != nil {
		return err
	}
	for ev, err := range g.e.store.Events(ctx, pos.Seq) {
		if err != nil {
			return err
		}
		switch b := ev.Body.(type) {
		case engine.KeyChanged:
			if !b.Key.Revoked.IsZero() {
				g.gw.Cut(b.Key.Sandbox, b.Key.ID, "the key was revoked")
				g.forget(b.Key)
			}
		case engine.SandboxRemoved:
			g.gw.Cut(b.ID, "", "the sandbox was removed")
			g.mu.Lock()
			delete(g.secrets, b.ID)
			g.mu.Unlock()
		}
	}
	return ctx.Err()
}

// forget has the next process of a sandbox get another key, if its own was
// revoked.
func (g *gate) forget(k engine.Key) {
	if k.Auto {
		g.mu.Lock()
		delete(g.secrets, k.Sandbox)
		g.mu.Unlock()
	}
}

// find is the valid key with a hash.
func (g *gate) find(ctx context.Context, hash []byte) (k engine.Key, err error) {
	err = g.e.store.View(ctx, func(tx *store.Tx) error {
		found, ok, err := tx.KeyByHash(hash)
		if err == nil && (!ok || !found.Valid(tx.Now)) {
			err = engine.Errorf(engine.Unauthorized, "no valid key")
		}
		k = found
		return err
	})
	return k, err
}

// activeEvery is how often a sandbox's requests are written down as activity.
const activeEvery = 10 * time.Second

// left is what the day's budget has left for a sandbox.
func (g *gate) left(ctx context.Context, k engine.Key) (tokens int64, err error) {
	cfg := g.e.cfg.Gateway
	var spent error
	err = g.e.store.Update(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(k.Sandbox)
		if err != nil {
			return err
		}
		if tx.Now.Sub(sb.Active) > activeEvery {
			sb.Active = tx.Now
			if err := tx.PutSandbox(&sb); err != nil {
				return err
			}
		}
		u, err := tx.UseToday(k.Sandbox)
		if err != nil {
			return err
		}
		tokens = 1 << 62
		if cfg.TokensPerDay > 0 {
			tokens = cfg.TokensPerDay - u.Spent.Tokens()
		}
		if tokens > 0 && (cfg.DollarsPerDay <= 0 || u.Spent.Dollars < cfg.DollarsPerDay) {
			return nil
		}
		midnight := tx.Now.Truncate(24 * time.Hour).Add(24 * time.Hour)
		spent = engine.Errorf(engine.Exhausted, "the sandbox has used its budget of today: %d tokens, $%.2f", u.Spent.Tokens(), u.Spent.Dollars).
			After(midnight.Sub(tx.Now)).WithHint("raise gateway.tokens_per_day or gateway.dollars_per_day")
		return tx.UseKey(k, engine.KeyUse{Refused: 1})
	})
	return tokens, errors.Join(err, spent)
}

func (g *gate) spend(ctx context.Context, k engine.Key, model string, s engine.Spent) error {
	s.Dollars = claude.Cost(model, s)
	err := g.e.store.Update(ctx, func(tx *store.Tx) error { return tx.UseKey(k, engine.KeyUse{Requests: 1, Spent: s}) })
	if engine.AsCode(err) == engine.NotFound {
		return nil // removed meanwhile
	}
	return err
}

// report records what a healer inside of a sandbox says. It is judged where it
// is raised: the engine's own probes decide.
func (g *gate) report(ctx context.Context, k engine.Key, r gateway.Report) error {
	return g.e.store.Update(ctx, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(k.Sandbox)
		if err != nil {
			return err
		}
		tx.By = engine.Actor{Kind: engine.ActorAgent, Name: "in " + sb.Name, From: "gateway"}
		words := "the healer inside says: " + r.Status
		if r.Error != "" {
			words += ": " + strings.Join(strings.Fields(g.e.cfg.Redact(r.Error)), " ")
		}
		sig, err := tx.RaiseSignal(engine.Signal{Sandbox: sb.ID, Kind: engine.ReportSignal, Observed: words, At: tx.Now})
		if err != nil {
			return err
		}
		sig.Verdict = &engine.Verdict{Action: engine.Ignore, Reason: "recorded; the engine's own probes decide", At: tx.Now}
		return tx.JudgeSignal(sig)
	})
}

// env is what a sandbox's processes get to reach the gateway.
func (g *gate) env(ctx context.Context, sb engine.Sandbox) (map[string]string, error) {
	if g == nil {
		return nil, nil
	}
	secret, err := g.secretOf(ctx, sb.ID)
	if err != nil {
		return nil, fmt.Errorf("issue a key for the gateway: %w", err)
	}
	base := "http://" + g.addr
	env := map[string]string{"SBX_HEAL_URL": base + "/api/sandbox/heal", "SBX_KEY": secret}
	if g.e.cfg.Gateway.Anthropic.URL != "" {
		env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_API_KEY"] = base+gateway.Prefix+"anthropic", secret
	}
	if g.e.cfg.Gateway.OpenAI.URL != "" {
		env["OPENAI_BASE_URL"], env["OPENAI_API_KEY"] = base+gateway.Prefix+"openai/v1", secret
	}
	return env, nil
}

// secretOf is the key of a sandbox's own processes: one for as long as this
// engine runs. Those of earlier engines stay valid for what outlived them.
func (g *gate) secretOf(ctx context.Context, id engine.SandboxID) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.secrets[id]; s != "" {
		return s, nil
	}
	secret, hash := newSecret()
	err := g.e.store.Update(ctx, func(tx *store.Tx) error {
		all, err := tx.Keys(id)
		if err != nil {
			return err
		}
		valid := 0
		for i := len(all) - 1; i >= 0; i-- {
			k := all[i]
			if !k.Auto || !k.Valid(tx.Now) {
				continue
			}
			if valid++; valid >= autoKeys {
				k.Revoked = tx.Now
				if err := tx.PutKey(k, nil); err != nil {
					return err
				}
			}
		}
		return tx.PutKey(engine.Key{
			ID: engine.KeyID(engine.NewID(engine.KeyPrefix)), Sandbox: id, Name: "its own processes", Auto: true, By: engine.System, Created: tx.Now,
		}, hash)
	})
	if err == nil {
		g.secrets[id] = secret
	}
	return secret, err
}
