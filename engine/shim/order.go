//go:build linux

package shim

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Order is one child to be started, as plain data.
type Order struct {
	ID  string `json:"id"`            // the engine's name for it
	Box string `json:"box,omitempty"` // whose it is
	// Mark is a variable of its environment, "NAME=value", that no other start
	// has; its tree is found by it where there is no cgroup.
	Mark string   `json:"mark,omitempty"`
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	// User is whose it is born as, without any privilege for good; nil: who
	// starts it.
	User *User `json:"user,omitempty"`
	// Owner is whose its output is, so that it may open /dev/stderr again; nil:
	// who starts it.
	Owner *User `json:"owner,omitempty"`
	// Plan is what the launcher is told, which Argv runs in the end: as a memory
	// file at PlanFD, with this binary at ExeFD and a socket for its one word at
	// StatusFD. nil: Argv is the program itself.
	Plan json.RawMessage `json:"plan,omitempty"`
	// Cgroup is the directory of version 2 that it is born in; "": none.
	Cgroup string `json:"cgroup,omitempty"`
	// Visits are the groups of version 1 that it is born in.
	Visits []Visit `json:"visits,omitempty"`
	// OOM is the file that counts what the kernel killed of its tree for want of
	// memory; "": nothing counts it.
	OOM   string `json:"oom,omitempty"`
	Stdin bool   `json:"stdin,omitempty"` // keep an input open; else it reads end-of-file
	// TTY gives it a terminal of its own, which is all three streams. Stdin and
	// Split mean nothing then.
	TTY *TTY `json:"tty,omitempty"`
	// Split keeps stdout and stderr apart.
	Split bool `json:"split,omitempty"`
	// Log is where its output is kept; nil: with whoever starts it, in the same
	// process.
	Log *Log `json:"log,omitempty"`
	// Alone: nothing of its tree may live on after its exit.
	Alone bool `json:"alone,omitempty"`
}

// Log: a child's output goes to its streams of package logs, "out" and, if the
// order splits them, "err".
type Log struct {
	// Final: it ends with the child.
	Final bool `json:"final,omitempty"`
}

// User is a user and its group.
type User struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// Descriptors that a launcher inherits beside the standard ones.
const (
	PlanFD   = 3
	ExeFD    = 4 // this binary: works when its file was replaced or isn't in view
	StatusFD = 5 // a datagram socket: one message, "{}" for success
)

// LauncherPath runs the inherited binary, whatever is mounted.
const LauncherPath = "/proc/self/fd/4"

// planFile puts the plan where the launcher reads it.
func planFile(plan []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("write the launcher's plan: %w", Shortage(err))
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.WriteAt(plan, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("write the launcher's plan: %w", err)
	}
	return f, nil
}
