package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
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
const screenWait = 60 * time.Second

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
