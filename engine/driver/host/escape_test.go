//go:build linux

package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

// confining are the means that keep what the agent runs in its box.
var confining = []string{"bubblewrap", "landlock"}

// A prison is a box, and things outside that only confinement keeps from it.
type prison struct {
	*testing.T
	host            *host.Host
	box             driver.Box
	outside, socket string
	port            int
}

func newPrison(t *testing.T, isolation string) *prison {
	p := &prison{T: t}
	data := filepath.Join(tempDir(t), "data")
	p.outside = filepath.Join(tempDir(t), "outside")
	open(t, p.outside)
	open(t, filepath.Join(data, "private"))
	write(t, filepath.Join(p.outside, "secret"), "S3CRET")
	write(t, filepath.Join(data, "private", "secret"), "S3CRET")
	p.host = openHost(t, host.Config{Dir: data, Isolation: isolation})
	p.box = bootBox(t, p.host)

	p.socket = filepath.Join(data, "private", "sock")
	listen(t, "unix", p.socket)
	must(t, os.Chmod(p.socket, 0o777))
	p.port = listen(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	return p
}

// open makes a directory that everybody may write.
func open(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o777))
	must(t, os.Chmod(dir, 0o777))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o666))
	must(t, os.Chmod(name, 0o666))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen accepts and answers with a secret.
func listen(t *testing.T, network, address string) net.Addr {
	t.Helper()
	l, err := net.Listen(network, address)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "S3CRET")
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr()
}

func bootBox(t *testing.T, h *host.Host) driver.Box {
	t.Helper()
	box, err := h.Boot(t.Context(), driver.Boot{
		ID: engine.SandboxID(engine.NewID(engine.SandboxPrefix)), Origin: engine.Origin{Kind: engine.FromTemplate},
		Template: func(w driver.FileWriter) error {
			for _, name := range []string{"src/engine/a.ts", "src/engine/deep/b.ts", "src/other.ts", "lib/x.ts", "top.txt"} {
				if err := w.WriteFile(name, 0o644, []byte("as it was\n")); err != nil {
					return err
				}
			}
			return nil
		},
	})
	must(t, err)
	t.Cleanup(func() {
		if err := box.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return box
}

// try runs a command and returns all it wrote.
func (p *prison) try(profile driver.Profile, shell string) (string, engine.Exit) {
	p.Helper()
	return runIn(p.T, p.box, driver.Command{
		Command: engine.Command{Shell: shell}, Profile: profile,
		Protected: []string{"src/engine", "src/missing", "gone/deep"},
	})
}

func runIn(t *testing.T, box driver.Box, cmd driver.Command) (string, engine.Exit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out := drivertest.NewOutput()
	proc, err := box.Start(ctx, engine.ProcessID(engine.NewID(engine.ProcessPrefix)), cmd, out, nil)
	must(t, err)
	exit, err := proc.Wait(ctx)
	must(t, err)
	return out.String(), exit
}

// fingerprint is every path below dir with what tells it from another.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		sum := ""
		if fi.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			h := sha256.Sum256(data)
			sum = hex.EncodeToString(h[:4])
		}
		found[strings.TrimPrefix(name, dir)] = fmt.Sprint(fi.Mode(), fi.Sys().(*syscall.Stat_t).Uid, sum)
		return nil
	}))
	return found
}

// connect is a python program that shows what a socket says.
func connect(family, address string) string {
	return fmt.Sprintf(`python3 -c 'import socket; s=socket.socket(socket.%s); s.settimeout(2); s.connect(%s); print(s.recv(99))'`, family, address)
}

func TestNothingOutsideIsWritableOrReadable(t *testing.T) {
	each(t, confining, func(t *testing.T, isolation string) {
		for _, profile := range []driver.Profile{driver.ProfileApp, driver.ProfileAgent} {
			t.Run(string(profile), func(t *testing.T) { tryOutside(newPrison(t, isolation), profile) })
		}
	})
}

