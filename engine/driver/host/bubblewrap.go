//go:build linux

package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/shim"
)

// bubblewrap shows a process a file system that has nothing but what it may
// see, in namespaces of its own. The workspace lies at its true path: a Python
// environment names its own path in every script, and an adopted directory is
// named by configuration, caches and debuggers outside.
//
// Of an engine that runs as root it keeps, for the launcher alone, what is
// needed to mount the protected paths and to become the sandbox's user; else
// it makes a user namespace.
type bubblewrap struct {
	h     *Host
	path  string
	scope bool // Landlock can keep signals and abstract sockets inside
}

func (h *Host) openBubblewrap(context.Context) (confiner, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, engine.Errorf(engine.Unavailable, "bwrap is not installed").WithHint("install bubblewrap")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return &bubblewrap{h, path, landlockABI() >= scopeABI}, nil
}

func (w *bubblewrap) hides() bool { return true }

func (w *bubblewrap) isolation() engine.Isolation {
	i := engine.Isolation{
		Confines: true,
		Facts: []string{
			"own process, mount and ipc namespaces; the system is read-only, home directories, /run, /var and other sandboxes are not there",
			"what the agent runs has no network of the host, and protected paths and .git are read-only mounts",
			"apps share the host's network",
		},
	}
	if !w.scope {
		i.Stronger = append(i.Stronger, "a kernel with Landlock ABI 6 (6.12) also keeps apps from the host's abstract sockets")
	}
	return i
}

func (w *bubblewrap) command(b *box, l launch, dir string) (command, error) {
	protected, err := b.protected(l)
	if err != nil {
		return command{}, err
	}
	args := []string{w.path, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--chdir", "/"}
	onlyGit := l.ReadOnlyWorkspace && l.WritableGit
	mounts := len(protected) > 0 || onlyGit
	args = append(args, w.privileges(mounts)...)
	agent := l.Profile == driver.ProfileAgent
	if agent && !l.Network {
		args = append(args, "--unshare-net")
	}
	args = append(args, w.system(b, mounts)...)
	args = append(args, w.own(b, l)...)
	args = append(args, "--remount-ro", "/", "--", shim.LauncherPath)
	args = append(append(args, w.h.cfg.Helper[1:]...), "confine")
	p := &plan{
		Argv: l.Argv, Env: b.environ(l, b.home(), ""), Dir: dir,
		Drop: w.h.root, UID: b.uid, GID: b.gid,
		Workspace: b.workspace, Protected: protected, OnlyGit: onlyGit, Scope: w.scope, Rlimits: b.rlimits(true),
	}
	return command{argv: args, env: launcherEnv(), dir: "/", plan: p}, nil
}

// privileges are what the launcher needs; it gives all of it up.
func (w *bubblewrap) privileges(mounts bool) []string {
	var args []string
	if w.h.root {
		args = append(args, "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
	} else {
		args = append(args, "--unshare-user")
	}
	if mounts {
		args = append(args, "--cap-add", "CAP_SYS_ADMIN")
	}
	if mounts && w.h.root { // the workspace may be closed to root without privileges
		args = append(args, "--cap-add", "CAP_DAC_READ_SEARCH")
	}
	return args
}

// system is the machine as a box sees it.
func (w *bubblewrap) system(b *box, mounts bool) []string {
	var args []string
	for _, link := range w.h.view.links {
		args = append(args, "--symlink", link[1], link[0])
	}
	for _, dir := range w.h.view.base {
		args = append(args, "--ro-bind", dir, dir)
	}
	args = append(args, "--proc", "/proc")
	if w.h.root {
		// Files there are root's own: writing them asks for no privilege.
		args = append(args, "--ro-bind", "/proc/sys", "/proc/sys")
	}
	args = append(args, w.devices(mounts)...)
	args = append(args, "--perms", "1777", "--tmpfs", "/dev/shm", "--perms", "1777", "--tmpfs", "/tmp",
		"--perms", "1777", "--tmpfs", "/var/tmp", "--dir", "/run")
	for _, path := range w.h.view.tools {
		args = append(append(args, way(path)...), "--ro-bind", path, path)
	}
	if b.uid == 0 {
		args = append(args, hideRootsOwn()...)
	}
	return args
}

// devices are the usual ones. An ordinary user's bubblewrap that made
// pseudo-terminals would put the launcher into a second user namespace, where
// it could not mount what is protected: what an agent runs has none then.
func (w *bubblewrap) devices(mounts bool) []string {
	if w.h.root || !mounts {
		return []string{"--dev", "/dev"}
	}
	args := []string{"--tmpfs", "/dev"}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		args = append(args, "--dev-bind-try", "/dev/"+name, "/dev/"+name)
	}
	for _, link := range [][2]string{{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}} {
		args = append(args, "--symlink", link[0], "/dev/"+link[1])
	}
	return args
}

// hideRootsOwn hides what only root may read, from a sandbox that is root.
func hideRootsOwn() []string {
	var args []string
	for _, path := range []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d"} {
		fi, err := os.Lstat(path)
		switch {
		case err != nil:
		case fi.IsDir():
			args = append(args, "--tmpfs", path)
		default:
			args = append(args, "--ro-bind", os.DevNull, path)
		}
	}
	return args
}

// own is what belongs to the box. An agent's home is gone with it: what it
// does outside the workspace can't outlive a rollback.
func (w *bubblewrap) own(b *box, l launch) []string {
	home := []string{"--bind", b.home(), b.home()}
	if l.Profile == driver.ProfileAgent {
		home = []string{"--perms", "1777", "--tmpfs", b.home()}
	}
	bind := "--bind"
	if l.ReadOnlyWorkspace && !l.WritableGit {
		bind = "--ro-bind"
	}
	args := append(way(b.home()), home...)
	args = append(append(args, way(b.workspace)...), bind, b.workspace, b.workspace)
	for _, m := range l.Mounts {
		bind := "--bind"
		if m.ReadOnly {
			bind = "--ro-bind"
		}
		args = append(append(args, way(m.Target)...), bind, m.Source, m.Target)
	}
	return args
}

// way makes the directories above a path that is about to be shown. By itself
// bubblewrap would close them to all but root if what is shown is closed.
func way(path string) []string { return []string{"--dir", filepath.Dir(path)} }
