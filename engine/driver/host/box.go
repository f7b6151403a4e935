//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sbx/engine"
	"sbx/engine/driver"
)

// A box is a sandbox's directory and what runs in it.
type box struct {
	host      *Host
	id        engine.SandboxID
	dir       string // in the data directory: box.json, home, checkpoints
	workspace string // real path
	adopted   bool   // the workspace is somebody's own: never deleted
	uid, gid  int    // of everything that runs in it
	spec      engine.Spec

	mu     sync.Mutex
	procs  map[engine.ProcessID]*proc // those that have not exited
	kept   map[engine.ProcessID]*proc // those of shims, until their exit was forgotten
	ending map[*proc]bool             // exited; what was set up is being given back
	masks  map[string]*mask           // stand-ins for protected paths that are missing
	sample sample
	bounds engine.Limits // of all that runs in it together
	scale  scale
}

var _ driver.Box = (*box)(nil)

func (b *box) home() string { return filepath.Join(b.dir, "home") }

// Location is the workspace's path.
func (b *box) Location() string { return b.workspace }

// Start starts a process in the box.
func (b *box) Start(ctx context.Context, id engine.ProcessID, cmd driver.Command, out, errs io.WriteCloser) (driver.Proc, error) {
	l, err := b.launchOf(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", id, err)
	}
	if cmd.Limits != nil {
		b.bound(*cmd.Limits)
	}
	p, err := b.start(ctx, id, l, cmd.Stdin, out, errs)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", id, err)
	}
	return p, nil
}

// launchOf checks a command and says how it is launched.
func (b *box) launchOf(cmd driver.Command) (launch, error) {
	l := launch{
		Argv: []string{"/bin/sh", "-c", cmd.Shell}, Dir: cmd.Dir,
		Profile: cmd.Profile, Protected: cmd.Protected, Network: cmd.Network, Terminal: cmd.Terminal,
	}
	if cmd.Terminal != nil {
		if err := cmd.Terminal.Size.Check(); err != nil || cmd.Terminal.Size.Zero() {
			return l, engine.Errorf(engine.Invalid, "a terminal can't have that size")
		}
		l.Env = append(l.Env, "TERM=xterm-256color", "SHELL="+b.shell())
	}
	switch {
	case strings.TrimSpace(cmd.Shell) == "":
		return l, engine.Errorf(engine.Invalid, "the command is empty")
	case strings.ContainsRune(cmd.Shell, 0):
		return l, engine.Errorf(engine.Invalid, "the command has a NUL character in it")
	case cmd.Timeout < 0:
		return l, engine.Errorf(engine.Invalid, "timeout %s is negative", cmd.Timeout)
	case cmd.Profile != driver.ProfileApp && cmd.Profile != driver.ProfileAgent:
		return l, engine.Errorf(engine.Invalid, "there is no profile %q", cmd.Profile)
	case cmd.Profile == driver.ProfileAgent && !b.host.iso.Confines:
		return l, engine.Errorf(engine.Unavailable, "nothing on this host confines what the agent runs (isolation: %s)", b.host.iso.Name).
			WithHint("install bubblewrap, or use a kernel with Landlock")
	}
	for _, name := range slices.Sorted(maps.Keys(cmd.Env)) {
		value := cmd.Env[name]
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return l, engine.Errorf(engine.Invalid, "environment name %q: a name is not empty and has no = and no NUL", name)
		}
		if strings.ContainsRune(value, 0) {
			return l, engine.Errorf(engine.Invalid, "environment variable %s has a NUL character in it", name)
		}
		l.Env = append(l.Env, name+"="+value)
	}
	return l, nil
}

// checkDir says whether dir is a directory in the workspace, and which.
func (b *box) checkDir(dir string) (string, error) {
	if dir == "" || dir == "." {
		return b.workspace, nil
	}
	if !filepath.IsLocal(dir) || strings.ContainsRune(dir, 0) {
		return "", engine.Errorf(engine.Invalid, "working directory %q is outside the workspace", dir).
			WithHint("name one relative to the workspace, such as \"src\"")
	}
	root, err := os.OpenRoot(b.workspace)
	if err != nil {
		return "", engine.Errorf(engine.Unavailable, "open the workspace: %w", err)
	}
	defer root.Close()
	fi, err := root.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", engine.Errorf(engine.Invalid, "working directory %q does not exist", dir)
	case err != nil:
		return "", engine.Errorf(engine.Invalid, "working directory %q: %w", dir, err)
	case !fi.IsDir():
		return "", engine.Errorf(engine.Invalid, "working directory %q is not a directory", dir)
	}
	return filepath.Join(b.workspace, dir), nil
}

// live are the processes that have not exited.
func (b *box) live() []*proc {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.procs))
}

// leaving are those that have exited a moment ago.
func (b *box) leaving() []*proc {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.ending))
}

// killAll kills what this Host started in the box, and waits until all that
// was set up for it has been given back.
func (b *box) killAll(ctx context.Context) error { return b.kill(ctx, b.live()) }

// killOurs kills what this process started itself, but for what shims did.
func (b *box) killOurs(ctx context.Context) error {
	return b.kill(ctx, slices.DeleteFunc(b.live(), (*proc).isKept))
}

func (b *box) kill(ctx context.Context, live []*proc) error {
	var errs []error
	for _, p := range live {
		errs = append(errs, p.Kill(ctx, 0))
	}
	for _, p := range append(live, b.leaving()...) {
		if p.isKept() {
			continue // its shim sees to that
		}
		select {
		case <-p.gone:
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
		}
	}
	return errors.Join(errs...)
}

// Destroy kills what runs and deletes what is the engine's.
func (b *box) Destroy(ctx context.Context) error {
	if err := b.killAll(ctx); err != nil {
		return fmt.Errorf("destroy %s: %w", b.id, err)
	}
	if _, err := b.KillStrays(ctx); err != nil {
		return fmt.Errorf("destroy %s: %w", b.id, err)
	}
	b.dropMasks()
	b.host.forget(b)
	b.host.releaseShim(b.id)
	if b.host.cgroups != nil {
		b.host.cgroups.removeBox(b.id)
	}
	b.host.limits.Remove(string(b.id))
	b.scale.close()
	// box.json goes first: what is left of a cut deletion is no box any more.
	if err := os.Remove(filepath.Join(b.dir, recordFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("destroy %s: %w", b.id, err)
	}
	if err := removeTree(b.dir); err != nil {
		return fmt.Errorf("destroy %s: %w", b.id, err)
	}
	return nil
}
