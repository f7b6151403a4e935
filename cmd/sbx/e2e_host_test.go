package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// What hosts do to an engine: programs that are missing, confinement that is
// weaker, users that are nobody, directories that can't be.

func TestTheDoctorLeavesARunningEngineAlone(t *testing.T) {
	w := newWorld(t, nil)
	w.ok("create", "--template", "demo", "--name", "shop")
	w.ok("stop", "shop")
	w.ok("doctor")
	w.ok("start", "shop")
	w.ok("exec", "shop", "--", "true")
}

func TestTheDoctorMakesNothing(t *testing.T) {
	w := newWorld(t, nil)
	if out := w.ok("doctor"); !strings.Contains(out, "not made yet") {
		t.Errorf("it says of the data directory:\n%s", out)
	}
	if _, err := os.Stat(w.home); err == nil {
		t.Error("looking has made the data directory")
	}
}

// isolations are what a host may offer, by the settings that make ours offer it.
var isolations = []string{"bubblewrap", "landlock", "none"}

func TestTheFleetWorksInEveryIsolation(t *testing.T) {
	for _, mode := range isolations {
		t.Run(mode, func(t *testing.T) {
			if mode == "bubblewrap" {
				needCommand(t, "bwrap")
			}
			w := newOpenWorld(t, nil, "SBX_ISOLATION="+mode)
			if out := w.ok("demo", "--plain"); !strings.Contains(out, "isolation "+mode) || !strings.Contains(out, "READY") {
				t.Errorf("the demo says:\n%s", out)
			}
			if out := w.ok("doctor"); !strings.Contains(out, mode) {
				t.Errorf("the doctor says:\n%s", out)
			}
			w.ok("create", "--template", "demo", "--name", "shop")
			var shop showJSON
			w.read(&shop, "show", "shop")
			if shop.Sandbox.Isolation != mode {
				t.Errorf("it says that %q confines shop, want %q", shop.Sandbox.Isolation, mode)
			}
			for _, file := range []string{"token", "sbx.db", "engine.sock"} {
				fi, err := os.Stat(filepath.Join(w.home, file))
				if err != nil || fi.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v, want it to be its user's alone", file, fi.Mode(), err)
				}
			}
		})
	}
}

