package local

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/detect"
	"sbx/engine/driver/host"
	"sbx/engine/healer"
	"sbx/engine/pool"
	"sbx/engine/process"
	"sbx/engine/shim"
)

// TestMain lets the test binary be the launcher that the host driver runs
// inside of sandboxes, and the shim that keeps processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "confine":
			os.Exit(host.ConfineMain(os.Args[2:]))
		case "shim":
			os.Exit(shim.Main(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// scale speeds every interval up.
const scale = 0.05

// config is an engine's over dir with the real driver.
func config(tb testing.TB, dir, isolation string) Config {
	tb.Helper()
	return configWith(tb, dir, isolation, nil)
}

func configWith(tb testing.TB, dir, isolation string, shims *host.Shims) Config {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	drv := host.New(host.Config{Dir: dir, Helper: []string{exe}, Isolation: isolation, Shims: shims, Log: log})
	if err := drv.Open(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	health := detect.HealthPolicy{Timeout: 5 * time.Second}
	health.Scale = scale
	return Config{
		Dir: dir, Version: "test", Actor: engine.Actor{Kind: engine.ActorScript, Name: "tester"},
		Driver: drv, NoModel: "no model in tests", Process: process.DefaultPolicy(),
		Health: health, Stall: detect.StallPolicy{Scale: scale}, Pressure: detect.PressurePolicy{Scale: scale},
		Wake: detect.WakePolicy{Scale: scale}, Heal: healer.Policy{Scale: scale}, Pool: pool.DefaultPolicy(), Log: log,
	}
}

// open opens an engine that leaves with the test.
func open(tb testing.TB, cfg Config) *Engine {
	tb.Helper()
	e, err := Open(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// source is a workspace whose app listens on $PORT, answers GET /health and
// prints "started" at each start.
func source(tb testing.TB) engine.Origin {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "app")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	files := map[string]string{
		"sbx.toml": "[app]\ncommand = \"exec python3 app.py\"\nhealth = \"/health\"\nrestart_delay = \"0s\"\n",
		"app.py": `import http.server, os
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), H)
print("started", flush=True)
s.serve_forever()
`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return engine.Origin{Kind: engine.FromCopy, Ref: dir}
}

// ready makes a sandbox and waits until it is ready.
func ready(tb testing.TB, e engine.Engine, body engine.CreateSandbox) engine.Sandbox {
	tb.Helper()
	sb, err := engine.Create(tb.Context(), e, body)
	if err != nil {
		tb.Fatal(err)
	}
	return until(tb, e, sb.ID, "be ready", func(sb engine.Sandbox) bool { return sb.Health == engine.Ready })
}

func until(tb testing.TB, e engine.Engine, id engine.SandboxID, what string, cond func(engine.Sandbox) bool) engine.Sandbox {
	tb.Helper()
	var last engine.Sandbox
	err := engine.Until(tb.Context(), e, time.Minute, func(s *engine.Snapshot) bool {
		last = s.Sandboxes[id]
		return cond(last)
	})
	if err != nil {
		tb.Fatalf("%s did not %s: %v; it is %s, %s: %s", last.Name, what, err, last.State, last.Health, last.Reason)
	}
	return last
}
