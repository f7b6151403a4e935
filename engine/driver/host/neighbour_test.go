//go:build linux

package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
)

// at is a python program over one line of it.
func at(program string) string { return "python3 -c '" + program + "'" }

const attach = `import ctypes
c = ctypes.CDLL(None, use_errno=True)
print("attached" if c.ptrace(16, %d, 0, 0) == 0 else "refused", ctypes.get_errno())`

// Another sandbox's process can't be signalled, traced or read, by whatever the
// agent or the app runs; nor can the engine.
func TestSandboxesDontReachEachOthersProcesses(t *testing.T) {
	each(t, confining, func(t *testing.T, isolation string) {
		h := openHost(t, host.Config{Isolation: isolation})
		if strings.Contains(strings.Join(h.Isolation().Facts, "\n"), "signals to the same user's other processes are not kept in") {
			return // an old kernel, and it says so
		}
		box, other := bootBox(t, h), bootBox(t, h)
		out := drivertest.NewOutput()
		cmd := app("echo ready; exec sleep 600")
		cmd.Env = map[string]string{"OTHERS": "S3CRET"}
		victim, err := other.Start(await(t), "ps-victim", cmd, out, nil)
		must(t, err)
		must(t, out.Await(await(t), "ready"))
		for _, pid := range []int{victim.PID(), os.Getpid()} {
			for _, profile := range []driver.Profile{driver.ProfileApp, driver.ProfileAgent} {
				shell := strings.Join([]string{
					fmt.Sprintf("kill -KILL %d", pid), fmt.Sprintf("kill -KILL -%d", pid),
					fmt.Sprintf("cat /proc/%d/environ /proc/%[1]d/mem /proc/%[1]d/root/etc/hostname", pid),
					fmt.Sprintf("ls -l /proc/%d/cwd/ /proc/%[1]d/fd/ && echo S3CRET", pid),
					at(fmt.Sprintf(attach, pid)),
					at(fmt.Sprintf("import os; os.pidfd_open(%d); import signal; signal.pidfd_send_signal(os.pidfd_open(%[1]d), 9)", pid)),
					fmt.Sprintf("prlimit --pid %d --nofile=3", pid), fmt.Sprintf("renice -n 19 -p %d", pid), fmt.Sprintf("echo 1000 > /proc/%d/oom_score_adj", pid),
					"kill -KILL -1", // itself too, perhaps
				}, "\n")
				c := app(shell)
				c.Profile = profile
				if text, _ := runIn(t, box, c); strings.Contains(text, "S3CRET") || strings.Contains(text, "attached") {
					t.Errorf("%s\nsays %q", shell, text)
				}
			}
		}
		if err := unix.Kill(victim.PID(), 0); err != nil {
			t.Errorf("the other sandbox's process is gone: %v", err)
		}
		select {
		case <-out.Closed():
			t.Error("its output has ended")
		default:
		}
		must(t, victim.Kill(await(t), 0))
	})
}

// An abstract socket has no file whose permissions would keep anybody from it.
func TestAbstractSocketsStayInside(t *testing.T) {
	each(t, confining, func(t *testing.T, isolation string) {
		h := openHost(t, host.Config{Isolation: isolation})
		name := fmt.Sprintf("@sbx-test-%d-%s", os.Getpid(), isolation)
		listen(t, "unix", name)
		box := bootBox(t, h)
		for _, profile := range []driver.Profile{driver.ProfileApp, driver.ProfileAgent} {
			c := app(connect("AF_UNIX", `"\0`+name[1:]+`"`))
			c.Profile = profile
			if out, _ := runIn(t, box, c); strings.Contains(out, "S3CRET") {
				t.Errorf("%s reaches the host's abstract socket: %s", profile, out)
			}
		}
	})
}

// A file that changes its user when it is executed gives nobody anything: not
// inside, where nothing gains a privilege, and outside it is the sandbox's own
// user's, who has none.
func TestSetuidFilesGiveNothing(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		h := openHost(t, host.Config{Isolation: isolation})
		box := bootBox(t, h)
		out, _ := runIn(t, box, app("id -u; cp /bin/sh x; chmod 6755 x; ./x -p -c 'id -u'; /usr/bin/su -c id root < /dev/null; mknod dev b 8 0; mknod mem c 1 1"))
		uid, rest, _ := strings.Cut(out, "\n")
		if !strings.HasPrefix(rest, uid+"\n") || strings.Contains(rest, "uid=0") {
			t.Errorf("it says %q", out)
		}
		for _, name := range []string{"dev", "mem"} {
			if fi, err := os.Lstat(filepath.Join(box.Location(), name)); err == nil && fi.Mode()&os.ModeDevice != 0 {
				t.Errorf("it made a device: %v", fi.Mode())
			}
		}
		if fi, err := os.Stat(filepath.Join(box.Location(), "x")); err == nil && os.Geteuid() == 0 {
			if owner := asOwner(fi); owner == nil || owner.Credential.Uid == 0 {
				t.Error("the file is root's")
			}
		}
	})
}
