//go:build !linux

// Package host is the driver for the machine that the engine runs on. It needs
// what only Linux has: namespaces, Landlock, cgroups, pidfds. Elsewhere it says
// so, and sbx is a client of an engine that runs on Linux.
package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// Config is what a [Host] needs to know.
type Config struct {
	Dir       string
	Helper    []string
	Isolation string
	Require   string
	AllowRoot bool
	PortRange [2]int
	NoCgroups bool
	Protect   bool
	Shims     *Shims
	Log       *slog.Logger
}

// Shims are the processes that run what is to outlive the engine.
type Shims struct {
	Args []string
	Logs string
	Per  int
	Idle time.Duration
}

// Host is the driver that this system has none of.
type Host struct{}

var _ driver.Driver = (*Host)(nil)

var errLinux = engine.Errorf(engine.Unavailable, "sandboxes need Linux (namespaces, Landlock, cgroups), and this is %s", runtime.GOOS).
	WithHint("run sbx serve on a Linux host or virtual machine, and attach to it: sbx tui --engine URL")

// New returns a Host that can't be opened.
func New(Config) *Host { return &Host{} }

// Open says what is missing.
func (*Host) Open(context.Context) error { return errLinux }

// Isolation is none.
func (*Host) Isolation() engine.Isolation {
	return engine.Isolation{Name: "none", Stronger: []string{"run the engine on Linux"}}
}

// Boot says what is missing.
func (*Host) Boot(context.Context, driver.Boot) (driver.Box, error) { return nil, errLinux }

// Attach says what is missing.
func (*Host) Attach(context.Context, engine.SandboxID) (driver.Box, error) { return nil, errLinux }

// Reap has nothing to kill.
func (*Host) Reap(context.Context) ([]string, error) { return nil, nil }

// Close has nothing to let go.
func (*Host) Close() error { return nil }

// Kept is nothing here.
func Kept(context.Context, string) []driver.KeptProcess { return nil }

// ConfineMain is the launcher, which there is none of.
func ConfineMain([]string) int {
	fmt.Fprintln(os.Stderr, "sbx:", errLinux)
	return engine.ExitNotExecutable
}
