//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/driver"
)

// openTestHost opens a driver on a directory of its own; isolation "" is the
// strongest confinement that this machine has.
func openTestHost(t *testing.T, isolation string) *Host {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	h := New(Config{Dir: dir, Helper: []string{os.Args[0]}, Isolation: isolation})
	check(t, h.Open(t.Context()))
	for dir := h.boxesDir(); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		check(t, os.Chmod(dir, 0o755)) // for the git of the workspace's owner, see userGit
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close the host: %v", err)
		}
	})
	return h
}

// newTestBox boots a box with an empty workspace.
func newTestBox(t *testing.T) *box {
	t.Helper()
	return bootTestBox(t, openTestHost(t, ""))
}

func bootTestBox(t *testing.T, h *Host) *box {
	t.Helper()
	b, err := h.Boot(t.Context(), driver.Boot{
		ID:       engine.SandboxID(engine.NewID(engine.SandboxPrefix)),
		Origin:   engine.Origin{Kind: engine.FromTemplate, Ref: "empty"},
		Template: func(driver.FileWriter) error { return nil },
	})
	check(t, err)
	return b.(*box)
}

// lay lays out a workspace: "name" → content, a trailing slash a directory,
// "-> target" a link, "#!" an executable.
func lay(t *testing.T, b *box, tree map[string]string) {
	t.Helper()
	for name, content := range tree {
		full := filepath.Join(b.workspace, name)
		check(t, os.MkdirAll(filepath.Dir(full), 0o755))
		target, isLink := strings.CutPrefix(content, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			check(t, os.MkdirAll(full, 0o755))
		case isLink:
			_ = os.Remove(full)
			check(t, os.Symlink(target, full))
		default:
			mode := fs.FileMode(0o644)
			if strings.HasPrefix(content, "#!") {
				mode = 0o755
			}
			check(t, os.WriteFile(full, []byte(content), mode))
			check(t, os.Chmod(full, mode))
		}
	}
	give(t, b)
}

// give makes the workspace the box's user's, as it is when a sandbox works.
func give(t *testing.T, b *box) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	check(t, filepath.WalkDir(b.workspace, func(name string, _ fs.DirEntry, err error) error {
		check(t, err)
		return os.Lchown(name, b.uid, b.gid)
	}))
}

// look is the workspace as lay lays it out, .git left out.
func look(t *testing.T, b *box) map[string]string {
	t.Helper()
	tree := make(map[string]string)
	check(t, filepath.WalkDir(b.workspace, func(full string, d fs.DirEntry, err error) error {
		check(t, err)
		name, err := filepath.Rel(b.workspace, full)
		check(t, err)
		switch {
		case d.Name() == ".git":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			if sub, err := os.ReadDir(full); err == nil && len(sub) == 0 {
				tree[name+"/"] = ""
			}
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(full)
			check(t, err)
			tree[name] = "-> " + target
		case d.Type().IsRegular():
			data, err := os.ReadFile(full)
			check(t, err)
			tree[name] = string(data)
		}
		return nil
	}))
	return tree
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode fails unless err has the code.
func wantCode(t *testing.T, err error, code engine.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("error is %v, want one with code %s", err, code)
	}
}

func TestFileIsReadWithItsVersion(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"src/a.txt": "hello"})
	got, err := b.Files().ReadFile(t.Context(), "src/a.txt", 0, 0)
	check(t, err)
	if string(got.Data) != "hello" || got.Name != "a.txt" || got.Version != versionOf([]byte("hello")) || len(got.Version) != 32 {
		t.Fatalf("read %+v", got)
	}
	part, err := b.Files().ReadFile(t.Context(), "src/a.txt", 1, 3)
	check(t, err)
	if string(part.Data) != "ell" || part.Version != got.Version {
		t.Fatalf("part is %q of version %s, want ell of %s", part.Data, part.Version, got.Version)
	}
	beyond, err := b.Files().ReadFile(t.Context(), "src/a.txt", 100, 0)
	check(t, err)
	if len(beyond.Data) != 0 {
		t.Fatalf("beyond the end is %q", beyond.Data)
	}
}

