//go:build linux

package host_test

import (
	"context"
	"testing"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

// bad are the neighbours: what each does to whoever else is on the host is what
// a probe of another sandbox takes then, against the same probe alone.
var bad = map[string]string{
	"nobody": "echo up; exec sleep 600",
	"cpu":    "echo up; for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait",
	"forks":  "echo up; b() { b | b & }; while :; do b; sleep 0.01; done",
	"memory": "echo up; while :; do python3 -c 'b = bytearray(400 << 20)'; done",
	"output": "echo up; exec yes",
}

// BenchmarkNeighbour is a command in a sandbox (its probe), from start to exit,
// beside a sandbox that takes what it can get of one core, 128 MiB and 64
// processes.
func BenchmarkNeighbour(b *testing.B) {
	for _, name := range []string{"nobody", "cpu", "forks", "memory", "output"} {
		b.Run(name, func(b *testing.B) {
			h := host.New(host.Config{Dir: tempDir(b), Helper: launcher(), Isolation: "bubblewrap"})
			if err := h.Open(context.Background()); err != nil {
				b.Skipf("this machine has no bubblewrap: %v", err)
			}
			b.Cleanup(func() { h.Close() })
			mine, theirs := benchBoxIn(b, h, "sb-mine"), benchBoxIn(b, h, "sb-theirs")
			out := drivertest.NewOutput()
			p, err := theirs.Start(context.Background(), "ps-bad", bounded(bad[name], engine.Limits{CPU: 1, Memory: 128 * engine.MiB, Processes: 64}), keepFirst{out}, nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := out.Await(b.Context(), "up"); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				start(b, mine, driver.Command{Command: engine.Command{Shell: "exec true"}, Profile: driver.ProfileApp}, discard{}, func(driver.Proc) {})
			}
			b.StopTimer()
			if err := p.Kill(context.Background(), 0); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// keepFirst keeps the first that is written: a flood is not to be remembered.
type keepFirst struct{ *drivertest.Output }

func (k keepFirst) Write(p []byte) (int, error) {
	if k.String() == "" {
		return k.Output.Write(p)
	}
	return len(p), nil
}

func benchBoxIn(b *testing.B, h *host.Host, id engine.SandboxID) driver.Box {
	b.Helper()
	box, err := h.Boot(context.Background(), driver.Boot{
		ID: id, Origin: engine.Origin{Kind: engine.FromTemplate},
		Template: func(w driver.FileWriter) error { return w.WriteFile("a", 0o644, nil) },
	})
	if err != nil {
		b.Fatal(err)
	}
	return box
}
