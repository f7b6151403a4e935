//go:build linux

package limit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/shim"
)

func TestMountsAreFoundInEveryLayout(t *testing.T) {
	for _, c := range []struct {
		name, own, info string
		want            mounts
	}{
		{
			"hybrid, at the root", "8:pids:/\n4:memory:/jobs/a\n1:cpu:/\n0::/\n",
			"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n" +
				"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			mounts{"cpu": "/sys/fs/cgroup/cpu", "memory": "/sys/fs/cgroup/memory/jobs/a"},
		},
		{
			"version 1, controllers mounted together", "5:cpu,cpuacct:/user.slice\n",
			"30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n",
			mounts{"cpu": "/sys/fs/cgroup/cpu,cpuacct/user.slice", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/user.slice"},
		},
		{
			"a container that is shown its own part", "4:memory:/docker/0a1b\n",
			"900 899 0:33 /docker/0a1b /sys/fs/cgroup/memory ro master:17 - cgroup cgroup rw,memory\n",
			mounts{"memory": "/sys/fs/cgroup/memory"},
		},
		{
			"a container whose path lies elsewhere on its host", "4:memory:/docker/0a1b/x\n",
			"900 899 0:33 /kube/pod7 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			mounts{"memory": "/sys/fs/cgroup/memory"},
		},
		{
			"version 2 alone", "0::/user.slice/user-1000.slice/session-2.scope\n",
			"24 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
			mounts{},
		},
		{"nothing that can be read", "", "", mounts{}},
		{"nonsense", "x\n::\n4:memory\n", "1 2 - cgroup\n - cgroup c memory\n1 2 3 / /m rw - cgroup\n", mounts{}},
	} {
		if diff := cmp.Diff(c.want, parseMounts(c.own, c.info)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// A host that offers nothing has rlimits, says so, and says what would help.
func TestWithoutGroupsThereAreRlimits(t *testing.T) {
	l := &Limiter{set: map[string]engine.Limits{}, fresh: map[string]bool{}, under: map[string]int{}}
	for name, c := range map[string]*control{"memory": &l.memory, "cpu": &l.cpu, "pids": &l.pids} {
		*c = openControl(mounts{}, filepath.Join(t.TempDir(), "none"), name, "sbx-test")
	}
	want := engine.Limits{Memory: engine.GiB, CPU: 1, Processes: 10}
	if got := l.Rlimits(want, true); len(got) != 2 {
		t.Errorf("rlimits of a sandbox with a user of its own: %v", got)
	}
	if got := l.Rlimits(want, false); len(got) != 1 {
		t.Errorf("a limit of processes would count those of others: %v", got)
	}
	by, stronger := l.Enforced(false)
	if by.CPU != "" || by.Processes != "" || !strings.Contains(by.Memory, "rlimit") {
		t.Errorf("it claims %+v", by)
	}
	if len(stronger) == 0 || !strings.Contains(stronger[0], "sbx serve") {
		t.Errorf("it names no remedy: %q", stronger)
	}
	p, err := l.Begin("sb-a", "ps-a.1", "", want)
	if err != nil || len(p.Join) != 0 || p.OOM != "" {
		t.Errorf("a start got %+v, %v", p, err)
	}
}

// groups is a limiter of this machine's. false: it offers no groups of version
// 1, and what is left are the rlimits, which have their own tests.
func groups(t *testing.T) (*Limiter, bool) {
	t.Helper()
	l := Open("", fmt.Sprintf("test-%d", os.Getpid()))
	t.Cleanup(l.Close)
	if l.memory.version != 1 || l.pids.version != 1 {
		by, _ := l.Enforced(false)
		t.Logf("this machine has no groups of version 1 that may be used: %+v", by)
		return nil, false
	}
	return l, true
}

// born runs a command that is born in a start's groups and returns what it says.
func born(t *testing.T, p *Place, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for _, v := range p.Join {
			if err := os.WriteFile(v.Into, []byte("0"), 0); err != nil {
				done <- err
				return
			}
		}
		err := cmd.Start()
		for _, v := range p.Join {
			if back := os.WriteFile(v.Back, []byte("0"), 0); err == nil {
				err = back
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	p.Begun()
	_ = cmd.Wait() // what it said counts
	return out.String()
}

func TestAStartIsBornInItsGroups(t *testing.T) {
	l, ok := groups(t)
	if !ok {
		return
	}
	p, err := l.Begin("sb-a", "ps-a.1", "", engine.Limits{Memory: 64 * engine.MiB, CPU: 0.5, Processes: 5})
	if err != nil {
		t.Fatal(err)
	}
	out := born(t, p, "cat", "/proc/self/cgroup")
	for _, want := range []string{"sb-a/ps-a.1\n", ":pids:", "/sb-a\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it was born in\n%s, want %q in it", out, want)
		}
	}
	if back, err := os.ReadFile("/proc/self/cgroup"); err != nil || strings.Contains(string(back), "sb-a") {
		t.Errorf("this process is in %s, %v", back, err)
	}
	for file, want := range map[string]string{
		l.memory.box("sb-a") + "/memory.limit_in_bytes": "67108864\n",
		l.cpu.box("sb-a") + "/cpu.cfs_quota_us":         "50000\n",
		l.pids.box("sb-a") + "/pids.max":                fmt.Sprintln(5 + Overhead),
	} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", file, got, err, want)
		}
	}
	l.Remove("sb-a")
	if _, err := os.Stat(l.memory.box("sb-a")); !os.IsNotExist(err) {
		t.Errorf("its group is still there: %v", err)
	}
}

// A limit that changes is set for what runs already; none lifts it.
func TestLimitsChange(t *testing.T) {
	l, ok := groups(t)
	if !ok {
		return
	}
	read := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	for _, c := range []struct {
		want engine.Limits
		pids string
	}{
		{engine.Limits{Processes: 5, Memory: engine.GiB}, fmt.Sprint(5 + Overhead)},
		{engine.Limits{Processes: 9, Memory: engine.GiB}, fmt.Sprint(9 + Overhead)},
		{engine.Limits{}, "max"},
	} {
		p, err := l.Begin("sb-b", "ps-b.1", "", c.want)
		if err != nil {
			t.Fatal(err)
		}
		p.Begun()
		if got := read(l.pids.box("sb-b") + "/pids.max"); got != c.pids {
			t.Errorf("%+v: pids.max is %s, want %s", c.want, got, c.pids)
		}
	}
	if got := read(l.memory.box("sb-b") + "/memory.limit_in_bytes"); len(got) < len("9223372036854771712") {
		t.Errorf("its memory is still limited to %s", got)
	}
}

func TestOnesOwnKillsAreCounted(t *testing.T) {
	l, ok := groups(t)
	if !ok {
		return
	}
	want := engine.Limits{Memory: 32 * engine.MiB}
	hog, err := l.Begin("sb-c", "ps-hog.1", "", want)
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Begin("sb-c", "ps-other.1", "", want)
	if err != nil {
		t.Fatal(err)
	}
	born(t, hog, "python3", "-c", "b = bytearray(200 << 20)")
	if n := shim.OOMKills(hog.OOM); n != 1 {
		t.Errorf("%d kills of the one that took too much, want 1", n)
	}
	if n := shim.OOMKills(other.OOM); n != 0 {
		t.Errorf("%d kills of the other", n)
	}
}
