//go:build linux

package host_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

// engineMain is an engine of its own process, to be killed: it boots a box,
// starts what its arguments say, and reports the box and what it wrote.
func engineMain(args []string) int {
	ctx := context.Background()
	var cfg host.Config
	if err := json.Unmarshal([]byte(args[0]), &cfg); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	cfg.Helper = launcher()
	h := host.New(cfg)
	if err := h.Open(ctx); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	id := engine.SandboxID(engine.NewID(engine.SandboxPrefix))
	box, err := h.Boot(ctx, driver.Boot{ID: id, Origin: engine.Origin{Kind: engine.FromTemplate}, Template: func(driver.FileWriter) error { return nil }})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	out := drivertest.NewOutput()
	cmd := driver.Command{Command: engine.Command{Shell: args[1]}, Profile: driver.Profile(args[2]), Protected: []string{"missing"}}
	if _, err := box.Start(ctx, "ps-killedengine", cmd, out, nil); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	if err := out.Await(ctx, "ready"); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("box", id)
	<-make(chan struct{}) // until it is killed
	return 0
}

// killedEngine runs an engine, kills it when what it started is ready, and
// returns the box.
func killedEngine(t *testing.T, cfg host.Config, shell string, profile driver.Profile) engine.SandboxID {
	t.Helper()
	data, err := json.Marshal(struct {
		Dir, Isolation string
		NoCgroups      bool
	}{cfg.Dir, cfg.Isolation, cfg.NoCgroups})
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "engine", string(data), shell, string(profile))
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "box ") {
		t.Fatalf("the engine said %q, %v", line, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return engine.SandboxID(strings.TrimSpace(strings.TrimPrefix(line, "box ")))
}

// leftBehind is what an engine leaves when nothing kills it with the engine:
// it changed its session and was orphaned before.
const leftBehind = `(setsid sh -c 'trap "" TERM HUP; exec sleep 987.%d' &) ; setsid sleep 987.%d & sleep 0.1; echo ready; sleep 987.%d`

// sleepers are the living processes that leftBehind started.
func sleepers(mark int) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Equal(data, fmt.Appendf(nil, "sleep\x00987.%d\x00", mark)) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			found = append(found, pid)
		}
	}
	return found
}

func TestReapKillsWhatAKilledEngineLeft(t *testing.T) {
	for i, name := range means {
		for j, without := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/without=%t", name, without), func(t *testing.T) {
				t.Parallel()
				requireMeans(t, name)
				mark := os.Getpid()*100 + i*10 + j
				cfg := host.Config{Dir: filepath.Join(tempDir(t), "data"), Isolation: name, NoCgroups: without}
				id := killedEngine(t, cfg, strings.ReplaceAll(leftBehind, "%d", strconv.Itoa(mark)), driver.ProfileApp)
				h := openHost(t, cfg)
				killed, err := h.Reap(t.Context())
				must(t, err)
				if left := sleepers(mark); len(left) != 0 {
					t.Errorf("%d are left after reaping %q", len(left), killed)
				}
				if name == "none" && len(killed) == 0 {
					t.Error("it killed nothing, though orphans were left")
				}
				if again, err := h.Reap(t.Context()); err != nil || len(again) != 0 {
					t.Errorf("reaping again killed %q, %v", again, err)
				}
				box, err := h.Attach(t.Context(), id)
				must(t, err)
				must(t, box.Destroy(t.Context()))
			})
		}
	}
}

func TestStandInsOfAKilledEngineAreRemoved(t *testing.T) {
	t.Parallel()
	requireMeans(t, "bubblewrap")
	cfg := host.Config{Dir: filepath.Join(tempDir(t), "data"), Isolation: "bubblewrap"}
	id := killedEngine(t, cfg, "echo ready; sleep 600", driver.ProfileAgent)
	h := openHost(t, cfg)
	_, err := h.Reap(t.Context())
	must(t, err)
	box, err := h.Attach(t.Context(), id)
	must(t, err)
	names, err := os.ReadDir(box.Location())
	must(t, err)
	if len(names) != 0 {
		t.Errorf("the workspace has %v", names)
	}
	must(t, box.Destroy(t.Context()))
}

func TestStrangersOfTheSameUserSurvive(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		for _, without := range []bool{false, true} {
			h := openHost(t, host.Config{Isolation: isolation, NoCgroups: without})
			box := bootBox(t, h)
			stranger := startAs(t, box)
			out := drivertest.NewOutput()
			proc, err := box.Start(t.Context(), "ps-a", driver.Command{Command: engine.Command{Shell: "setsid sleep 600 & echo ready; wait"}, Profile: driver.ProfileApp}, out, nil)
			must(t, err)
			must(t, out.Await(t.Context(), "ready"))
			must(t, proc.Kill(t.Context(), time.Second))
			_, err = box.KillStrays(t.Context())
			must(t, err)
			_, err = h.Reap(t.Context())
			must(t, err)
			if err := unix.Kill(stranger, 0); err != nil {
				t.Errorf("the stranger is gone: %v", err)
			}
		}
	})
}

// startAs starts a process of the box's user that is none of the box's.
func startAs(t *testing.T, box driver.Box) int {
	t.Helper()
	fi, err := os.Stat(box.Location())
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "600")
	cmd.SysProcAttr = asOwner(fi)
	must(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // killed when the test ends
	}()
	t.Cleanup(func() { cmd.Process.Kill(); <-done })
	return cmd.Process.Pid
}
