//go:build linux

package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

func app(shell string) driver.Command {
	return driver.Command{Command: engine.Command{Shell: shell}, Profile: driver.ProfileApp}
}

func TestToolchainsOnThePathWorkInside(t *testing.T) {
	prefix := filepath.Join(tempDir(t), "tool")
	open(t, prefix+"/bin")
	open(t, prefix+"/lib")
	write(t, prefix+"/lib/word", "from the prefix")
	must(t, os.WriteFile(prefix+"/bin/my-tool", []byte("#!/bin/sh\ncat \"${0%/*}/../lib/word\"\n"), 0o755))
	elsewhere := filepath.Join(tempDir(t), "linked")
	open(t, elsewhere)
	must(t, os.WriteFile(elsewhere+"/real", []byte("#!/bin/sh\necho by a link\n"), 0o755))
	must(t, os.Symlink(elsewhere+"/real", prefix+"/bin/my-link"))
	t.Setenv("PATH", prefix+"/bin:"+os.Getenv("PATH"))
	for _, isolation := range confining {
		t.Run(isolation, func(t *testing.T) {
			requireMeans(t, isolation)
			box := bootBox(t, openHost(t, host.Config{Isolation: isolation}))
			out, exit := runIn(t, box, app("my-tool && my-link && echo x > "+prefix+"/lib/new"))
			if !strings.Contains(out, "from the prefix") || !strings.Contains(out, "by a link") || exit.Code == 0 {
				t.Errorf("exit %d: %s", exit.Code, out)
			}
		})
	}
}

func TestAnAdoptedDirectoryOfRootIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can have one and could use it")
		return
	}
	dir := filepath.Join(tempDir(t), "project")
	must(t, os.Mkdir(dir, 0o755))
	boot := driver.Boot{ID: "sb-adopted", Origin: engine.Origin{Kind: engine.FromAdopted, Ref: dir}}
	_, err := openHost(t, host.Config{}).Boot(t.Context(), boot)
	if !errors.Is(err, engine.Forbidden) || !strings.Contains(engine.Hint(err), "--allow-root") {
		t.Errorf("got %v (hint %q), want a refusal that names --allow-root", err, engine.Hint(err))
	}
	box, err := openHost(t, host.Config{AllowRoot: true}).Boot(t.Context(), boot)
	must(t, err)
	out, _ := runIn(t, box, app("id -u; head -c1 /etc/shadow 2>/dev/null | wc -c; grep CapEff /proc/self/status; echo x > /proc/sys/kernel/core_pattern"))
	if !strings.HasPrefix(out, "0\n0\n") || !strings.Contains(out, "CapEff:\t0000000000000000") || !strings.Contains(out, "ead-only") {
		t.Errorf("as root it got %q", out)
	}
	must(t, box.Destroy(t.Context()))
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the adopted directory is gone: %v", err)
	}
}

func TestAnAdoptedDirectoryKeepsItsOwner(t *testing.T) {
	uid := os.Geteuid()
	dir := filepath.Join(tempDir(t), "project")
	must(t, os.Mkdir(dir, 0o755))
	if uid == 0 {
		uid = 54321
		must(t, os.Chown(dir, uid, uid))
	}
	h := openHost(t, host.Config{})
	box, err := h.Boot(t.Context(), driver.Boot{ID: "sb-adopted", Origin: engine.Origin{Kind: engine.FromAdopted, Ref: dir}})
	must(t, err)
	if out, _ := runIn(t, box, app("pwd; id -u; echo x > made; stat -c %u made .")); out != fmt.Sprintf("%s\n%[2]d\n%[2]d\n%[2]d\n", dir, uid) {
		t.Errorf("got %q", out)
	}
	must(t, box.Destroy(t.Context()))
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Errorf("the adopted directory was not left alone: %v", err)
	}
}

func TestEverySandboxOfRootHasAUserOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("an ordinary user has only itself")
		return
	}
	h := openHost(t, host.Config{})
	seen := map[string]bool{}
	for range 3 {
		out, _ := runIn(t, bootBox(t, h), app("id -u; id -G"))
		uid, group, _ := strings.Cut(strings.TrimSpace(out), "\n")
		n, err := strconv.Atoi(uid)
		if err != nil || n < 200000 || group != uid || seen[uid] {
			t.Errorf("it runs as %q, seen %v", out, seen)
		}
		seen[uid] = true
	}
}

