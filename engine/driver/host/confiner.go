//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/shim"
)

// A confiner is a means to keep a process in its box.
type confiner interface {
	// command is how a launch is executed, its working directory being dir.
	command(b *box, l launch, dir string) (command, error)
	// hides: the processes see nothing but what they are shown, so that what
	// is elsewhere needs no protection of its own.
	hides() bool
	// isolation says what holds.
	isolation() engine.Isolation
}

// A command is what is executed outside, so that a launch happens inside.
type command struct {
	argv []string
	env  []string // of argv; the sandbox's own is in the plan
	dir  string
	plan *plan // nil: argv is the program itself
	// user is whose it is born as, without any privilege; nil: the engine's own.
	user *shim.User
}

// The names of the means, strongest first.
const (
	bubblewrapName = "bubblewrap"
	landlockName   = "landlock"
	noneName       = "none"
)

// chooseConfiner takes the strongest that works, by trying it, or the one that
// was asked for.
func (h *Host) chooseConfiner(ctx context.Context) error {
	want := h.cfg.Isolation
	var weaker []string
	var last error
	for _, c := range []struct {
		name string
		open func(context.Context) (confiner, error)
	}{
		{bubblewrapName, h.openBubblewrap},
		{landlockName, h.openLandlock},
		{noneName, h.openNone},
	} {
		if want != "" && want != c.name {
			continue
		}
		confine, err := c.open(ctx)
		if err == nil {
			h.confine = confine
			err = h.try(ctx, confine)
		}
		if err == nil {
			h.iso = confine.isolation()
			h.iso.Name = c.name
			h.iso.Facts = append(h.iso.Facts, h.facts()...)
			h.iso.Stronger = append(weaker, h.iso.Stronger...)
			h.enforced(&h.iso)
			return nil
		}
		if want != "" {
			return engine.Errorf(engine.Unavailable, "isolation %s doesn't work here: %w", want, err)
		}
		weaker, last = append(weaker, c.name+": "+firstLine(err)), err
	}
	if want != "" {
		return engine.Errorf(engine.Invalid, "there is no isolation %q", want).WithHint("use bubblewrap, landlock or none")
	}
	return engine.Errorf(engine.Unavailable, "no process can be started here: %w", last)
}

// strength orders the means; weaker ones come later.
var strength = []string{bubblewrapName, landlockName, noneName}

// checkRequired refuses to run with less than was asked for.
func (h *Host) checkRequired() error {
	want := h.cfg.Require
	if want == "" {
		return nil
	}
	least := slices.Index(strength, want)
	if least < 0 {
		return engine.Errorf(engine.Invalid, "there is no isolation %q to require", want).WithHint("use bubblewrap, landlock or none")
	}
	if slices.Index(strength, h.iso.Name) <= least {
		return nil
	}
	why := ""
	if len(h.iso.Stronger) > 0 {
		why = " (" + strings.Join(h.iso.Stronger, "; ") + ")"
	}
	return engine.Errorf(engine.Forbidden, "isolation.require is %s, and this host offers %s%s", want, h.iso.Name, why).
		WithHint("make %s work here, or set isolation.require lower", want)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// facts are those that don't depend on the confiner.
func (h *Host) facts() []string {
	var facts []string
	if h.cgroups != nil {
		facts = append(facts, "every process tree has a cgroup of its own, by which it is killed and counted")
	} else {
		facts = append(facts, "no cgroups of version 2 can be made here: trees are killed by their namespace or by descent, session and marker")
	}
	switch {
	case h.root && h.cfg.AllowRoot:
		facts = append(facts, "the engine runs as root: sandboxes run as the owner of their workspace, which may be root (--allow-root)")
	case h.root:
		facts = append(facts, "the engine runs as root: sandboxes run as the owner of their workspace or as a user of their own")
	default:
		facts = append(facts, "sandboxes run as the engine's own user")
	}
	return facts
}

// try runs a command as an agent would, in a scratch box: a means counts when
// it works, not when it is installed.
func (h *Host) try(ctx context.Context, c confiner) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp(h.boxesDir(), "try-")
	if err != nil {
		return err
	}
	defer removeTree(dir)
	uid, gid := os.Geteuid(), os.Getegid()
	if h.root {
		uid, gid = h.uids.last, h.uids.last // the last that a sandbox would get
	}
	b := &box{
		host: h, id: "try", dir: dir, workspace: filepath.Join(dir, "workspace"), uid: uid, gid: gid,
		procs: map[engine.ProcessID]*proc{}, ending: map[*proc]bool{}, masks: map[string]*mask{},
	}
	for _, d := range []string{b.workspace, b.home(), filepath.Join(b.workspace, ".git"), filepath.Join(b.workspace, "open")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
		if err := os.Lchown(d, uid, gid); err != nil {
			return err
		}
	}
	if h.root && !c.hides() {
		if err := h.letTryThrough(b); err != nil {
			return err
		}
	}
	_, _, err = b.run(ctx, launch{
		Argv: []string{"/bin/sh", "-c", ": > open/here; if (: > .git/there) 2> open/here; then exit 1; fi"}, Profile: driver.ProfileAgent,
	}, nil, 4<<10)
	if h.cgroups != nil {
		h.cgroups.removeBox(b.id)
	}
	if failed := (*runError)(nil); errors.As(err, &failed) && c.isolation().Confines {
		return fmt.Errorf("it didn't confine a command that was tried: %w", err)
	} else if failed != nil {
		return nil
	}
	return err
}

