//go:build linux

package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

// eachWay runs a test under every means, with cgroups and without.
func eachWay(t *testing.T, test func(t *testing.T, h *host.Host)) {
	each(t, means, func(t *testing.T, isolation string) {
		for _, without := range []bool{false, true} {
			t.Run(fmt.Sprintf("cgroups=%t", !without), func(t *testing.T) {
				test(t, openHost(t, host.Config{Isolation: isolation, NoCgroups: without}))
			})
		}
	})
}

func bounded(shell string, l engine.Limits) driver.Command {
	cmd := app(shell)
	cmd.Limits = &l
	return cmd
}

// await is a context for what must happen, however busy the machine is.
func await(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// proves that a neighbour still works.
func proves(t *testing.T, box driver.Box) {
	t.Helper()
	if out, exit := runIn(t, box, app("echo as ever")); out != "as ever\n" || exit.Code != 0 {
		t.Errorf("a neighbour says %q, %+v", out, exit)
	}
}

func TestAMemoryHogIsEndedAndSaysSo(t *testing.T) {
	eachWay(t, func(t *testing.T, h *host.Host) {
		box, other := bootBox(t, h), bootBox(t, h)
		hog := bounded("python3 -c 'b = bytearray(400 << 20); print(\"got it\")'", engine.Limits{Memory: 64 * engine.MiB})
		out, exit := runIn(t, box, hog)
		if strings.Contains(out, "got it") || exit.Code == 0 {
			t.Fatalf("it got six times its limit: %q, %+v", out, exit)
		}
		if strings.HasPrefix(h.Isolation().Limits.Memory, "cgroup") {
			if !exit.OOM || exit.Code != 137 || exit.String() != "out of memory" {
				t.Errorf("it ended as %+v, %s", exit, exit)
			}
		} else if exit.OOM || !strings.Contains(out, "MemoryError") {
			t.Errorf("without groups the process itself is refused: %q, %+v", out, exit)
		}
		// A crash is none, also where somebody ran out before.
		if _, exit := runIn(t, box, bounded("exit 3", engine.Limits{Memory: 64 * engine.MiB})); exit.OOM || exit.Code != 3 {
			t.Errorf("a crash is told as %+v", exit)
		}
		proves(t, other)
	})
}

// forks forks until it is refused, says how often it could, and stays.
const forks = `python3 -c '
import os, time
n = 0
try:
    while n < 4000:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        n += 1
except OSError as e:
    print("refused after", n, "with", e.errno, flush=True)
time.sleep(600)'`

func TestAForkBombIsRefused(t *testing.T) {
	eachWay(t, func(t *testing.T, h *host.Host) {
		if h.Isolation().Limits.Processes == "" {
			if os.Geteuid() == 0 {
				t.Errorf("nothing limits processes of root's sandboxes: %+v", h.Isolation().Limits)
			}
			return // an ordinary user's, that share their user: said in doctor
		}
		box, other := bootBox(t, h), bootBox(t, h)
		out := drivertest.NewOutput()
		p, err := box.Start(await(t), "ps-bomb", bounded(forks, engine.Limits{Processes: 40}), out, nil)
		must(t, err)
		must(t, out.Await(await(t), "with 11")) // EAGAIN
		said := strings.Fields(out.String())
		if n, err := strconv.Atoi(said[2]); err != nil || n > 48 {
			t.Errorf("with a limit of 40 it says %q", out)
		}
		proves(t, other)
		must(t, p.Kill(await(t), 0))
		proves(t, box)
	})
}

// bombs are a fork bomb of each kind: linear, wide, exponential.
var bombs = []string{
	"f() { f; }; sh -c 'loop() { (sleep 600 &) ; loop; }; loop' & echo lit; wait",
	"i=0; while :; do sleep 600 & i=$((i+1)); [ $i = 5 ] && echo lit; done",
	"b() { b | b & }; echo lit; b; sleep 600",
}

func TestBombsAreKilledWhole(t *testing.T) {
	eachWay(t, func(t *testing.T, h *host.Host) {
		if h.Isolation().Limits.Processes == "" {
			return // as above: it would take the tests with it
		}
		other := bootBox(t, h)
		for i, bomb := range bombs {
			// Each in a box of its own: by rlimit the dead count as well, until
			// this host's init has reaped them.
			box := bootBox(t, h)
			out := drivertest.NewOutput()
			p, err := box.Start(await(t), engine.ProcessID(fmt.Sprint("ps-bomb", i)), bounded(bomb, engine.Limits{Processes: 30}), out, nil)
			must(t, err)
			must(t, out.Await(await(t), "lit"))
			proves(t, other)
			must(t, p.Kill(await(t), 0))
			_, err = box.KillStrays(await(t))
			must(t, err)
			proves(t, box)
		}
	})
}

func TestACPUHogIsHeldBack(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		h := openHost(t, host.Config{Isolation: isolation})
		if h.Isolation().Limits.CPU != "cgroup v1" {
			return // version 2 counts elsewhere, and nothing else holds it
		}
		box := bootBox(t, h)
		out := drivertest.NewOutput()
		p, err := box.Start(await(t), "ps-hog", bounded("echo busy; while :; do :; done", engine.Limits{CPU: 0.1}), out, nil)
		must(t, err)
		must(t, out.Await(await(t), "busy"))
		stat := filepath.Join(groupOf(t, p.PID(), "cpu"), "cpu.stat")
		for ctx := await(t); ; {
			data, err := os.ReadFile(stat)
			must(t, err)
			must(t, ctx.Err())
			if !strings.Contains(string(data), "nr_throttled 0\n") {
				break
			}
		}
		must(t, p.Kill(await(t), 0))
	})
}

// groupOf is the directory of a process's group of version 1.
func groupOf(t *testing.T, pid int, controller string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	must(t, err)
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && f[1] == controller {
			return filepath.Join("/sys/fs/cgroup", controller, f[2])
		}
	}
	t.Fatalf("%d is in no group of %s: %s", pid, controller, data)
	return ""
}

// Nothing runs outside of the sandbox's groups, not for a moment: the first
// thing that the command does is to fork away from everything it belongs to.
func TestNothingIsBornOutsideOfItsGroups(t *testing.T) {
	h := openHost(t, host.Config{Isolation: "none"})
	if h.Isolation().Limits.Memory != "cgroup v1" {
		return // version 2 has this by itself
	}
	box := bootBox(t, h)
	limits := engine.Limits{Memory: engine.GiB, CPU: 2, Processes: 500}
	for range 25 {
		out, _ := runIn(t, box, bounded("(setsid sh -c 'cat /proc/self/cgroup') & cat /proc/self/cgroup; wait", limits))
		for _, controller := range []string{":memory:", ":cpu:", ":pids:"} {
			for line := range strings.Lines(out) {
				if strings.Contains(line, controller) && !strings.Contains(line, "/sb-") {
					t.Fatalf("it runs outside: %s", out)
				}
			}
		}
		if strings.Count(out, "/sb-") < 6 {
			t.Fatalf("it says %q", out)
		}
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	must(t, err)
	if strings.Contains(string(own), "/sb-") {
		t.Errorf("the engine is in a sandbox's group: %s", own)
	}
}