func TestLargeFileIsReadInParts(t *testing.T) {
	b := newTestBox(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), engine.MaxFile/16+1)
	lay(t, b, map[string]string{"large": string(large)})
	_, err := b.Files().ReadFile(t.Context(), "large", 0, 0)
	wantCode(t, err, engine.Invalid)
	part, err := b.Files().ReadFile(t.Context(), "large", engine.MaxFile, 4)
	check(t, err)
	if string(part.Data) != "0123" || part.Size != int64(len(large)) {
		t.Fatalf("part is %q of %d bytes", part.Data, part.Size)
	}
}

func TestWriteReplacesOnlyWhatWasRead(t *testing.T) {
	b := newTestBox(t)
	f := b.Files()
	v1, err := f.WriteFile(t.Context(), "deep/er/new.txt", "", []byte("one"))
	check(t, err)
	_, err = f.WriteFile(t.Context(), "deep/er/new.txt", "", []byte("two"))
	wantCode(t, err, engine.Conflict)
	v2, err := f.WriteFile(t.Context(), "deep/er/new.txt", v1, []byte("two"))
	check(t, err)
	_, err = f.WriteFile(t.Context(), "deep/er/new.txt", v1, []byte("three"))
	wantCode(t, err, engine.Conflict)
	_, err = f.WriteFile(t.Context(), "gone.txt", v2, []byte("three"))
	wantCode(t, err, engine.Conflict)
	_, err = f.WriteFile(t.Context(), "no/dir/gone.txt", v2, []byte("three"))
	wantCode(t, err, engine.NotFound)
	if diff := cmp.Diff(map[string]string{"deep/er/new.txt": "two"}, look(t, b)); diff != "" {
		t.Fatal(diff)
	}
}

func TestWriteKeepsModeAndOwner(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"run.sh": "#!/bin/sh\n", "secret": "x"})
	check(t, os.Chmod(filepath.Join(b.workspace, "secret"), 0o600))
	for name, old := range map[string]string{"run.sh": "#!/bin/sh\n", "secret": "x", "dir/new": ""} {
		replaces := versionOf([]byte(old))
		if old == "" {
			replaces = ""
		}
		_, err := b.Files().WriteFile(t.Context(), name, replaces, []byte("changed"))
		check(t, err)
	}
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o755, "secret": 0o600, "dir/new": 0o644, "dir": fs.ModeDir | 0o755} {
		st, err := os.Lstat(filepath.Join(b.workspace, name))
		check(t, err)
		sys := st.Sys().(*syscall.Stat_t)
		if st.Mode() != mode || int(sys.Uid) != b.uid || int(sys.Gid) != b.gid {
			t.Errorf("%s is %s of %d:%d, want %s of %d:%d", name, st.Mode(), sys.Uid, sys.Gid, mode, b.uid, b.gid)
		}
	}
}

