//go:build linux

package limit

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/opencontainers/cgroups"
	cgroupv1 "github.com/opencontainers/cgroups/fs"
	cgroupv2 "github.com/opencontainers/cgroups/fs2"

	"sbx/engine"
)

// Overhead is how many more tasks than its limit a sandbox may have: those of
// the launcher, of bubblewrap, and of the thread that forks, which are none of
// its own. As everywhere, the kernel counts threads.
const Overhead = 8

// period is the time over which cpu is limited, in microseconds.
const period = 100_000

// limit sets what the sandbox may use of this controller.
func (c control) limit(dir string, want engine.Limits) error {
	r := &cgroups.Resources{}
	switch c.name {
	case "memory":
		r.Memory = -1
		if want.Memory > 0 {
			r.Memory, r.MemorySwap = int64(want.Memory), c.swap(dir, want.Memory)
		}
	case "cpu":
		r.CpuPeriod, r.CpuQuota = period, -1
		if want.CPU > 0 {
			// Less than a millisecond is nothing that the kernel can give.
			r.CpuQuota = max(1000, int64(math.Round(want.CPU*period)))
		}
	case "pids":
		n := int64(-1)
		if want.Processes > 0 {
			n = int64(want.Processes + Overhead)
		}
		r.PidsLimit = &n
	}
	if c.version == 2 {
		m, err := cgroupv2.NewManager(&cgroups.Cgroup{Resources: r}, dir)
		if err != nil {
			return err
		}
		return m.Set(r)
	}
	switch c.name {
	case "memory":
		return (&cgroupv1.MemoryGroup{}).Set(dir, r)
	case "cpu":
		return (&cgroupv1.CpuGroup{}).Set(dir, r)
	}
	return (&cgroupv1.PidsGroup{}).Set(dir, r)
}

// swap keeps a sandbox from swapping, where that is counted: what it may use
// is memory, and a host that swaps is slow for everybody.
func (c control) swap(dir string, memory engine.Size) int64 {
	file := "memory.memsw.limit_in_bytes"
	if c.version == 2 {
		file = "memory.swap.max"
	}
	if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
		return 0
	}
	return int64(memory)
}

// share weighs all sandboxes together against what else this host does: in
// version 1 a group counts as one task by itself.
func (c control) share() {
	if c.name == "cpu" {
		shares := strconv.Itoa(1024 * runtime.NumCPU())
		_ = os.WriteFile(filepath.Join(c.root, "cpu.shares"), []byte(shares), 0) // then as one task
	}
}
