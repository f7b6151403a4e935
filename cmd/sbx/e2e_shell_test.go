package main

import (
	"bufio"
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"sbx/engine"
)

// plainBash is a shell that says when it listens.
var plainBash = []string{"--env", "PS1=[$?]ready> ", "--env", "PROMPT_COMMAND=", "--", "bash", "--norc", "--noprofile"}

func TestAShellRunsWhatDrawsTheWholeScreen(t *testing.T) {
	t.Parallel()
	needCommand(t, "bash", "vim", "less", "top", "node")
	w := shellWorld(t)
	s := w.sits(100, 30, append([]string{"shell", "api"}, plainBash...)...)
	s.sees(`\[0\]ready>$`)
	s.types("vim -Nu NONE -n notes.txt\r")
	s.sees(`"notes.txt" \[New\]`)
	s.types("i")
	s.sees(`-- INSERT --`)
	s.types("Written in Vim\x1b")
	s.sees(`(?s)^Written in Vim.*\n~`)
	s.types(":wq\r")
	s.sees(`\[0\]ready>$`)
	s.does("clear; cat notes.txt", `^Written in Vim`)
	s.does("clear; seq 1 500 > numbers; less numbers", `(?m)^29\s*$`)
	s.types("G")
	s.sees(`(?m)^500\s*$`)
	s.types("q")
	s.sees(`ready>$`)
	s.does("clear; top", `PID +USER`)
	s.types("q")
	s.sees(`ready>$`)
	s.does("clear; node", `(?s)Welcome to Node.*>$`)
	s.does("[6*7, 'forty' + 'two']", `42, 'fortytwo'`)
	s.types("\x04")
	s.sees(`\[0\]ready>$`)
	s.types("exit 7\r")
	s.ends(7)
}

func TestAShellFollowsItsWindowAndItsKeys(t *testing.T) {
	t.Parallel()
	needCommand(t, "bash")
	w := shellWorld(t)
	s := w.sits(100, 30, append([]string{"shell", "api"}, plainBash...)...)
	s.sees(`ready>$`)
	s.does("stty size", `(?m)^30 100\s*$`)
	s.window(80, 20)
	s.does(`until [ "$(stty size)" = "20 80" ]; do sleep 0.1; done; clear; echo it is sma""ll`, `it is small`)
	s.types("sh -c 'echo wai\"\"ting; read line'\r")
	s.sees(`waiting`)
	s.types("\x03")
	s.sees(`\[130\]ready>$`)
	s.types("sh -c 'echo sta\"\"rted; read line; echo got $line'\r")
	s.sees(`started`)
	s.types("\x1a")
	s.sees(`\[148\]ready>$`)
	s.types("echo now\"\" fg; fg\r")
	s.sees(`now fg`)
	s.types("it\r") // only the job reads now
	s.sees(`got it`)
	s.sees(`\[0\]ready>$`)
	s.types("sh -c 'echo lis\"\"tening; cat > typed'\r")
	s.sees(`listening`)
	s.types("a\x1d\x1db\r\x04") // twice the detaching key is one for the program
	s.does(`clear; od -c typed | head -1`, `a 035   b`)
	s.types("exit\r")
	s.ends(0)
}

func TestATerminalIsLeftAndFoundAgain(t *testing.T) {
	t.Parallel()
	needCommand(t, "bash", "vim")
	w := shellWorld(t)
	s := w.sits(90, 25, append([]string{"shell", "api", "--name", "mine"}, plainBash...)...)
	s.sees(`ready>$`)
	s.types("vim -Nu NONE -n\r")
	s.sees(`VIM - Vi IMproved`)
	s.types("i")
	s.sees(`-- INSERT --`)
	s.types("left here")
	s.sees(`left here`)
	s.types("\x1d")
	s.ends(0)
	s.sees(`detached: it goes on; come back with sbx shell --attach ps-`)
	var list []processJSON
	w.read(&list, "shell", "--list")
	if len(list) != 1 || list[0].Name != "mine" || list[0].Terminal.Size != (engine.TermSize{Cols: 90, Rows: 25}) {
		t.Fatalf("the list is %+v", list)
	}
	id := string(list[0].ID)

	again := w.sits(90, 25, "shell", "--attach", id)
	again.sees(`left here`)
	again.sees(`-- INSERT --`)
	watcher := w.sits(90, 25, "shell", "--attach", id, "--watch")
	watcher.sees(`left here`)
	watcher.types("nothing of this")
	again.types(" and found")
	again.sees(`left here and found`)
	watcher.sees(`left here and found`)
	if strings.Contains(again.screen(), "nothing") {
		t.Error("the watcher typed")
	}
	if err := watcher.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	watcher.ends(exitInterrupted)

	w.ok("kill", id)
	again.ends(129, 137) // hung up, or killed where that took too long
	again.sees(`was killed`)
	if r := w.run("shell", "--attach", "ps-nothing"); r.code != exitUsage || !strings.Contains(r.err, "needs a terminal") {
		t.Errorf("without a terminal: %d %s", r.code, r.err)
	}
}