func TestWriteRefusesWhatIsNoPlainFile(t *testing.T) {
	b := newTestBox(t)
	outside := filepath.Join(t.TempDir(), "outside")
	check(t, os.WriteFile(outside, []byte("precious"), 0o644))
	lay(t, b, map[string]string{
		"real/file": "x", "link": "-> real/file", "dirlink": "-> real", "out": "-> " + outside, "dir/": "",
		"dangling": "-> nowhere",
	})
	check(t, os.Link(filepath.Join(b.workspace, "real/file"), filepath.Join(b.workspace, "hard")))
	check(t, syscall.Mkfifo(filepath.Join(b.workspace, "fifo"), 0o666))
	give(t, b)
	for _, name := range []string{"link", "dirlink/file", "dirlink/new", "out", "out/x", "dir", "hard", "fifo", "fifo/x", "dangling", "."} {
		for _, replaces := range []engine.Version{"", versionOf([]byte("x")), versionOf([]byte("precious"))} {
			if _, err := b.Files().WriteFile(t.Context(), name, replaces, []byte("y")); err == nil {
				t.Errorf("%s was written", name)
			}
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "precious" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
	if got := look(t, b)["real/file"]; got != "x" {
		t.Errorf("the linked file is %q", got)
	}
}

func TestFIFODoesNotHangAnything(t *testing.T) {
	b := newTestBox(t)
	check(t, syscall.Mkfifo(filepath.Join(b.workspace, "fifo"), 0o666))
	give(t, b)
	done := make(chan error)
	go func() {
		_, err := b.Files().ReadFile(context.Background(), "fifo", 0, 0)
		_, err2 := b.Files().ReadDir(context.Background(), "fifo")
		err3 := b.Files().Walk(context.Background(), "fifo", func(string, engine.FileInfo) bool { return false })
		done <- errors.Join(err, err2, err3)
	}()
	select {
	case err := <-done:
		wantCode(t, err, engine.Invalid)
	case <-time.After(5 * time.Second):
		t.Fatal("reading a FIFO hangs")
	}
}

func TestLinksStayInsideAndTellNothing(t *testing.T) {
	b := newTestBox(t)
	outside := t.TempDir()
	check(t, os.WriteFile(filepath.Join(outside, "is"), []byte("secret"), 0o644))
	lay(t, b, map[string]string{
		"a/file": "inside", "good": "-> a/file", "is": "-> " + outside + "/is", "isnt": "-> " + outside + "/isnt",
		"up": "-> ../../../../../../etc/passwd", "upnt": "-> ../../../../../../etc/nothing", "environ": "-> /proc/self/environ",
	})
	got, err := b.Files().ReadFile(t.Context(), "good", 0, 0)
	if err != nil || string(got.Data) != "inside" {
		t.Fatalf("a link inside reads %q, %v", got.Data, err)
	}
	words := make(map[string]bool)
	for _, name := range []string{"is", "isnt", "up", "upnt", "environ"} {
		_, err := b.Files().ReadFile(t.Context(), name, 0, 0)
		wantCode(t, err, engine.Forbidden)
		words[strings.Replace(err.Error(), fmt.Sprintf("%q", name), "", 1)] = true
	}
	if len(words) != 1 {
		t.Fatalf("the answers differ: %v", words)
	}
}

func TestReadDirIsSortedAndShowsLinks(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"b": "22", "a/x": "1", "c": "-> b"})
	list, err := b.Files().ReadDir(t.Context(), "")
	check(t, err)
	var got []string
	for _, fi := range list {
		got = append(got, fmt.Sprintf("%s %d %v %s", fi.Name, fi.Size, fi.Mode.IsDir(), fi.Target))
	}
	for i := range got {
		if strings.HasPrefix(got[i], "a ") {
			got[i] = "a"
		}
	}
	if diff := cmp.Diff([]string{"a", "b 2 false ", "c 1 false b"}, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestWalkPassesOverWhatCanBeRebuilt(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{
		"src/z.js": "", "src/a.js": "", "node_modules/x/index.js": "", ".git/config": "", "sub/.venv/bin/python": "",
		".env": "", "loop": "-> .", tempPrefix + "half": "",
	})
	var got []string
	check(t, b.Files().Walk(t.Context(), ".", func(name string, _ engine.FileInfo) bool {
		got = append(got, name)
		return false
	}))
	want := []string{".env", ".git", "loop", "node_modules", "src", "src/a.js", "src/z.js", "sub", "sub/.venv"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	got = nil
	check(t, b.Files().Walk(t.Context(), "src", func(name string, _ engine.FileInfo) bool {
		got = append(got, name)
		return true
	}))
	if diff := cmp.Diff([]string{"src/a.js"}, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestSymlinkRacerNeverGetsAnythingOut(t *testing.T) {
	b := newTestBox(t)
	outside := t.TempDir()
	check(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o666))
	check(t, os.Chmod(outside, 0o777))
	lay(t, b, map[string]string{"real/f": "mine"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() { // swaps d between a directory and a link to one outside
		defer close(done)
		d, real := filepath.Join(b.workspace, "d"), filepath.Join(b.workspace, "real")
		for ctx.Err() == nil {
			_ = os.Symlink(outside, d)
			_ = os.Remove(d)
			_ = os.Rename(real, d)
			_ = os.Rename(d, real)
			runtime.Gosched()
		}
	}()
	reads := 0
	for ctx.Err() == nil {
		if got, err := b.Files().ReadFile(context.Background(), "d/f", 0, 0); err == nil {
			if reads++; string(got.Data) == "secret" {
				t.Fatal("read a file outside of the workspace")
			}
		}
		_, _ = b.Files().WriteFile(context.Background(), "d/new", "", []byte("x"))
		_ = b.Files().Walk(context.Background(), "", func(string, engine.FileInfo) bool { return false })
	}
	<-done
	list, err := os.ReadDir(outside)
	check(t, err)
	if len(list) != 1 {
		t.Fatalf("outside there is %v now", list)
	}
	t.Logf("%d reads came through", reads)
}