func tryOutside(p *prison, profile driver.Profile) {
	other := bootBox(p.T, p.host)
	_, err := other.Files().WriteFile(p.Context(), "mine", "", []byte("S3CRET"))
	must(p.T, err)
	data := filepath.Dir(filepath.Dir(p.socket))
	before := fingerprint(p.T, p.outside)
	up := strings.Repeat("../", 20)
	pid := os.Getpid()
	attempts := []string{
		"cat " + p.outside + "/secret",
		"cat " + up + p.outside + "/secret",
		"cat lib/" + up + p.outside + "/secret",
		"ln -s " + p.outside + " lib/l; cat lib/l/secret; echo x > lib/l/new; ls lib/l",
		"echo x > " + p.outside + "/new", "echo x >> " + p.outside + "/secret", "rm -f " + p.outside + "/secret",
		"mkdir " + p.outside + "/dir", "mv " + p.outside + "/secret .", "ln " + p.outside + "/secret lib/hard && cat lib/hard",
		"for d in /proc/[0-9]*; do cat $d/root" + p.outside + "/secret; cat $d/cwd/secret; done",
		"echo x > /proc/1/root" + p.outside + "/new", "echo x > /proc/$PPID/root" + p.outside + "/new",
		fmt.Sprintf("cat /proc/%d/root%s/secret; cat /proc/%d/environ", pid, p.outside, pid),
		"cat /proc/*/environ | tr '\\0' '\\n'",
		"cat " + data + "/private/secret", "ls " + data, "find " + data + " -name box.json -exec cat {} +",
		"cat " + other.Location() + "/mine", "echo x > " + other.Location() + "/new",
		"cat " + up + "mine ../../*/workspace/mine",
		connect("AF_UNIX", "\""+p.socket+"\""),
		"unshare -Urm sh -c 'mount --bind / /mnt; cat /mnt" + p.outside + "/secret'",
		"echo x > /proc/sys/kernel/core_pattern; echo x > /proc/sysrq-trigger",
		"touch /usr/new /etc/new /bin/new /usr/local/new /var/new /root/new /home/new",
	}
	if p.host.Isolation().Name == "bubblewrap" { // Landlock has no rule for it, and says so
		attempts = append(attempts, "chmod 000 "+p.outside)
	}
	for _, shell := range attempts {
		out, _ := p.try(profile, shell)
		if strings.Contains(out, "S3CRET") {
			p.Errorf("%s\nshows a secret: %q", shell, out)
		}
	}
	if diff := cmp.Diff(before, fingerprint(p.T, p.outside)); diff != "" {
		p.Errorf("something outside has changed:\n%s", diff)
	}
	for _, name := range []string{"/usr/new", "/etc/new", "/usr/local/new", "/var/new", other.Location() + "/new"} {
		if _, err := os.Lstat(name); err == nil {
			p.Errorf("%s was made", name)
		}
	}
	if out, _ := p.try(profile, "grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs)' /proc/self/status"); !strings.Contains(out, "CapEff:\t0000000000000000") ||
		!strings.Contains(out, "CapPrm:\t0000000000000000") || !strings.Contains(out, "NoNewPrivs:\t1") {
		p.Errorf("it has privileges: %s", out)
	}
}

