//go:build linux

package shim

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

// Launch is how a shim is started.
type Launch struct {
	Exe  *os.File // the binary
	Name string   // argv[0]
	Args []string // that lead to [Main]
	Dir  string   // the new shim's own
	Logs string
	Idle time.Duration
	Log  *slog.Logger
}

// Run starts a shim, in a session of its own, and connects to it.
func (l Launch) Run(ctx context.Context) (*Client, error) {
	if err := os.MkdirAll(filepath.Join(l.Dir, exitsDir), 0o700); err != nil {
		return nil, fmt.Errorf("start a shim: %w", err)
	}
	out, err := os.OpenFile(filepath.Join(l.Dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a shim: %w", err)
	}
	defer out.Close()
	fd, err := dup(l.Exe)
	if err != nil {
		return nil, fmt.Errorf("start a shim: %w", err)
	}
	defer unix.Close(fd)
	cmd := exec.Command(fmt.Sprintf("/proc/self/fd/%d", fd))
	cmd.Args = append(append([]string{l.Name}, l.Args...), "--dir", l.Dir, "--logs", l.Logs, "--idle", l.Idle.String())
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	cmd.Env = environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a shim: %w", Shortage(err))
	}
	ended := make(chan struct{})
	go func() { // it ends with the shim, or with this process
		defer close(ended)
		_ = cmd.Wait()
	}()
	return l.connect(ctx, ended)
}

func (l Launch) connect(ctx context.Context, ended <-chan struct{}) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		c, err := Connect(ctx, l.Dir, l.Log)
		if err == nil {
			return c, nil
		}
		t := time.NewTimer(wait)
		select {
		case <-ended:
			words, _ := os.ReadFile(filepath.Join(l.Dir, "log"))
			return nil, engine.Errorf(engine.Unavailable, "a shim could not be started: %s", words[max(0, len(words)-500):])
		case <-ctx.Done():
			return nil, fmt.Errorf("start a shim: %w", err)
		case <-t.C:
		}
	}
}

// environ is what a shim itself needs to know; its children's is in their
// orders.
func environ() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GORACE", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
