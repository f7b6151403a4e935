package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sbx/engine"
)

// What data directories do: they fill up, can't be written, can't be found,
// are something else, or come back damaged.

// small mounts a file system of so many megabytes for the length of a test.
func small(t *testing.T, dir, size, flags string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root, which CI is")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	options := "mode=700,size=" + size
	var mode uintptr
	if flags == "ro" {
		mode = syscall.MS_RDONLY
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", mode, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill takes all room that is left and returns what gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "neighbour")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFullDiskIsSaidAndPasses(t *testing.T) {
	needCommand(t, "git")
	w := newWorld(t, nil)
	defer w.stopEngine(syscall.SIGTERM) // before the file system goes
	small(t, w.home, "64m", "")
	w.ok("create", "--template", "demo", "--name", "shop")
	w.ok("create", "--template", "demo", "--name", "bakery")
	pid := w.enginePID()
	free := fill(t, w.home)
	r := w.run("create", "--template", "demo", "--name", "late")
	if r.code == 0 || !strings.Contains(r.err, "full") && !strings.Contains(r.err, "no space") {
		t.Errorf("a create on a full disk: exit %d, %s%s", r.code, r.out, r.err)
	}
	w.run("exec", "shop", "--", "rm parts/menu.txt; echo x > filler")
	w.run("restart", "shop")
	if got := w.enginePID(); got != pid {
		t.Fatalf("the engine was %d and is %d", pid, got)
	}
	if h := w.health("bakery"); h != engine.Ready {
		t.Errorf("the neighbour's health is %s", h)
	}
	free()
	w.eventually("there is room again, and a command runs", func() bool { return w.run("exec", "bakery", "--", "true").code == 0 })
	w.ok("exec", "shop", "--", "rm -f parts/menu.txt")
	w.run("restart", "shop") // while it is healed already: busy
	w.eventually("shop is healed", func() bool {
		h := w.health("shop")
		if h == engine.Broken {
			w.run("heal", "shop")
		}
		return h == engine.Ready
	})
	w.run("rm", "late", "--yes")
	w.ok("create", "--template", "demo", "--name", "later")
	if got := w.enginePID(); got != pid {
		t.Errorf("the engine was %d and is %d", pid, got)
	}
}

func TestADataDirectoryThatCannotBeIsRefusedInWords(t *testing.T) {
	w := newWorld(t, nil)
	base := filepath.Dir(w.home)
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sealed := filepath.Join(base, "sealed")
	small(t, sealed, "1m", "ro")
	for _, home := range []string{file, filepath.Join(file, "below"), sealed, filepath.Join(sealed, "below")} {
		for _, args := range [][]string{{"create", "--template", "demo"}, {"serve"}, {"serve", "--detach"}, {"--embed", "create"}} {
			r := w.run(append([]string{"--home", home}, args...)...)
			if r.code == 0 || r.code > exitRefused || !strings.Contains(r.err, "SBX_HOME") {
				t.Errorf("%s on %s: exit %d, %q", args, home, r.code, r.err)
			}
		}
		if r := w.run("--home", home, "doctor"); r.code != 0 || !strings.Contains(r.out, "missing  data") {
			t.Errorf("doctor on %s: exit %d\n%s%s", home, r.code, r.out, r.err)
		}
		if r := w.run("--home", home, "ls"); r.code > exitRefused || strings.Contains(r.err, "goroutine") {
			t.Errorf("ls on %s: exit %d, %s", home, r.code, r.err)
		}
	}
}

func TestADataDirectoryMayBeFarAwayAndOddlyNamed(t *testing.T) {
	for _, name := range []string{strings.Repeat("a-long-name/", 12) + "data", "with space/ünï'\"$x/data"} {
		w := newWorld(t, nil)
		home := filepath.Join(filepath.Dir(w.home), name)
		if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
			t.Fatal(err)
		}
		w.env = append(w.env, "SBX_HOME="+home)
		w.home = home
		w.ok("create", "--template", "demo", "--name", "shop")
		if out := w.ok("exec", "shop", "--", "echo $PWD"); !strings.HasPrefix(out, home) {
			t.Errorf("it runs in %q", out)
		}
		socket := socketPath(home)
		w.stopEngine(syscall.SIGTERM)
		if _, err := os.Stat(socket); err == nil {
			t.Errorf("%s is left", socket)
		}
		if dir := filepath.Dir(socket); dir != home {
			if left, err := os.ReadDir(dir); err == nil && len(left) == 0 {
				t.Errorf("%s is left, with nothing in it", dir)
			}
		}
	}
}

func TestSomebodyElsesSocketIsNotDialled(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make what is another's")
	}
	w := newWorld(t, nil)
	tmp := filepath.Join(filepath.Dir(w.home), "tmp")
	theirs := filepath.Join(tmp, "sbx-0")
	if err := os.MkdirAll(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+tmp)
	far := filepath.Join(filepath.Dir(w.home), strings.Repeat("a-long-name/", 12))
	for _, args := range [][]string{{"create"}, {"serve"}} {
		if r := w.run(append([]string{"--home", far}, args...)...); r.code == 0 || !strings.Contains(r.err, "not yours") {
			t.Errorf("sbx %v: exit %d, %q", args, r.code, r.err)
		}
	}
}

func TestADamagedDatabaseIsSaidAndCostsNoWorkspace(t *testing.T) {
	w := newWorld(t, nil)
	w.ok("create", "--template", "demo", "--name", "shop")
	w.ok("exec", "shop", "--", "echo precious > mine")
	w.stopEngine(syscall.SIGTERM)
	db := filepath.Join(w.home, "sbx.db")
	good, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{[]byte("this is no database, and long enough to be looked at as one"), good[:len(good)/2], append(make([]byte, 4096), good[4096:]...)} {
		if err := os.WriteFile(db, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"create"}, {"ls"}, {"serve"}, {"--embed", "exec", "shop", "--", "true"}} {
			r := w.run(args...)
			if r.code == 0 || r.code > exitRefused || !strings.Contains(r.err, "sbx.db") {
				t.Errorf("sbx %v: exit %d, %q", args, r.code, r.err)
			}
		}
	}
	mine, _ := filepath.Glob(filepath.Join(w.home, "boxes", "*", "workspace", "mine"))
	if len(mine) != 1 {
		t.Errorf("the workspace is gone: %v", mine)
	}
	if err := os.WriteFile(db, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.ok("--embed", "exec", "shop", "--", "cat mine"); out != "precious\n" {
		t.Errorf("put back, it has %q", out)
	}
}
