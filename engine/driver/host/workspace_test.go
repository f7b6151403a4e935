//go:build linux

package host

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/driver"
)

// maker is a Host that makes workspaces and runs nothing, and a box's directory.
func maker(t *testing.T) (*Host, string) {
	t.Helper()
	h := New(Config{Dir: t.TempDir()})
	dir := filepath.Join(h.boxesDir(), "sb-test")
	check(t, os.MkdirAll(dir, 0o755))
	return h, dir
}

func from(kind engine.OriginKind, ref string) driver.Boot {
	return driver.Boot{ID: "sb-test", Origin: engine.Origin{Kind: kind, Ref: ref}}
}

// inDir sees a directory as a box, for lay and look.
func inDir(dir string) *box {
	return &box{workspace: dir, uid: os.Geteuid(), gid: os.Getegid()}
}

func TestTemplateIsUnpackedOnceAndWhole(t *testing.T) {
	h, dir := maker(t)
	boot := from(engine.FromTemplate, "demo")
	boot.Template = func(w driver.FileWriter) error {
		return errors.Join(w.WriteFile("src/main.py", 0o644, []byte("print()")), w.WriteFile("run", 0o4777, []byte("#!")))
	}
	ws, adopted, err := h.makeWorkspace(t.Context(), boot, dir)
	check(t, err)
	if adopted || ws != filepath.Join(dir, "workspace") {
		t.Errorf("made %s, adopted: %v", ws, adopted)
	}
	if diff := cmp.Diff(map[string]string{"src/main.py": "print()", "run": "#!"}, look(t, inDir(ws))); diff != "" {
		t.Error(diff)
	}
	if st, err := os.Stat(filepath.Join(ws, "run")); err != nil || st.Mode() != 0o755 {
		t.Errorf("run is %v, %v", st.Mode(), err)
	}
	check(t, os.Remove(filepath.Join(ws, "run")))
	_, _, err = h.makeWorkspace(t.Context(), boot, dir)
	check(t, err)
	if _, err := os.Stat(filepath.Join(ws, "run")); err == nil {
		t.Error("a workspace that was there was made again")
	}
}

func TestTemplateStaysInTheWorkspaceOrNothingIsMade(t *testing.T) {
	for _, name := range []string{"../x", "/etc/x", "a/../../x", "a\x00b", "dir/", "."} {
		h, dir := maker(t)
		boot := from(engine.FromTemplate, "demo")
		boot.Template = func(w driver.FileWriter) error {
			return errors.Join(w.WriteFile("dir/fine", 0o644, nil), w.WriteFile(name, 0o644, nil))
		}
		if _, _, err := h.makeWorkspace(t.Context(), boot, dir); err == nil {
			t.Errorf("%q was unpacked", name)
		}
		list, err := os.ReadDir(dir)
		check(t, err)
		if len(list) != 0 {
			t.Errorf("%q leaves %v", name, list)
		}
	}
}

func TestCopyIsAsTheOriginalWas(t *testing.T) {
	src := t.TempDir()
	o := inDir(src)
	lay(t, o, map[string]string{
		"a": "1", "run": "#!x", "link": "-> a", "out": "-> /etc/passwd", "up": "-> ../..", "loop": "-> .", "empty/": "",
		"node_modules/x": "1", ".git/HEAD": "ref", "closed/x": "1", "latin\xe4\n": "1",
	})
	l, err := net.Listen("unix", filepath.Join(src, "socket"))
	check(t, err)
	defer l.Close()
	check(t, syscall.Mkfifo(filepath.Join(src, "fifo"), 0o666))
	check(t, os.Chmod(filepath.Join(src, "a"), 0o640))
	check(t, os.Chmod(filepath.Join(src, "closed"), 0o500))
	defer os.Chmod(filepath.Join(src, "closed"), 0o700)
	old := time.Date(2020, 2, 3, 4, 5, 6, 789, time.UTC)
	for _, name := range []string{"a", "closed", "empty"} {
		check(t, os.Chtimes(filepath.Join(src, name), old, old))
	}
	h, dir := maker(t)
	ws, _, err := h.makeWorkspace(t.Context(), from(engine.FromCopy, src), dir)
	check(t, err)
	defer os.Chmod(filepath.Join(ws, "closed"), 0o700)
	want := look(t, o)
	if diff := cmp.Diff(want, look(t, inDir(ws))); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{".", "a", "run", "closed", "empty", ".git/HEAD", "link"} {
		was, err := os.Lstat(filepath.Join(src, name))
		check(t, err)
		is, err := os.Lstat(filepath.Join(ws, name))
		check(t, err)
		if was.Mode() != is.Mode() || !was.ModTime().Equal(is.ModTime()) {
			t.Errorf("%s is %s of %s, want %s of %s", name, is.Mode(), is.ModTime(), was.Mode(), was.ModTime())
		}
	}
	for _, name := range []string{"socket", "fifo"} {
		if _, err := os.Lstat(filepath.Join(ws, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was copied", name)
		}
	}
}

func TestCopyIsBounded(t *testing.T) {
	src := t.TempDir()
	lay(t, inDir(src), map[string]string{"a": strings.Repeat("x", 600), "b": strings.Repeat("x", 600)})
	h, dir := maker(t)
	boot := from(engine.FromCopy, src)
	boot.Spec.Limits.Disk = 1000
	_, _, err := h.makeWorkspace(t.Context(), boot, dir)
	wantCode(t, err, engine.Exhausted)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = h.makeWorkspace(ctx, from(engine.FromCopy, src), dir); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled copy says %v", err)
	}
	list, err := os.ReadDir(dir)
	check(t, err)
	if len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
}

