//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/driver"
)

// scopeABI is the first that keeps signals and abstract sockets inside,
// unixABI the first that tells unix sockets by path.
const referABI, scopeABI, unixABI = 2, 6, 9

// landlockABI is the kernel's version of Landlock; 0 if there is none.
func landlockABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// landlock confines by rules on the file system as it is: names outside are
// seen and denied. It has no namespaces, so a tree has no init to die with.
type landlock struct {
	h   *Host
	abi int
}

func (h *Host) openLandlock(context.Context) (confiner, error) {
	abi := landlockABI()
	if abi < referABI {
		return nil, engine.Errorf(engine.Unavailable, "this kernel has no Landlock, or an old one")
	}
	return &landlock{h, abi}, nil
}

func (l *landlock) hides() bool { return false }

func (l *landlock) isolation() engine.Isolation {
	i := engine.Isolation{
		Confines: true,
		Facts: []string{
			fmt.Sprintf("Landlock ABI %d: only the workspace, a home and a temporary directory of its own are writable; nothing but the system is readable beside them", l.abi),
			"no process namespace: the host's processes are seen, and a tree is found by cgroup, descent and marker",
			"apps share /dev/shm with the host",
			"what the agent runs can make no sockets, and no new files in directories that hold protected paths or .git",
			"permissions and times of files that belong to a sandbox's user can still be changed, protected and outside of the workspace",
		},
		Stronger: []string{"install bubblewrap"},
	}
	if l.abi < unixABI {
		i.Facts = append(i.Facts, "sandboxes can make no unix sockets")
	}
	if l.abi < scopeABI {
		i.Facts = append(i.Facts, "signals to the same user's other processes are not kept in")
		i.Stronger = append(i.Stronger, "use a kernel with Landlock ABI 6 (6.12)")
	}
	return i
}

func (l *landlock) command(b *box, la launch, dir string) (command, error) {
	protected, err := b.protected(la)
	if err != nil {
		return command{}, err
	}
	home, tmp, err := b.scratch(la)
	if err != nil {
		return command{}, err
	}
	r := &rules{ABI: l.abi, Read: l.readable(), Write: []string{tmp, home}, Workspace: b.workspace, Protected: protected, ReadOnly: la.ReadOnlyWorkspace, Git: la.WritableGit, Shm: la.Profile == driver.ProfileApp}
	for _, m := range la.Mounts {
		if m.Source != m.Target {
			return command{}, engine.Errorf(engine.Unavailable, "landlock can't show %s at %s", m.Source, m.Target)
		}
		if m.ReadOnly {
			r.Read = append(r.Read, m.Source)
		} else {
			r.Write = append(r.Write, m.Source)
		}
	}
	offline := la.Profile == driver.ProfileAgent && !la.Network
	return l.h.launcher(&plan{
		Argv: la.Argv, Env: b.environ(la, home, tmp), Dir: dir, Parent: os.Getpid(),
		Drop: l.h.root, UID: b.uid, GID: b.gid, Workspace: b.workspace,
		Rules: r, NoSockets: offline, NoUnix: l.abi < unixABI, Rlimits: b.rlimits(false),
	}), nil
}

// readable are the paths that every box may read.
func (l *landlock) readable() []string {
	return append(append([]string{"/proc"}, l.h.view.base...), l.h.view.tools...)
}

// scratch is a home and a temporary directory in the box's own. An agent's home
// is another than the app's.
func (b *box) scratch(la launch) (home, tmp string, err error) {
	tmp = filepath.Join(b.dir, "tmp")
	home = b.home()
	dirs := []string{tmp}
	if la.Profile == driver.ProfileAgent {
		home = filepath.Join(b.dir, "agent")
		dirs = append(dirs, home)
	}
	for _, dir := range dirs {
		err := os.Mkdir(dir, 0o700)
		if err == nil && b.host.root {
			err = os.Lchown(dir, b.uid, b.gid)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", "", fmt.Errorf("make %s: %w", filepath.Base(dir), err)
		}
	}
	return home, tmp, nil
}

