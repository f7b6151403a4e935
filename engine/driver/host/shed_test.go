//go:build linux

package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/host"
)

// What root's engine starts without confinement is another user's for good:
// no program that it executes, set-user-id or not, gives it anything back. That
// holds for a sandbox of root's own, too.
func TestUnconfinedProcessesOfRootHaveNoPrivilege(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root's engine has a privilege to give up")
		return
	}
	privileges := func() string {
		out, err := exec.Command("grep", "-E", "^(Cap|NoNewPrivs)", "/proc/self/status").Output()
		must(t, err)
		return string(out)
	}
	before := privileges()
	umask := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(umask) })
	h := openHost(t, host.Config{Isolation: "none", AllowRoot: true})
	adopted := tempDir(t)
	must(t, os.Chmod(adopted, 0o755))
	ofRoot, err := h.Boot(t.Context(), driver.Boot{ID: "sb-root", Origin: engine.Origin{Kind: engine.FromAdopted, Ref: adopted}})
	must(t, err)
	for name, box := range map[string]driver.Box{"its own user": bootBox(t, h), "root": ofRoot} {
		out, _ := runIn(t, box, app("umask; id -G; grep -E '^(Uid|Cap...|NoNewPrivs)' /proc/self/status"))
		fi, err := os.Stat(box.Location())
		must(t, err)
		owner := fi.Sys().(*syscall.Stat_t)
		none := strings.Repeat("0", 16)
		want := fmt.Sprintf("0022\n%d\nUid:\t%[2]d\t%[2]d\t%[2]d\t%[2]d\n", owner.Gid, owner.Uid)
		for _, set := range []string{"Inh", "Prm", "Eff", "Bnd", "Amb"} {
			want += "Cap" + set + ":\t" + none + "\n"
		}
		want += "NoNewPrivs:\t1\n"
		if out != want {
			t.Errorf("a sandbox of %s got\n%swant\n%s", name, out, want)
		}
	}
	if now := syscall.Umask(0o077); now != 0o077 {
		t.Errorf("the engine's umask is %#o now", now)
	}
	// What the engine starts itself, from whichever thread, is as it was.
	if now := privileges(); now != before {
		t.Errorf("the engine itself has given up privileges: it had\n%sand has\n%s", before, now)
	}
}