// tampering are ways to change what is protected.
var tampering = []string{
	"echo x > src/engine/a.ts", "echo x >> src/engine/a.ts", "sed -i s/was/is/ src/engine/a.ts", "cp top.txt src/engine/a.ts",
	"rm -rf src/engine", "rm -rf src", "rm -rf .git", "mv src/engine moved", "mv src moved", "mv src/engine/a.ts a.ts",
	"mv src moved && mkdir -p src/engine && echo x > src/engine/a.ts",
	"mv src/engine/deep deeper", "ln -sfn /tmp src/engine", "ln -sf /etc/passwd src/engine/a.ts", "ln -s x src/engine/new",
	"touch src/engine/new", "mkdir src/engine/new", "mkfifo src/engine/fifo", "cd src/engine && echo x > new",
	"ln src/engine/a.ts hard && echo x > hard", "echo x > lib/f; mv lib/f src/engine/a.ts",
	"mkdir -p src/missing", "echo x > src/missing", "mkdir -p src/missing/sub", "ln -s ../lib src/missing", "echo x > src/missing/file", "mv lib src/missing",
	"mkdir -p gone/deep", "mkdir -p gone && echo x > gone/deep", "mkdir -p gone/deep/er && echo x > gone/deep/er/f", "mv lib gone",
	"git init -q; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x", "git config core.hooksPath /tmp", "git checkout -q -b other",
	"git add -A", "echo x > .git/hooks/pre-commit", "mv .git git", "echo '[core]' >> .git/config",
	"tar cf lib/t.tar src && tar xf lib/t.tar && echo changed", "cp -r lib/. src/engine/",
	"python3 -c 'import os; os.rename(\"src\", \"lib/src\")'", "find . -delete", "git clean -qfdx", "git checkout -q .",
	"unshare -Urm sh -c 'umount -l src/engine; echo x > src/engine/a.ts'", "unshare -Urm mount -o remount,bind,rw src/engine; echo x > src/engine/a.ts",
	"for d in /proc/[0-9]*; do echo x > $d/cwd/src/engine/a.ts; echo x > $d/root$PWD/src/engine/a.ts; done",
	"for f in /proc/[0-9]*/fd/*; do echo x > $f/src/engine/a.ts; done",
	"(sleep 0.01; echo x > src/engine/a.ts) & mv src moved; wait",
}

func TestProtectedPathsStayAsTheyAre(t *testing.T) {
	each(t, confining, func(t *testing.T, isolation string) {
		p := newPrison(t, isolation)
		if out, exit := p.try(driver.ProfileApp, "git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm first"); exit.Code != 0 {
			t.Fatal(out)
		}
		ws := p.box.Location()
		before := [2]map[string]string{fingerprint(t, ws+"/src/engine"), fingerprint(t, ws+"/.git")}
		for _, shell := range tampering {
			out, _ := p.try(driver.ProfileAgent, shell)
			after := [2]map[string]string{fingerprint(t, ws+"/src/engine"), fingerprint(t, ws+"/.git")}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%s\nchanged what is protected: %s\n%s", shell, out, diff)
			}
			for _, name := range []string{"src/missing", "gone", "gone/deep"} {
				if _, err := os.Lstat(filepath.Join(ws, name)); err == nil && !(name == "gone" && isolation == "bubblewrap") {
					t.Fatalf("%s\nmade %s: %s", shell, name, out)
				}
			}
			p.try(driver.ProfileApp, "mkdir -p lib; for f in lib/x.ts top.txt src/other.ts; do echo as it was > $f; done")
		}
	})
}

func TestAMissingRepositoryIsNotMade(t *testing.T) {
	each(t, confining, func(t *testing.T, isolation string) {
		p := newPrison(t, isolation)
		out, _ := p.try(driver.ProfileAgent, "git init -q .; mkdir .git; mkdir .git/hooks; echo x > .git/config; echo free > lib/x.ts; cat lib/x.ts")
		if _, err := os.Lstat(filepath.Join(p.box.Location(), ".git")); err == nil {
			t.Errorf("there is a .git: %s", out)
		}
		if !strings.Contains(out, "free") {
			t.Errorf("what is not protected can't be written: %s", out)
		}
	})
}

func TestTheAgentHasNoNetwork(t *testing.T) {
	each(t, confining, func(t *testing.T, isolation string) {
		p := newPrison(t, isolation)
		shell := connect("AF_INET", fmt.Sprintf("(\"127.0.0.1\", %d)", p.port))
		if out, _ := p.try(driver.ProfileAgent, shell); strings.Contains(out, "S3CRET") {
			t.Errorf("the agent reached the host: %s", out)
		}
		if out, _ := p.try(driver.ProfileApp, shell); !strings.Contains(out, "S3CRET") {
			t.Errorf("the app did not reach the host: %s", out)
		}
		out, _ := runIn(t, p.box, driver.Command{Command: engine.Command{Shell: shell}, Profile: driver.ProfileAgent, Network: true})
		if !strings.Contains(out, "S3CRET") {
			t.Errorf("the agent with a network did not reach the host: %s", out)
		}
	})
}