// rules are what Landlock is told, in paths.
type rules struct {
	ABI       int
	Read      []string
	Write     []string
	Workspace string
	Protected []string // in it
	ReadOnly  bool     // all of it
	Git       bool     // but its .git
	Shm       bool     // /dev/shm
}

// The rights of Landlock, by what they are for.
const (
	llRead  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	llFile  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	llAlter = ll.AccessFSWriteFile | ll.AccessFSTruncate
)

// handled are all rights that this version knows.
func (r *rules) handled() uint64 {
	last := uint(12) // of version 1
	for _, since := range []int{2, 3, 5, 9} {
		if r.ABI >= since {
			last++
		}
	}
	return 1<<(last+1) - 1
}

// ruleset makes what the program will be confined by; -1 is nothing.
func (p *plan) ruleset() (int, error) {
	r := p.Rules
	if r == nil && !p.Scope {
		return -1, nil
	}
	attr := ll.RulesetAttr{}
	if r != nil {
		attr.HandledAccessFS = r.handled()
	}
	if p.Scope || r.ABI >= scopeABI {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return -1, fmt.Errorf("make landlock rules: %w", err)
	}
	unix.CloseOnExec(fd)
	if r == nil {
		return fd, nil
	}
	return fd, r.fill(fd)
}

func (r *rules) fill(set int) error {
	for _, path := range r.Read {
		if err := r.allowPath(set, path, llRead); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, path := range r.Write {
		if err := r.allowPath(set, path, r.handled()); err != nil {
			return err
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"} {
		if name == "shm" && !r.Shm {
			continue
		}
		rights := uint64(llRead | llAlter | ll.AccessFSIoctlDev)
		if name == "shm" {
			rights = r.handled() // shared by all: semaphores lie there
		}
		if err := r.allowPath(set, "/dev/"+name, rights); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	ws, err := unix.Open(r.Workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	defer unix.Close(ws)
	if err := r.allow(set, ws, llRead); err != nil {
		return err
	}
	if r.ReadOnly && r.Git {
		return r.allowEntry(set, ws, ".git", nil)
	}
	if r.ReadOnly {
		return nil
	}
	return r.allowAround(set, ws, ".", r.Protected)
}

// allowPath opens a path of ours; links in it are ours, too.
func (r *rules) allowPath(set int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	return r.allow(set, fd, rights)
}

func (r *rules) allow(set, fd int, rights uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rights &= r.handled()
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= llFile
	}
	attr := ll.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}
	if err := ll.LandlockAddPathBeneathRule(set, &attr, 0); err != nil {
		return fmt.Errorf("add a landlock rule: %w", err)
	}
	return nil
}

// allowAround grants writes to everything in a directory but the protected
// names, given relative to it. A grant holds for all that is beneath, so one
// with something protected in it gets none: nothing new can be made there.
func (r *rules) allowAround(set, dir int, name string, protected []string) error {
	if len(protected) == 0 {
		return r.allow(set, dir, r.handled())
	}
	below := map[string][]string{} // by first part; nil: protected itself
	for _, p := range protected {
		first, rest, deeper := strings.Cut(p, "/")
		if sofar, seen := below[first]; deeper && (!seen || sofar != nil) {
			below[first] = append(sofar, rest)
		} else {
			below[first] = nil
		}
	}
	names, err := readNames(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for _, entry := range names {
		rest, special := below[entry]
		if special && rest == nil {
			continue
		}
		if err := r.allowEntry(set, dir, entry, rest); err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) allowEntry(set, dir int, entry string, protected []string) error {
	fd, err := unix.Openat(dir, entry, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // gone meanwhile
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return r.allowAround(set, fd, entry, protected)
	case st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 1: // else it may be a protected one's other name
		return r.allow(set, fd, llFile)
	}
	return nil
}

// readNames lists a directory that is open as a path only.
func readNames(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	return f.Readdirnames(-1)
}

// restrictSelf confines this thread.
func restrictSelf(set int) error { return ll.LandlockRestrictSelf(set, 0) }
