package template_test

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/spec"
	"sbx/engine/template"
	"sbx/engine/template/demoapp"
)

// TestMain lets the test binary stand for sbx's: templates run
// "$SBX_BIN" demo-app.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "demo-app" {
		os.Exit(demoapp.Command(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestListHasAllTemplatesOfTheSpec(t *testing.T) {
	var names []string
	for _, tpl := range template.List() {
		names = append(names, tpl.Name)
		if tpl.Summary == "" || len(tpl.Revision) != 12 {
			t.Errorf("%s: summary %q, revision %q", tpl.Name, tpl.Summary, tpl.Revision)
		}
	}
	if diff := cmp.Diff([]string{"demo", "go", "node", "python", "static"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestEveryTemplateHasASpecThatIsRightAndAHealthPath(t *testing.T) {
	for _, tpl := range template.List() {
		s := specOf(t, tpl)
		if s.App.Health != "/health" {
			t.Errorf("%s: health is %q", tpl.Name, s.App.Health)
		}
		if _, err := fs.Stat(tpl.Files, ".gitignore"); err != nil {
			t.Errorf("%s: %v", tpl.Name, err)
		}
	}
}

func specOf(t *testing.T, tpl template.Template) engine.Spec {
	t.Helper()
	data, err := fs.ReadFile(tpl.Files, spec.File)
	if err != nil {
		t.Fatal(err)
	}
	s, err := spec.Parse(tpl.Name+"/"+spec.File, data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestModuleFileHasItsRealName(t *testing.T) {
	tpl, err := template.Open("go", "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	fs.WalkDir(tpl.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if diff := cmp.Diff([]string{".gitignore", "go.mod", "main.go", "sbx.toml"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := fs.ReadFile(tpl.Files, "go.mod"); err != nil {
		t.Error(err)
	}
}

func TestUsersTemplateComesBeforeOurs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "node/sbx.toml", "# Mine.\n[app]\ncommand='x'\n")
	write(t, dir, "rails/sbx.toml", "[app]\ncommand='y'\n")
	write(t, dir, "rails/bin/run", "#!/bin/sh\n")
	mine, err := template.Open("node", dir)
	if err != nil || mine.Summary != "Mine." {
		t.Errorf("%+v, %v", mine, err)
	}
	rails, err := template.Open("rails", dir)
	if err != nil || specOf(t, rails).App.Command != "y" {
		t.Errorf("%+v, %v", rails, err)
	}
	if _, err := template.Open("static", dir); err != nil {
		t.Error(err)
	}

	write(t, dir, "rails/bin/run", "#!/bin/bash\n")
	again, err := template.Open("rails", dir)
	if err != nil || again.Revision == rails.Revision {
		t.Errorf("the revision stayed %s after an edit (%v)", again.Revision, err)
	}
}

func TestUnknownTemplateNamesThoseThereAre(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rails/sbx.toml", "")
	for _, name := range []string{"nodejs", "", "../rails", "/etc", "rails/..", "."} {
		_, err := template.Open(name, dir)
		if !errors.Is(err, engine.NotFound) || engine.Hint(err) != "there are: demo, go, node, python, rails, static" {
			t.Errorf("%q: %v (%s)", name, err, engine.Hint(err))
		}
	}
	if _, err := template.Open("demo", filepath.Join(dir, "absent")); err != nil {
		t.Error(err)
	}
}

func TestUsersTemplateMustBeRegularFilesWithASpec(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bare/main.js", "")
	write(t, dir, "linked/sbx.toml", "")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "linked", "secret")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "piped/sbx.toml", "")
	if err := syscall.Mkfifo(filepath.Join(dir, "piped", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bare": "has no sbx.toml", "linked": "secret is not a regular file", "piped": "pipe is not a regular file"} {
		if _, err := template.Open(name, dir); !errors.Is(err, engine.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryTemplateStartsAndIsHealthy runs each as a sandbox would: installed,
// checked and started by the shell, with PORT set.
func TestEveryTemplateStartsAndIsHealthy(t *testing.T) {
	needs := map[string]string{"node": "node", "python": "python3", "go": "go"}
	for _, tpl := range template.List() {
		t.Run(tpl.Name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(needs[tpl.Name]); needs[tpl.Name] != "" && err != nil {
				t.Fatalf("this test needs %s: %v", needs[tpl.Name], err)
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, tpl.Files); err != nil {
				t.Fatal(err)
			}
			app := specOf(t, tpl).App
			for _, command := range []string{app.Install, app.Check} {
				if out, err := shell(t, dir, command, 0).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", command, err, out)
				}
			}
			started(t, dir, app)
		})
	}
}

// started starts an app, waits for it to say that it listens, and asks for its
// health.
func started(t *testing.T, dir string, app engine.ProcessSpec) {
	t.Helper()
	port := freePort(t)
	cmd := shell(t, dir, app.Command, port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	}()
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "listening on http://127.0.0.1:"+strconv.Itoa(port)) {
			healthyAt(t, port)
			return
		}
	}
	t.Fatalf("it ended before it listened:\n%s", said.String())
}

func healthyAt(t *testing.T, port int) {
	t.Helper()
	for _, path := range []string{"/health", "/"} {
		resp, err := http.Get("http://127.0.0.1:" + strconv.Itoa(port) + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || len(body) == 0 || err != nil {
			t.Errorf("%s: %s, %q, %v", path, resp.Status, body, err)
		}
	}
}

func shell(t *testing.T, dir, command string, port int) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SBX_BIN="+os.Args[0], "PORT="+strconv.Itoa(port), "PYTHONUNBUFFERED=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestDemosPartsAreThoseThatItsInstallPutsBack(t *testing.T) {
	tpl, err := template.Open("demo", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, tpl.Files); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "parts")); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, dir, specOf(t, tpl).App.Install, 0).CombinedOutput(); err != nil || !strings.Contains(string(out), "installed 3 of 3 parts") {
		t.Fatalf("%v\n%s", err, out)
	}
	parts, err := fs.Glob(tpl.Files, "parts/*")
	if err != nil || len(parts) != 3 {
		t.Fatal(parts, err)
	}
	for _, name := range parts {
		want, _ := fs.ReadFile(tpl.Files, name)
		got, err := os.ReadFile(filepath.Join(dir, name))
		if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
			t.Error(name, err, diff)
		}
	}
}
