package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx/engine"
)

var deskSizes = []struct{ cols, rows int }{{160, 45}, {80, 24}}

// TestTheDashboardShowsAHealFromOutside breaks a sandbox behind the dashboard's
// back: what is seen then comes from the engine alone.
func TestTheDashboardShowsAHealFromOutside(t *testing.T) {
	for _, size := range deskSizes {
		t.Run(fmt.Sprintf("%dx%d", size.cols, size.rows), func(t *testing.T) {
			t.Parallel()
			w := deskWorld(t, size.cols)
			w.ok("create", "--template", "demo", "--name", "api")
			w.ok("create", "--template", "demo", "--name", "web")
			d := w.openDesk(size.cols, size.rows, "tui")
			d.sees(`✓ ?2`)
			d.sees(`✓ ready .*api`)
			w.ok("exec", "api", "--", "rm parts/menu.txt")
			restart := w.command("restart", "api")
			if err := restart.Start(); err != nil {
				t.Fatal(err)
			}
			d.sees(`HEALING 1`)
			d.sees(`healing .*api.*exit 1`) // the signal's column
			d.sees(`healed \d\d:\d\d`)
			d.sees(`✓ ?2`)
			if err := restart.Wait(); err != nil {
				t.Errorf("restart: %v", err)
			}
			// The cursor went there by itself: nobody had moved it.
			d.press("2")
			d.sees(`Playbooks`)
			d.sees(`(reinstall|put back)`)
			d.press("3")
			d.sees(`Log of app.*following`)
			d.sees(`(?m)^│ .*listening on http`)
			d.press("q")
			d.sees(`SANDBOX`)
			d.press("q")
			d.restored(0)
		})
	}
}

func TestKeysOfTheDashboardDoWhatTheySay(t *testing.T) {
	for _, size := range deskSizes {
		t.Run(fmt.Sprintf("%dx%d", size.cols, size.rows), func(t *testing.T) {
			t.Parallel()
			w := deskWorld(t, size.rows)
			w.ok("create", "--template", "demo", "--name", "api")
			w.ok("create", "--template", "demo", "--name", "web")
			d := w.openDesk(size.cols, size.rows, "tui")
			d.sees(`✓ ready .*web`)
			d.press("/")
			d.typing("health:brokn")
			d.sees(`did you mean broken`)
			d.escape(`did you mean`)
			d.press("/")
			d.typing("api")
			d.sees(`1 of 2 sandboxes`)
			d.press("Enter")
			d.misses(` TYPE `)
			d.press("?")
			d.sees(`Keys · Fleet`)
			d.press("q")
			d.misses(`Keys · Fleet`)
			d.acts()
			d.resizes()
			d.press("C-c")
			d.sees(`ctrl\+C again leaves`)
			d.press("C-c")
			d.restored(0)
		})
	}
}

// acts restarts, stops, starts and heals the selected sandbox, api: Enter
// cancels, y does it.
func (d *desk) acts() {
	d.w.t.Helper()
	d.press("3")
	d.sees(`(?m)^│ .*listening on http`)
	d.press("R")
	d.answer(`Restart api`, "Enter")
	d.press("R")
	d.answer(`Restart api`, "y")
	d.until(screenWait, "the log goes on after the restart", func(s string) bool { return strings.Count(s, "listening on http") == 2 })
	d.press("0")
	d.sees(`✓ ready .*api`)
	d.press("S")
	d.answer(`Stop api`, "Enter")
	if sb := d.sandbox("api"); sb.State == engine.Cold {
		d.w.t.Error("Enter stopped the sandbox")
	}
	d.press("S")
	d.answer(`Stop api`, "y")
	d.sees(`(cold|cld) .*api`)
	d.press("S")
	d.sees(`✓ ready .*api`)
	d.press("H")
	d.sees(`H again`)
	d.press("H")
	d.sees(`heal api: .*(accepted|ready|healthy)`)
	d.sees(`✓ ready .*api`)
}

func (d *desk) sandbox(name string) engine.Sandbox {
	d.w.t.Helper()
	var s showJSON
	d.w.read(&s, "show", name)
	return s.Sandbox
}

// resizes makes the terminal smaller and as large as it was.
func (d *desk) resizes() {
	d.w.t.Helper()
	d.resize(160, 45)
	d.sees(`What happened`)
	d.resize(80, 24)
	d.misses(`What happened`)
	d.sees(`(?m)NAV .*\? help`)
	d.resize(40, 10)
	d.sees(`Needs 60×15`)
	d.resize(160, 45)
	d.sees(`What happened`)
	d.sees(`api`)
}