func TestAdoptedDirectoryIsUsedInPlace(t *testing.T) {
	h, dir := maker(t)
	src := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(src, link))
	for _, ref := range []string{src, link, src + "/"} {
		ws, adopted, err := h.makeWorkspace(t.Context(), from(engine.FromAdopted, ref), dir)
		check(t, err)
		if ws != src || !adopted {
			t.Errorf("%s became %s, adopted: %v", ref, ws, adopted)
		}
	}
}

func TestDirectoriesThatAreNobodysProjectAreRefused(t *testing.T) {
	h, dir := maker(t)
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o644))
	home := t.TempDir()
	t.Setenv("HOME", home)
	toData := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(h.cfg.Dir, toData))
	both := []string{"", ".", "relative/dir", "/", "//", file, file + "/x", "/nothing/here", h.cfg.Dir, filepath.Dir(h.cfg.Dir), dir, toData, "/a\x00b"}
	for _, ref := range both {
		if _, _, err := h.makeWorkspace(t.Context(), from(engine.FromCopy, ref), dir); err == nil {
			t.Errorf("%q was copied", ref)
		}
	}
	for _, ref := range append(both, home, filepath.Dir(home), "/etc", "/home", "/usr", "/proc/self", "/tmp", "/dev/shm") {
		if _, _, err := h.makeWorkspace(t.Context(), from(engine.FromAdopted, ref), dir); err == nil {
			t.Errorf("%q was adopted", ref)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "workspace")); err == nil {
		t.Error("something was made")
	}
}

func TestCloneBringsTheRepository(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	src := inDir(t.TempDir())
	lay(t, src, map[string]string{"a": "1", ".gitattributes": "* filter=evil\n"})
	repo(t, src, ".")
	marker := plant(t, src)
	for _, ref := range []string{src.workspace, "file://" + src.workspace} {
		h, dir := maker(t)
		ws, _, err := h.makeWorkspace(t.Context(), from(engine.FromGit, ref), dir)
		check(t, err)
		got := inDir(ws)
		if diff := cmp.Diff(look(t, src), look(t, got)); diff != "" {
			t.Error(diff)
		}
		if s := status(t, got); s != "" {
			t.Errorf("the clone's status is %q", s)
		}
		if list, err := os.ReadDir(filepath.Join(ws, ".git/hooks")); err == nil && len(list) > 0 {
			t.Errorf("the clone has hooks: %v", list)
		}
	}
	if data, err := os.ReadFile(marker); err == nil {
		t.Errorf("ran:\n%s", data)
	}
}

func TestAddressesThatRunCommandsAreRefused(t *testing.T) {
	h, dir := maker(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, ref := range []string{
		"ext::sh -c touch% " + ran, "--upload-pack=touch " + ran, "-u", "ssh://-oProxyCommand=touch " + ran + "/x",
		"fd::17/foo", "http://example.com/x", "ftp://example.com/x", "relative/dir", "", "https://", "https:///x",
		"file://host/x", "ssh://", "a b@c:d", "-x@host:y", "git@-oProxyCommand=x:y", "https://a\nb/", "transport::address",
		h.cfg.Dir, "file://" + h.cfg.Dir,
	} {
		if _, _, err := h.makeWorkspace(t.Context(), from(engine.FromGit, ref), dir); err == nil {
			t.Errorf("%q was cloned", ref)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command ran")
	}
}

func TestCloneThatFailsHidesThePasswordAndLeavesNothing(t *testing.T) {
	h, dir := maker(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	l.Close() // nobody listens there now
	_, _, err = h.makeWorkspace(t.Context(), from(engine.FromGit, "https://user:hunter2@"+l.Addr().String()+"/x.git"), dir)
	wantCode(t, err, engine.Unavailable)
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error tells the password: %v", err)
	}
	list, err := os.ReadDir(dir)
	check(t, err)
	if len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
}

func TestCloneEndsWithItsContext(t *testing.T) {
	h, dir := maker(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // a server that takes the call and never says a word
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
		}
		cancel()
		<-t.Context().Done()
	}()
	_, _, err = h.makeWorkspace(ctx, from(engine.FromGit, "git://"+l.Addr().String()+"/x"), dir)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}

func TestCloneWithoutGitSaysWhatToDo(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("these tests need git")
	}
	h, dir := maker(t)
	t.Setenv("PATH", t.TempDir())
	_, _, err := h.makeWorkspace(t.Context(), from(engine.FromGit, "https://example.com/x"), dir)
	wantCode(t, err, engine.Unavailable)
	if engine.Hint(err) != "install git" {
		t.Errorf("hint is %q", engine.Hint(err))
	}
}
