//go:build linux

package host

import (
	"encoding/json"
	"fmt"
	"os"

	"sbx/engine/driver/host/limit"
	"sbx/engine/shim"
)

// A plan is what the launcher is told, over an inherited memory file: neither
// its argv nor its environment, which a host's other users and the loader of a
// dynamic binary see, carries anything of the sandbox.
type plan struct {
	Argv []string
	Env  []string
	Dir  string
	// Drop: become UID and GID, for good. Without it the launcher stays who it is.
	Drop     bool
	UID, GID int
	// Parent is whose death is ours too; 0: bubblewrap sees to that.
	Parent    int
	Workspace string
	// Protected are workspace paths to be mounted read-only over themselves;
	// only inside bubblewrap.
	Protected []string
	// OnlyGit: the workspace is read-only but for its .git; inside bubblewrap.
	OnlyGit bool
	// TTY: its streams are a terminal, to be led.
	TTY     bool
	Rlimits []limit.Rlimit // what stands in for cgroups
	Rules   *rules         // Landlock, where it is the confiner
	Scope   bool           // Landlock: no signals and abstract sockets to outside
	// NoSockets and NoUnix refuse to make sockets at all, or unix ones.
	NoSockets, NoUnix bool
}

// readPlan is the launcher's side.
func readPlan() (*plan, error) {
	f := os.NewFile(shim.PlanFD, "plan")
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	data := make([]byte, fi.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	p := new(plan)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	return p, nil
}
