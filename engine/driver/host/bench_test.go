//go:build linux

package host_test

import (
	"context"
	"io"
	"os/exec"
	"testing"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/host"
)

// BenchmarkTrueByOSExec is the floor: /bin/true, unconfined.
func BenchmarkTrueByOSExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTrue is /bin/true from Start to exit under each means.
func BenchmarkTrue(b *testing.B) {
	for _, isolation := range means {
		for _, profile := range []driver.Profile{driver.ProfileApp, driver.ProfileAgent} {
			if isolation == "none" && profile == driver.ProfileAgent {
				continue
			}
			b.Run(isolation+"/"+string(profile), func(b *testing.B) {
				box := benchBox(b, isolation)
				cmd := driver.Command{Command: engine.Command{Shell: "exec true"}, Profile: profile, Protected: []string{"src/engine"}}
				for b.Loop() {
					start(b, box, cmd, discard{}, func(p driver.Proc) {})
				}
			})
		}
	}
}

// BenchmarkFirstLine is from Start to the first line of output.
func BenchmarkFirstLine(b *testing.B) {
	for _, isolation := range means {
		b.Run(isolation, func(b *testing.B) {
			box := benchBox(b, isolation)
			for b.Loop() {
				r, w := io.Pipe()
				start(b, box, driver.Command{Command: engine.Command{Shell: "echo up; exec sleep 60"}, Profile: driver.ProfileApp}, w, func(p driver.Proc) {
					var line [3]byte
					if _, err := io.ReadFull(r, line[:]); err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					if err := p.Kill(context.Background(), 0); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				})
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func start(b *testing.B, box driver.Box, cmd driver.Command, out io.WriteCloser, then func(driver.Proc)) {
	p, err := box.Start(context.Background(), engine.ProcessID(engine.NewID(engine.ProcessPrefix)), cmd, out, nil)
	if err != nil {
		b.Fatal(err)
	}
	then(p)
	if _, err := p.Wait(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func benchBox(b *testing.B, isolation string) driver.Box {
	h := host.New(host.Config{Dir: tempDir(b), Helper: launcher(), Isolation: isolation})
	if err := h.Open(context.Background()); err != nil {
		b.Skipf("this machine has no %s: %v", isolation, err)
	}
	b.Cleanup(func() { h.Close() })
	box, err := h.Boot(context.Background(), driver.Boot{
		ID: "sb-bench", Origin: engine.Origin{Kind: engine.FromTemplate},
		Template: func(w driver.FileWriter) error { return w.WriteFile("src/engine/a", 0o644, nil) },
	})
	if err != nil {
		b.Fatal(err)
	}
	return box
}
