package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx/engine"
)

// troubled is a workspace whose app answers its probes always, and at its
// first start does first, too.
func troubled(tb testing.TB, first, limits string) engine.Origin {
	tb.Helper()
	origin := source(tb)
	app, err := os.ReadFile(filepath.Join(origin.Ref, "app.py"))
	if err != nil {
		tb.Fatal(err)
	}
	text := strings.Replace(string(app), "s.serve_forever()", `if not os.path.exists("again"):
    open("again", "w").close()
    `+first+`
s.serve_forever()`, 1)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(origin.Ref, name), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	write("app.py", text)
	spec, err := os.ReadFile(filepath.Join(origin.Ref, "sbx.toml"))
	if err != nil {
		tb.Fatal(err)
	}
	write("sbx.toml", string(spec)+limits)
	return origin
}

// verdictOn is the last verdict on a signal of a kind. No run may have begun.
func verdictOn(tb testing.TB, e *Engine, id engine.SandboxID, kind engine.SignalKind) engine.Signal {
	tb.Helper()
	var sig engine.Signal
	for rec, err := range e.Heals(tb.Context(), engine.HealQuery{Sandbox: id}) {
		if err != nil {
			tb.Fatal(err)
		}
		switch b := rec.Body.(type) {
		case engine.SignalJudged:
			if b.Signal.Kind == kind {
				sig = b.Signal
			}
		case engine.HealStarted:
			tb.Errorf("a run began: %s", b.Run.Cause)
		}
	}
	return sig
}

func TestTroubleThatARestartEndsIsNoRun(t *testing.T) {
	for _, c := range []struct {
		kind          engine.SignalKind
		first, limits string
		observed      string
	}{
		{engine.StalledSignal, `print("\x1b[36mBundling\u2026\x1b[0m", flush=True)`, "", `the log says "Bundling…" and nothing more for`},
		// Over nine tenths of its limit, and not over it: that would be its end.
		{engine.PressureSignal, `hog = bytearray(os.urandom(1)) * (176 << 20)`, "[limits]\nmemory = \"200MiB\"\n", "of 200MiB"},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			e := open(t, config(t, t.TempDir(), ""))
			sb := ready(t, e, engine.CreateSandbox{Name: "web", Origin: troubled(t, c.first, c.limits), Keep: true})
			until(t, e, sb.ID, "be restarted", func(sb engine.Sandbox) bool {
				return sb.Health == engine.Starting && strings.HasPrefix(sb.Reason, "restarted: "+string(c.kind))
			})
			until(t, e, sb.ID, "be ready again", func(sb engine.Sandbox) bool { return sb.Health == engine.Ready })
			var sig engine.Signal
			for range 100 { // how it went is added to the verdict a moment later
				if sig = verdictOn(t, e, sb.ID, c.kind); sig.Verdict != nil && strings.Contains(sig.Verdict.Reason, "; restarted: ready") {
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			if sig.Verdict == nil || sig.Verdict.Action != engine.Restart || !strings.Contains(sig.Observed, c.observed) ||
				!strings.Contains(sig.Verdict.Reason, "; restarted: ready") {
				t.Errorf("signal %+v, verdict %+v", sig, sig.Verdict)
			}
			app, err := e.processOf(t.Context(), sb.ID, engine.AppName)
			if err != nil || app.Starts != 2 {
				t.Errorf("started %d times: %v", app.Starts, err)
			}
		})
	}
}