// newOpenWorld is a world whose directory others may pass: where nothing hides
// the data directory from sandboxes, their users go through it.
func newOpenWorld(t *testing.T, script *agenttest.Script, env ...string) *world {
	t.Helper()
	w := newWorld(t, script, env...)
	if err := os.Chmod(filepath.Dir(w.home), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTheDoctorSeesWhatASandboxCannotReach(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("sandboxes of an ordinary user are that user")
	}
	w := newWorld(t, nil, "SBX_ISOLATION=none")
	if out := w.ok("doctor"); !strings.Contains(out, "missing  isolation") || !strings.Contains(out, "install bubblewrap") {
		t.Errorf("the doctor says:\n%s", out)
	}
}

// pathWithout is a PATH with every program that the tests need but for some.
func pathWithout(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbx-path-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "cat", "rm", "ls", "sleep", "mkdir", "touch", "git", "bwrap", "node"} {
		path, err := exec.LookPath(name)
		if err != nil || slices.Contains(names, name) {
			continue
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + dir
}

func TestWithoutBubblewrapTheNextBestConfines(t *testing.T) {
	w := newOpenWorld(t, nil, pathWithout(t, "bwrap"))
	if out := w.ok("doctor"); !strings.Contains(out, "landlock") {
		t.Errorf("the doctor says:\n%s", out)
	}
	if out := w.ok("demo", "--plain"); !strings.Contains(out, "isolation landlock") {
		t.Errorf("the demo says:\n%s", out)
	}
	if r := newWorld(t, nil, pathWithout(t, "bwrap"), "SBX_ISOLATION=bubblewrap").run("demo", "--plain"); r.code == 0 || !strings.Contains(r.err, "bubblewrap") {
		t.Errorf("bubblewrap was asked for and is missing: exit %d, %s", r.code, r.err)
	}
}

func TestWithoutGitAPlaybookThatEditsNothingStillHeals(t *testing.T) {
	w := newWorld(t, nil, pathWithout(t, "git"))
	if out := w.ok("doctor"); !strings.Contains(out, "missing  git") {
		t.Errorf("the doctor says:\n%s", out)
	}
	dir := filepath.Join(filepath.Dir(w.home), "app")
	writeApp(t, dir, `[ -f ran ] || { touch ran; echo "not this time" >&2; exit 3; }; exec sleep 1000`)
	w.ok("create", "--from", dir, "--name", "app")
	w.eventually("the healer has spoken", func() bool {
		return strings.Contains(w.ok("logs", "--healer", "app"), "READY")
	})
	if story := w.ok("logs", "--healer", "app"); !strings.Contains(story, "no checkpoint could be made") || !strings.Contains(story, "no git") {
		t.Errorf("nothing says that there was no checkpoint:\n%s", story)
	}
}

// health is how a sandbox is.
func (w *world) health(name string) engine.Health {
	w.t.Helper()
	var s showJSON
	w.read(&s, "show", name)
	return s.Sandbox.Health
}

func TestWhereNothingConfinesTheAgentStaysOutUnlessToldOtherwise(t *testing.T) {
	needCommand(t, "git")
	script := agenttest.Script{Turns: []agenttest.Turn{{Text: "I give up."}, {Text: "I give up."}, {Text: "I give up."}}}
	for _, c := range []struct {
		env  []string
		asks bool
	}{{nil, false}, {[]string{"SBX_HEAL_UNCONFINED=true"}, true}} {
		w := newOpenWorld(t, &script, append(c.env, "SBX_ISOLATION=none")...)
		dir := filepath.Join(filepath.Dir(w.home), "app")
		writeApp(t, dir, `echo "no such thing: $RANDOM" >&2; exit 3`)
		w.run("create", "--from", dir, "--name", "app")
		w.eventually("app is broken", func() bool { return w.health("app") == engine.Broken })
		if asked := len(w.reqs()) > 0; asked != c.asks {
			t.Errorf("%v: the model was asked: %v, want %v", c.env, asked, c.asks)
		}
		if story := w.ok("logs", "--healer", "app"); !c.asks && !strings.Contains(story, "Nothing confines a model") {
			t.Errorf("nothing says why there was no agent:\n%s", story)
		}
	}
}

// writeApp makes a workspace whose app is a line of shell.
func writeApp(t *testing.T, dir, line string) {
	t.Helper()
	spec := "[app]\ncommand = \"sh ./app.sh\"\nmax_restarts = 0\ninstall = \"true\"\n[heal]\nattempts = 1\n"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"sbx.toml": spec, "app.sh": line + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACommandForWhatCannotStartEndsAndSaysWhy(t *testing.T) {
	w := newWorld(t, nil)
	dir := filepath.Join(filepath.Dir(w.home), "app")
	writeApp(t, dir, "exec sleep 1000")
	if r := w.run("create", "--adopt", "/", "--spec", filepath.Join(dir, "sbx.toml"), "--name", "root"); r.code != exitFailed {
		t.Fatalf("the root directory was adopted: exit %d, %s", r.code, r.err)
	}
	if r := w.run("exec", "root", "--", "ls"); r.code != engine.ExitNotExecutable || !strings.Contains(r.err, "root directory") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	w.ok("rm", "root", "--yes")
}

func TestAnOrdinaryUserSeesTheDemo(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the tests run as an ordinary user: TestTheFleetWorksInEveryIsolation is this test")
	}
	w := newWorld(t, nil)
	base := filepath.Dir(w.home)
	if err := os.Chown(base, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"demo", "--plain"}, {"doctor"}, {"--embed", "create", "--template", "demo", "--name", "mine"}, {"ls"}} {
		cmd := w.command(args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("sbx %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestADemoThatIsCutShortLeavesNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		w := newWorld(t, nil)
		tmp := filepath.Join(filepath.Dir(w.home), "tmp")
		if err := os.MkdirAll(tmp, 0o755); err != nil {
			t.Fatal(err)
		}
		w.env = append(w.env, "TMPDIR="+tmp)
		cmd := w.command("demo", "--plain")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.Contains(lines.Text(), "ready") {
			continue
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // to its end, so that it is never blocked
			continue
		}
		_ = cmd.Wait() // the exit code says it
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("%s: exit %d, want %d", sig, code, exitInterrupted)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("%s: left in the directory for temporary files: %v, %v", sig, left, err)
		}
	}
}
