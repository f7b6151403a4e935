//go:build linux

package host

import (
	"runtime"
	"syscall"

	"sbx/engine"
)

// Room is how many cores and how much memory this host has.
func (h *Host) Room() (cores float64, memory engine.Size) {
	var si syscall.Sysinfo_t
	if err := syscall.Sysinfo(&si); err == nil { // else it is not known
		memory = engine.Size(si.Totalram) * engine.Size(si.Unit)
	}
	return float64(runtime.NumCPU()), memory
}
