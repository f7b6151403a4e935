//go:build linux

package host_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

// held are the descriptors, goroutines and cgroups that this process has.
func held(t *testing.T) [3]int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	groups, err := filepath.Glob("/sys/fs/cgroup/*/sbx-*/*/ps-leak*")
	must(t, err)
	return [3]int{len(fds), runtime.NumGoroutine(), len(groups)}
}

// TestStartsLeaveNothingBehind is not parallel: it counts what the process has.
func TestStartsLeaveNothingBehind(t *testing.T) {
	for _, isolation := range means {
		t.Run(isolation, func(t *testing.T) {
			requireMeans(t, isolation)
			h := openHost(t, host.Config{Isolation: isolation})
			box := bootBox(t, h)
			cycle := func() {
				for _, shell := range []string{"exit 0", "cat", "sleep 600", "no-such-thing", ""} {
					out := drivertest.NewOutput()
					cmd := driver.Command{Command: engine.Command{Shell: shell}, Profile: driver.ProfileApp, Stdin: shell == "cat"}
					p, err := box.Start(t.Context(), "ps-leak", cmd, out, nil)
					if err != nil {
						continue // the empty one
					}
					if shell == "sleep 600" || shell == "cat" {
						must(t, p.Kill(t.Context(), 0))
					}
					_, err = p.Wait(t.Context())
					must(t, err)
					<-out.Closed()
				}
			}
			cycle()
			must(t, box.Destroy(t.Context())) // waits for what is being given back
			box = bootBox(t, h)
			before := held(t)
			for range 10 {
				cycle()
			}
			must(t, box.Destroy(t.Context()))
			if after := held(t); after[0] > before[0]+2 || after[1] > before[1]+2 || after[2] > 0 {
				t.Errorf("descriptors, goroutines and cgroups were %v and are %v", before, after)
			}
		})
	}
}
