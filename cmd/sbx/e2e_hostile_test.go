package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// acting is what a terminal may obey, or what hides or reorders text.
var acting = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")

func TestNothingThatAnAppWritesReachesATerminalRaw(t *testing.T) {
	needCommand(t, "git")
	w := newWorld(t, nil)
	dir := filepath.Join(filepath.Dir(w.home), "app")
	writeApp(t, dir, `printf '\033]0;owned\007\033[31mred\033[0m \302\233 31m \342\200\256 gpj.exe \177\n'
head -c 1200000 /dev/zero | tr '\0' x; echo
head -c 3000 /dev/urandom; echo
printf '\033[2Jlast \033]52;c;b3duZWQ=\007 \302\233 words\n' >&2
exit 3`)
	if r := w.run("create", "--from", dir, "--name", "app"); r.code != exitBroken {
		t.Fatalf("exit %d, %s", r.code, r.err)
	}
	long := false
	for _, args := range [][]string{
		{"ls"},
		{"show", "app"},
		{"logs", "app"},
		{"logs", "app", "-n", "3", "-t"},
		{"logs", "--healer", "--full"},
		{"logs", "--healer", "app"},
		{"events"},
		{"status"},
	} {
		for _, args := range [][]string{args, append(args, "--json")} {
			out := w.ok(args...)
			if at := acting.FindStringIndex(out); at != nil || !utf8.ValidString(out) {
				t.Errorf("sbx %s lets %q through", strings.Join(args, " "), acting.FindString(out))
			}
			long = long || strings.Contains(out, strings.Repeat("x", 32<<10))
		}
	}
	if !long {
		t.Error("the long line is in no log: nothing was proved of it")
	}
	var line struct{ Text string }
	for _, text := range strings.Split(strings.TrimSpace(w.ok("logs", "app", "--json")), "\n") {
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %.200q", err, text)
		}
	}
	if line.Text != "\x1b[2Jlast \x1b]52;c;b3duZWQ=\a \u009b words" {
		t.Errorf("read back, its last words are %q", line.Text)
	}
}

func TestWordsThatActAreRefusedAsNames(t *testing.T) {
	w := newWorld(t, nil)
	for _, word := range []string{"a\x1b[31m", "a\u009b31m", "a\u202eb", "a\nb", "a\u200bb"} {
		for _, args := range [][]string{{"--name", word}, {"--owner", word}, {"--label", "k=" + word}, {"--label", word + "=v"}} {
			r := w.run(append([]string{"create", "--no-wait"}, args...)...)
			if r.code != exitUsage || acting.MatchString(strings.TrimSuffix(r.err, "\n")) {
				t.Errorf("%q: exit %d, %q", args, r.code, r.err)
			}
		}
	}
	if out := w.ok("ls", "--json"); out != "[]\n" {
		t.Errorf("something was made: %s", out)
	}
}

// TestEveryExampleRuns runs the Example lines of every command against an
// engine that has what they speak of.
func TestEveryExampleRuns(t *testing.T) {
	needCommand(t, "git")
	w := newWorld(t, nil)
	base := filepath.Dir(w.home)
	writeApp(t, filepath.Join(base, "my-app"), "exec sleep 1000")
	w.write(base, ".env", "A=1\n")
	if err := os.MkdirAll(filepath.Join(base, "fixtures"), 0o755); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, cmd := range newRootCmd(&cli{}).Commands() {
		for _, line := range examplesOf(cmd) {
			args, ok := exampleArgs(line)
			if !ok {
				continue
			}
			seen++
			w.prepare(cmd.Name())
			if r := w.run(args...); r.code != 0 && !fine(line, r) {
				t.Errorf("%s: exit %d\n%s%s", line, r.code, r.out, r.err)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d examples ran", seen)
	}
}

// prepare makes the sandbox that the examples speak of as a command wants it.
func (w *world) prepare(command string) {
	there := w.run("show", "api").code == 0
	switch {
	case command == "create" && there:
		w.ok("rm", "api", "--yes")
	case command != "create" && !there:
		w.ok("create", "--template", "demo", "--name", "api", "--label", "team=web")
	case command == "cp" || command == "files":
		w.ok("exec", "api", "--", "mkdir -p src dist test && echo 'app.listen(1)' > src/app.js")
	case command == "start":
		w.ok("stop", "api")
	}
}

// examplesOf are a command's lines; one without any is an error of its own.
func examplesOf(cmd *cobra.Command) []string {
	if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
		return nil
	}
	if cmd.Example == "" {
		return []string{"sbx " + cmd.Name() + " has no example"}
	}
	return strings.Split(cmd.Example, "\n")
}

// exampleArgs are the arguments of an example that ends by itself.
func exampleArgs(line string) ([]string, bool) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "sbx ")
	for _, endless := range []string{"tui", "serve", "demo", "--follow", "/srv/app", "--engine", "sb-7f3c", "1.480", "ps-k3vq", "48213", "attach"} {
		if strings.Contains(line, endless) {
			return nil, false // another test's, or of what only its reader has
		}
	}
	var args []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		args = append(args, m[1]+m[2])
	}
	return args, true
}

// fine are the examples that may end otherwise in this workspace, which has no
// npm, no Makefile, no second process, and is not being healed.
func fine(line string, r result) bool {
	switch {
	case strings.Contains(line, "npm"), strings.Contains(line, "make check"):
		return r.code != exitUsage
	case strings.Contains(line, "watcher"):
		return r.code == exitNotFound
	case strings.Contains(line, "--cancel"):
		return r.code == exitNotFound || r.code == exitBusy
	}
	for _, why := range lacking {
		if strings.Contains(r.err, why) {
			return true
		}
	}
	return false
}

// lacking is what examples say of a workspace that hasn't what they speak of: a
// terminal, a model, somebody to be told, a conversation, a checkpoint, a run, a
// key of that name, a change to be undone, a stopped sandbox.
var lacking = []string{
	"needs a terminal", "no model is configured", "nobody is set to be notified", "nobody is being answered", "has no checkpoint", "no good checkpoint yet",
	"no heal run", "no key vk-", "no change of files to undo", "stop it first", "has no archive", "no plan was made",
}