// TestAnIdleDashboardWritesNothing waits for ten seconds in which the terminal
// gets no byte. The clock and the ages change each minute, so it may take two.
func TestAnIdleDashboardWritesNothing(t *testing.T) {
	t.Parallel()
	w := deskWorld(t, 3)
	for _, name := range []string{"api", "web", "shop"} {
		w.ok("create", "--template", "demo", "--name", name)
	}
	d := w.openDesk(160, 45, "tui")
	d.sees(`✓ 3 ready`)
	had, since := d.written(), time.Now()
	w.eventually("ten seconds without a byte", func() bool {
		if n := d.written(); n != had {
			had, since = n, time.Now()
		}
		return time.Since(since) > 10*time.Second
	})
}

func TestALostEngineIsShownAndFoundAgain(t *testing.T) {
	t.Parallel()
	w := deskWorld(t, 4)
	w.ok("create", "--template", "demo", "--name", "api")
	w.stopEngine(syscall.SIGTERM)
	serve, addr := w.serve("127.0.0.1:0")
	token, err := os.ReadFile(tokenFile(w.home))
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "SBX_TOKEN="+strings.TrimSpace(string(token)))
	d := w.openDesk(160, 45, "tui", "--engine", "http://"+addr)
	d.sees(`● live`)
	d.sees(`✓ ready .*api`)
	d.press("3")
	d.sees(`(?m)^│ .*listening on http`)
	kill(t, serve)
	lost := time.Now()
	d.sees(`NOT CONNECTED`)
	if took := time.Since(lost); took > 5*time.Second {
		t.Errorf("the loss shows after %v", took)
	}
	d.sees(`OFFLINE`)
	d.sees(`without connection since`)
	d.press("R")
	d.sees(`R: waits for the engine`)
	serve, _ = w.serve(addr)
	d.press("r")
	d.sees(`● live`)
	d.sees(`back after \d+s`)
	d.sees(`── \d+s without connection: .* ──`)
	d.press("q", "q")
	d.restored(0)
	kill(t, serve)
}

// serve runs an engine on an address, and says on which it listens.
func (w *world) serve(addr string) (*exec.Cmd, string) {
	w.t.Helper()
	cmd := w.command("serve", "--listen", addr)
	log, err := os.CreateTemp(filepath.Dir(w.home), "serve-")
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	listening := regexp.MustCompile(`address=(\S+)`)
	var at string
	w.eventually("the engine listens", func() bool {
		b, err := os.ReadFile(log.Name())
		if m := listening.FindSubmatch(b); err == nil && m != nil {
			at = string(m[1])
		}
		return at != ""
	})
	return cmd, at
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
}

func TestLeavingAnEmbeddedEngineDoesWhatWasChosen(t *testing.T) {
	t.Parallel()
	w := deskWorld(t, 5)
	w.ok("create", "--template", "demo", "--name", "api")
	w.stopEngine(syscall.SIGTERM)

	d := w.openDesk(80, 24, "tui")
	d.sees(`✓ ready .*api`)
	d.press("q")
	d.answer(`Leave sbx\?`, "Enter") // stays
	pid := w.appOf("api").PID
	d.press("q")
	d.answer(`Leave sbx\?`, "y")
	d.sees(`an engine in the background`)
	d.restored(0)
	var st statusJSON
	w.read(&st, "status")
	if !st.Running {
		t.Error("no engine answers sbx status")
	}
	w.eventually("the sandbox is up there", func() bool { return d.sandbox("api").Health == engine.Ready })
	if now := w.appOf("api").PID; now != pid {
		t.Errorf("the app is %d, was %d", now, pid)
	}
	w.stopEngine(syscall.SIGTERM)

	d = w.openDesk(160, 45, "tui")
	d.sees(`✓ ready .*api`)
	d.press("q")
	d.answer(`Leave sbx\?`, "s")
	d.restored(0)
	if left := w.processes(); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
	if sb := d.sandbox("api"); sb.State != engine.Cold || sb.Wanted != engine.Down {
		t.Errorf("the sandbox is %s and wanted %s", sb.State, sb.Wanted)
	}
}

func TestATerminatedDashboardRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	w := deskWorld(t, 6)
	w.ok("create", "--template", "demo", "--name", "api")
	d := w.openDesk(80, 24, "tui")
	d.sees(`✓ ready .*api`)
	if err := syscall.Kill(d.pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.restored(exitInterrupted)
}
