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

// desk is the real dashboard in a real terminal: tmux, with a server of its own.
type desk struct {
	w    *world
	dir  string
	tmux []string
	bin  string // what runs in it
}

// openDesk runs sbx in a terminal of cols by rows. When it has ended, the shell
// around it says with which status, and what of the terminal's settings changed.
func (w *world) openDesk(cols, rows int, args ...string) *desk {
	w.t.Helper()
	needCommand(w.t, "tmux")
	dir, err := os.MkdirTemp(filepath.Dir(w.home), "desk-")
	if err != nil {
		w.t.Fatal(err)
	}
	d := &desk{w: w, dir: dir, bin: filepath.Join(dir, "run")}
	d.tmux = []string{"tmux", "-S", filepath.Join(dir, "s"), "-f", d.write("conf", deskConf)}
	d.write("run", fmt.Sprintf(deskScript, dir, binary, strings.Join(args, " ")))
	open := exec.Command(d.tmux[0], append(d.tmux[1:], "new-session", "-d", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows), "sh", d.bin)...)
	open.Env = append(w.env, "LC_ALL=C.UTF-8", "COLORTERM=truecolor", "TMPDIR="+dir)
	if out, err := open.CombinedOutput(); err != nil {
		w.t.Fatalf("tmux: %v\n%s", err, out)
	}
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("the last screen:\n%s", d.shown())
		}
		_ = exec.Command(d.tmux[0], append(d.tmux[1:], "kill-server")...).Run() // it may have ended by itself
	})
	d.do("pipe-pane", "-O", "cat >"+filepath.Join(dir, "bytes"))
	d.write("go", "")
	return d
}

// deskWorld is a world with a hundred ports of its own: these tests run at the
// same time, and each engine believes that the ports of its range are its own.
func deskWorld(t *testing.T, n int) *world {
	t.Helper()
	from := 21000 + 100*(n%90)
	return newWorld(t, nil, fmt.Sprintf("SBX_PORTS_FROM=%d", from), fmt.Sprintf("SBX_PORTS_TO=%d", from+99))
}

const deskConf = `set -g default-terminal xterm-256color
set -g status off
set -g escape-time 0
set -g history-limit 0
`

// deskScript waits until what it writes is recorded. The first line of stty's is
// the size, which tests change. cat keeps the terminal.
const deskScript = `cd %[1]s
until [ -e go ]; do :; done
stty -a | sed 1d >before
%[2]s %[3]s
status=$?
stty -a | sed 1d >after
cmp before after && echo "the terminal is as it was"
echo "left with $status"
cat
`

func (d *desk) write(name, text string) string {
	d.w.t.Helper()
	d.w.write(d.dir, name, text)
	return filepath.Join(d.dir, name)
}

// do is one command of tmux.
func (d *desk) do(args ...string) string {
	d.w.t.Helper()
	out, err := exec.Command(d.tmux[0], append(d.tmux[1:], args...)...).CombinedOutput()
	if err != nil {
		d.w.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (d *desk) shown() string { return d.do("capture-pane", "-p") }

// screenWait is how long anything on the screen may take.
const screenWait = 25 * time.Second

// until polls the screen.
func (d *desk) until(within time.Duration, what string, cond func(screen string) bool) {
	d.w.t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		screen := d.shown()
		if cond(screen) {
			return
		}
		if time.Now().After(deadline) {
			d.w.t.Fatalf("not within %v: %s:\n%s", within, what, screen)
		}
		<-tick.C
	}
}

// sees waits for a pattern on the screen.
func (d *desk) sees(pattern string) {
	d.w.t.Helper()
	re := regexp.MustCompile(pattern)
	d.until(screenWait, "the screen shows "+pattern, re.MatchString)
}

func (d *desk) misses(pattern string) {
	d.w.t.Helper()
	re := regexp.MustCompile(pattern)
	d.until(screenWait, "the screen no longer shows "+pattern, func(s string) bool { return !re.MatchString(s) })
}

// press sends keys by tmux's names; typing sends text.
func (d *desk) press(keys ...string) { d.do(append([]string{"send-keys"}, keys...)...) }
func (d *desk) typing(text string)   { d.do("send-keys", "-l", text) }

// escape waits for what the key does, or the next key would make it alt+key.
func (d *desk) escape(gone string) {
	d.w.t.Helper()
	d.press("Escape")
	d.misses(gone)
}

// answer gives a dialog its answer once it takes keys.
func (d *desk) answer(title, key string) {
	d.w.t.Helper()
	d.sees(title)
	d.misses("Keys are ignored")
	d.press(key)
	d.misses(title)
}

func (d *desk) resize(cols, rows int) {
	d.do("resize-window", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows))
}

// pid is the dashboard's.
func (d *desk) pid() int {
	d.w.t.Helper()
	var pid int
	shell := strings.TrimSpace(d.do("display", "-p", "#{pane_pid}"))
	d.w.eventually("sbx runs in the terminal", func() bool {
		out, err := exec.Command("pgrep", "-P", shell).Output()
		_, scan := fmt.Sscan(string(out), &pid)
		return err == nil && scan == nil
	})
	return pid
}

// written is how many bytes the terminal has got.
func (d *desk) written() int64 {
	info, err := os.Stat(filepath.Join(d.dir, "bytes"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// restored checks that the terminal is as it was, after sbx has ended with a
// status.
func (d *desk) restored(status int) {
	d.w.t.Helper()
	d.sees(fmt.Sprintf("left with %d", status))
	d.sees("the terminal is as it was")
	modes := d.do("display", "-p", "#{alternate_on}#{mouse_any_flag}#{bracket_paste_flag} #{cursor_flag}")
	if got := strings.TrimSpace(modes); got != "00 1" && got != "0 1" { // older tmux doesn't know of bracketed paste
		d.w.t.Errorf("alternate screen, mouse, bracketed paste and cursor are %q", got)
	}
}

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
	w.stopEngine(syscall.SIGTERM)

	d = w.openDesk(160, 45, "tui")
	d.sees(`✓ ready .*api`)
	d.press("q")
	d.answer(`Leave sbx\?`, "s")
	d.restored(0)
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
	d.sees(`left with \d+`)
	d.sees(`the terminal is as it was`)
}