func TestALostEngineLeavesTheTerminalWhole(t *testing.T) {
	t.Parallel()
	needCommand(t, "bash", "vim")
	w := shellWorld(t)
	s := w.sits(90, 25, append([]string{"shell", "api"}, plainBash...)...)
	s.sees(`ready>$`)
	s.types("vim -Nu NONE -n\r")
	s.sees(`VIM - Vi IMproved`)
	w.stopEngine(syscall.SIGKILL)
	s.sees(`sbx: the engine is away`)
	s.types("\x1d")
	s.ends(0)
}

func TestWhatAProgramPrintsCantReachBeyondTheScreen(t *testing.T) {
	t.Parallel()
	needCommand(t, "bash")
	w := shellWorld(t)
	s := w.sits(90, 25, append([]string{"shell", "api"}, plainBash...)...)
	s.sees(`ready>$`)
	s.does(`printf '\033]52;c;aGFja2Vk\007\033[21t\033P$qm\033\\\033]0;a title\007dra\033[1mwn\033[m\n'`, `(?m)^drawn\s*$`)
	if got := s.printed(); strings.Contains(got, "\x1b]52") || strings.Contains(got, "\x1b[21t") || strings.Contains(got, "\x1bP") || !strings.Contains(got, "\x1b]0;a title") {
		t.Errorf("it reached the terminal: %q", got)
	}
	// An answer that comes late is typed at nobody.
	s.types("printf '\\033[c'; exit 3\r")
	s.ends(3)
	if n, err := syscall.Read(unblocked(t, s), make([]byte, 100)); n > 0 {
		t.Errorf("%d bytes wait for the operator's own shell: %v", n, err)
	}
}

func unblocked(t *testing.T, s *seat) int {
	t.Helper()
	fd := int(s.slave.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestATerminalIsRecorded(t *testing.T) {
	t.Parallel()
	w := shellWorld(t)
	s := w.sits(100, 30, "shell", "api", "--record", "--name", "demo", "--", `echo one; read x; until [ "$(stty size)" = "20 80" ]; do sleep 0.1; done; echo zwei é`)
	s.sees(`one`)
	s.window(80, 20)
	s.types("\r")
	s.ends(0)
	var list []processJSON
	w.read(&list, "shell", "--list", "--all", "api")
	if len(list) != 1 || list[0].ExitCode == nil || *list[0].ExitCode != 0 {
		t.Fatalf("the list is %+v", list)
	}
	lines := bufio.NewScanner(strings.NewReader(w.ok("shell", "--cast", string(list[0].ID))))
	var head struct {
		Version, Width, Height int
		Timestamp              int64
		Title                  string
	}
	if lines.Scan(); json.Unmarshal(lines.Bytes(), &head) != nil || head.Version != 2 || head.Width != 100 || head.Height != 30 || head.Title != "demo" || head.Timestamp == 0 {
		t.Errorf("the head is %s", lines.Text())
	}
	last, text, resized := 0.0, "", false
	for lines.Scan() {
		var at float64
		var kind, data string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&at, &kind, &data}); err != nil || at < last {
			t.Fatalf("%s after %f: %v", lines.Text(), last, err)
		}
		switch last = at; kind {
		case "o":
			text += data
		case "r":
			resized = resized || data == "80x20"
		}
	}
	if want := regexp.MustCompile(`^one\r\n\r\nzwei é\r\n$`); !want.MatchString(text) || !resized {
		t.Errorf("recorded is %q, resized %t", text, resized)
	}
}

func TestAShellIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"shell", "api"}, exitUsage, "sbx exec"},
		{[]string{"shell"}, exitUsage, "name a sandbox"},
		{[]string{"shell", "--list", "--attach", "ps-x"}, exitUsage, "exclude each other"},
		{[]string{"shell", "api", "--detach-key", "ctrl+c"}, exitUsage, "ctrl+]"},
		{[]string{"shell", "--cast", "ps-aaaa"}, exitNotFound, "no process"},
		{[]string{"shell", "api", "--timeout", "3s"}, exitUsage, "sbx exec --timeout"},
	} {
		if r := w.run(c.args...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit %d, %q; want %d and %q", c.args, r.code, r.err, c.code, c.says)
		}
	}
}