// letTryThrough opens the scratch box as openBoxesDir and settleOwner do.
func (h *Host) letTryThrough(b *box) error {
	if err := h.openBoxesDir(); err != nil {
		return err
	}
	if err := errors.Join(os.Lchown(b.dir, 0, b.gid), os.Chmod(b.dir, 0o710)); err != nil {
		return err
	}
	return h.checkReach(&record{UID: b.uid, GID: b.gid, Workspace: b.workspace})
}

// noConfiner confines nothing: file permissions are all there is.
type noConfiner struct{ h *Host }

// openNone starts the thread that processes are born without privileges from,
// where there are any. Some containers refuse what that needs.
func (h *Host) openNone(ctx context.Context) (confiner, error) {
	if h.root {
		if err := h.runner.Shed(); err != nil {
			h.cfg.Log.DebugContext(ctx, "unconfined processes need the launcher", "err", err)
		}
	}
	return noConfiner{h}, nil
}

func (noConfiner) hides() bool { return false }

func (noConfiner) isolation() engine.Isolation {
	return engine.Isolation{
		Facts: []string{
			"nothing is confined: a sandbox can do what its user can do",
			"the agent is not let loose on it: the healer has its playbooks only",
		},
		Stronger: []string{"install bubblewrap, or use a kernel with Landlock"},
	}
}

// command does without the launcher where it can: there is nothing to do inside,
// and a Go program's start would be most of a restart.
func (c noConfiner) command(b *box, l launch, dir string) (command, error) {
	cmd := command{argv: l.Argv, env: b.environ(l, b.home(), ""), dir: dir}
	rlimits := b.rlimits(false)
	switch {
	case len(rlimits) > 0:
	case !c.h.root:
		return cmd, nil
	case c.h.runner.CanShed():
		cmd.user = &shim.User{UID: b.uid, GID: b.gid}
		return cmd, nil
	}
	p := &plan{Argv: l.Argv, Env: cmd.env, Dir: dir, Drop: c.h.root, UID: b.uid, GID: b.gid, Parent: os.Getpid(), Workspace: b.workspace, Rlimits: rlimits}
	return c.h.launcher(p), nil
}

// launcher is a command that runs this binary as the launcher itself. The
// marker must be in the environment that the program keeps.
func (h *Host) launcher(p *plan) command {
	argv := append([]string{shim.LauncherPath}, h.cfg.Helper[1:]...)
	return command{argv: append(argv, "confine"), env: launcherEnv(), plan: p}
}

// launcherEnv keeps the Go runtime of a process that lives a millisecond small.
func launcherEnv() []string { return []string{"GOMAXPROCS=1", "GOGC=off"} }