func TestALinkCannotBeProtected(t *testing.T) {
	requireMeans(t, "bubblewrap")
	box := bootBox(t, openHost(t, host.Config{Isolation: "bubblewrap"}))
	runIn(t, box, app("ln -s /etc link; ln -s src way"))
	for _, name := range []string{"link", "way/engine", "../x", "/etc", ".", "top.txt/x"} {
		cmd := driver.Command{Command: engine.Command{Shell: "true"}, Profile: driver.ProfileAgent, Protected: []string{name}}
		if _, err := box.Start(t.Context(), "ps-a", cmd, drivertest.NewOutput(), nil); !errors.Is(err, engine.Invalid) {
			t.Errorf("protecting %s: %v, want invalid", name, err)
		}
	}
}

func TestWithoutConfinementTheAgentIsRefused(t *testing.T) {
	h := openHost(t, host.Config{Isolation: "none"})
	if h.Isolation().Confines || h.Isolation().Name != "none" || len(h.Isolation().Stronger) == 0 {
		t.Errorf("it claims %+v", h.Isolation())
	}
	cmd := app("true")
	cmd.Profile = driver.ProfileAgent
	_, err := bootBox(t, h).Start(t.Context(), "ps-a", cmd, drivertest.NewOutput(), nil)
	if !errors.Is(err, engine.Unavailable) || engine.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
}

func TestAnUnknownIsolationIsRefused(t *testing.T) {
	h := host.New(host.Config{Dir: tempDir(t), Helper: launcher(), Isolation: "walls"})
	if err := h.Open(t.Context()); !errors.Is(err, engine.Invalid) {
		t.Errorf("got %v", err)
	}
}

// server is a python program that answers on a port, whoever asks.
func server(port int) string {
	return fmt.Sprintf(`exec python3 -c 'import socket
s = socket.create_server(("127.0.0.1", %d))
print("ready", flush=True)
while True:
    c = s.accept()[0]
    c.send(b"hello")
    c.close()'`, port)
}

func TestAPortsHolderIsKnown(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		first := 31000 + 100*slices.Index(means, isolation) // other engines may be at work on this machine
		h := openHost(t, host.Config{Isolation: isolation, PortRange: [2]int{first, first + 99}})
		box, other := bootBox(t, h), bootBox(t, h)
		port, err := box.FreePort(t.Context(), nil)
		must(t, err)
		out := drivertest.NewOutput()
		p, err := box.Start(t.Context(), "ps-server", app(server(port)), out, nil)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		must(t, out.Await(ctx, "ready"))
		holder, err := box.PortHolder(ctx, port)
		must(t, err)
		if !holder.Own || !holder.Live || holder.PID == 0 || !strings.HasPrefix(holder.Name, "python") {
			t.Errorf("its own server is %+v", holder)
		}
		if holder, err = other.PortHolder(ctx, port); err != nil || !holder.Held || holder.Own || holder.Live {
			t.Errorf("for another box it is %+v, %v", holder, err)
		}
		conn, err := box.Dial(ctx, port)
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		var word [5]byte
		if _, err := conn.Read(word[:]); err != nil || string(word[:]) != "hello" {
			t.Errorf("it says %q, %v", word, err)
		}
		must(t, p.Kill(ctx, 0))
		if holder, err = box.PortHolder(ctx, port); err != nil || holder.Held {
			t.Errorf("after its end it is held by %+v, %v", holder, err)
		}
	})
}

func TestUsageSeesWorkAndMemory(t *testing.T) {
	h := openHost(t, host.Config{})
	box := bootBox(t, h)
	out := drivertest.NewOutput()
	_, err := box.Start(t.Context(), "ps-busy", app(`python3 -c 'b=bytearray(64<<20); print("ready",flush=True)
while True: pass'`), out, nil)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, out.Await(ctx, "ready"))
	for {
		u, err := box.Usage(ctx)
		must(t, err) // until the deadline
		if u.CPU > 0.05 && u.Memory > 60<<20 && u.Memory < 200<<20 {
			return
		}
	}
}

func TestAWeakerIsolationThanRequiredIsRefused(t *testing.T) {
	for _, c := range []struct {
		isolation, require string
		want               engine.Code
	}{
		{"none", "landlock", engine.Forbidden},
		{"none", "bubblewrap", engine.Forbidden},
		{"none", "none", ""},
		{"none", "", ""},
		{"none", "walls", engine.Invalid},
	} {
		h := host.New(host.Config{Dir: tempDir(t), Helper: launcher(), Isolation: c.isolation, Require: c.require})
		err := h.Open(t.Context())
		if engine.AsCode(err) != c.want || c.want != "" && engine.Hint(err) == "" {
			t.Errorf("%s where %q is required: %v (hint %q)", c.isolation, c.require, err, engine.Hint(err))
		}
		if err == nil {
			must(t, h.Close())
		}
	}
}
