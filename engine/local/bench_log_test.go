package local

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sbx/engine"
)

// twoMillion writes 2,000,000 lines of 100 bytes, as fast as a pipe takes them.
var twoMillion = "yes " + strings.Repeat("x", 99) + " | head -n 2000000"

// BenchmarkTwoMillionLines is the writer in a sandbox: through the pipe and the
// pump into the log, up to its recorded exit.
func BenchmarkTwoMillionLines(b *testing.B) {
	e, sb := benchApp(b, "none")
	for b.Loop() {
		pos := position(b, e)
		r, err := e.Do(b.Context(), engine.NewAction(engine.Spawn{Sandbox: sb.ID, Command: engine.Command{Shell: twoMillion}}))
		if err != nil {
			b.Fatal(err)
		}
		waitOver(b, e, pos, r.Process)
		first, end, err := e.logs.Bounds(r.Process, engine.Stdout)
		if err != nil || end != 200_000_000 {
			b.Fatalf("the log has %d to %d, %v", first, end, err)
		}
	}
}

// BenchmarkFloorTwoMillionLines is the same writer into a plain file.
func BenchmarkFloorTwoMillionLines(b *testing.B) {
	file := filepath.Join(b.TempDir(), "plain")
	for b.Loop() {
		if err := exec.Command("/bin/sh", "-c", twoMillion+" > "+file).Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func position(b *testing.B, e *Engine) engine.Position {
	b.Helper()
	pos, err := e.store.Position(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return pos
}

func waitOver(b *testing.B, e *Engine, pos engine.Position, id engine.ProcessID) {
	b.Helper()
	for ev, err := range e.Events(b.Context(), pos) {
		if err != nil {
			b.Fatal(err)
		}
		if p, ok := ev.Body.(engine.ProcessChanged); ok && p.Process.ID == id && p.Process.State.Over() {
			if p.Process.Exit == nil || p.Process.Exit.Code != 0 {
				b.Fatalf("it ended with %+v", p.Process.Exit)
			}
			return
		}
	}
}
