package host

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
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
	Rules   *rules // Landlock, where it is the confiner
	Scope   bool   // Landlock: no signals and abstract sockets to outside
	// NoSockets and NoUnix refuse to make sockets at all, or unix ones.
	NoSockets, NoUnix bool
}

// Descriptors that the launcher inherits beside the standard ones.
const (
	planFD   = 3
	exeFD    = 4 // this binary: works when its file was replaced or isn't in view
	statusFD = 5 // a datagram socket: one message, "" for success
)

// launcherPath runs the inherited binary, whatever is mounted.
const launcherPath = "/proc/self/fd/4"

// file puts the plan where the launcher reads it.
func (p *plan) file() (*os.File, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the launcher's plan: %w", err)
	}
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("write the launcher's plan: %w", spawnError(err))
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.WriteAt(data, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("write the launcher's plan: %w", err)
	}
	return f, nil
}

// readPlan is the launcher's side.
func readPlan() (*plan, error) {
	f := os.NewFile(planFD, "plan")
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
