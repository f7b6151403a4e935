//go:build linux

package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/shim"
)

// ConfineMain is the launcher: what bubblewrap runs instead of the sandbox's
// program, or what runs in bubblewrap's place. It mounts what is protected,
// gives up every privilege, and becomes the program. It returns an exit code
// only if it could not.
//
// Everything happens on one thread, the one that executes the program: what a
// process is allowed belongs, in Linux, to its threads.
func ConfineMain(args []string) int {
	runtime.LockOSThread()
	for _, fd := range []int{shim.PlanFD, shim.ExeFD, shim.StatusFD} {
		unix.CloseOnExec(fd)
	}
	p, err := readPlan()
	if err == nil {
		err = p.become()
	}
	shim.Say(err)
	fmt.Fprintln(os.Stderr, "sbx:", err)
	return engine.ExitNotExecutable
}

// become makes this process the sandbox's. It returns only with an error.
func (p *plan) become() error {
	program, err := p.program()
	if err != nil {
		return err
	}
	if err := p.protect(); err != nil {
		return err
	}
	ruleset, err := p.ruleset() // named by paths that only we may see
	if err != nil {
		return err
	}
	if err := p.drop(); err != nil {
		return err
	}
	// After the mounts: a directory entered before would lead around them.
	if err := os.Chdir(p.Dir); err != nil {
		return engine.Errorf(engine.Invalid, "enter the working directory: %w", err)
	}
	if err := p.shut(ruleset); err != nil {
		return err
	}
	if p.TTY {
		if err := shim.LeadTTY(); err != nil {
			return err
		}
	}
	unix.Umask(0o022)
	plainSignals()
	shim.Say(nil)
	return p.exec(program)
}

// exec becomes the program. Limits come last, and nothing of this runtime
// between them and the end of it: it takes more than a small program may have.
func (p *plan) exec(program string) error {
	path, err := syscall.BytePtrFromString(program)
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(p.Argv)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(p.Env)
	if err != nil {
		return err
	}
	for _, r := range p.Rlimits {
		r.Set()
	}
	_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return e
}

// plainSignals gives signals their default effect now rather than at the exec:
// one that the Go runtime's handler took on a thread that the exec is ending
// would be lost, and whoever sent TERM would wait in vain.
func plainSignals() {
	var deflt [32]byte // a struct sigaction of zeros, on every architecture
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&deflt)), 0, 8, 0, 0)
	}
}

// program finds Argv[0] on the sandbox's PATH.
func (p *plan) program() (string, error) {
	name := p.Argv[0]
	if strings.Contains(name, "/") {
		return name, runnable(name)
	}
	for _, kv := range p.Env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if path := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(path) == nil {
				return path, nil
			}
		}
	}
	return "", engine.Errorf(engine.NotFound, "%s: there is no such program on the sandbox's PATH", name)
}

func runnable(path string) error {
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return engine.Errorf(engine.NotFound, "%w", err)
	case fi.IsDir():
		return engine.Errorf(engine.Invalid, "%s is a directory", path)
	case fi.Mode()&0o111 == 0:
		return engine.Errorf(engine.Invalid, "%s is not executable", path)
	}
	return nil
}

// drop gives up every privilege of this thread, for good.
func (p *plan) drop() error {
	if err := shim.Renounce(p.Drop); err != nil {
		return err
	}
	if p.Drop {
		if err := becomeUser(p.UID, p.GID); err != nil {
			return fmt.Errorf("become uid %d: %w", p.UID, err)
		}
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if p.Parent == 0 {
		return nil
	}
	// Changing user has cleared it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("die with the engine: %w", err)
	}
	if os.Getppid() != p.Parent {
		return errors.New("the engine has gone")
	}
	return nil
}

// becomeUser changes this thread's ids by the system calls themselves: those
// of package syscall change all threads and ask them first.
func becomeUser(uid, gid int) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("setgroups: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)); e != 0 {
		return fmt.Errorf("setresgid: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
		return fmt.Errorf("setresuid: %w", e)
	}
	return nil
}

// protect mounts the protected paths read-only over themselves, and every
// directory on the way to them over itself, so that none can be moved aside:
// the kernel lets nobody rename or remove what is mounted on.
//
// It works by descriptors from the workspace down and follows no link: the
// sandbox may be changing the workspace at this moment.
func (p *plan) protect() error {
	if p.OnlyGit {
		return p.protectAllButGit()
	}
	ways := map[string]bool{}
	for _, name := range p.Protected {
		for i, c := range name {
			if c == '/' && !ways[name[:i]] {
				ways[name[:i]] = true
				if err := p.remount(name[:i], false); err != nil {
					return fmt.Errorf("hold %s in place: %w", name[:i], err)
				}
			}
		}
		if err := p.remount(name, true); err != nil {
			return fmt.Errorf("protect %s: %w", name, err)
		}
	}
	return nil
}

// protectAllButGit makes the workspace read-only around its .git.
func (p *plan) protectAllButGit() error {
	if err := p.remount(".git", false); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("keep .git writable: %w", err)
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, p.Workspace, unix.AT_SYMLINK_NOFOLLOW, attr); err != nil {
		return fmt.Errorf("protect the workspace: %w", err)
	}
	return nil
}

func (p *plan) remount(name string, readOnly bool) error {
	ws, err := unix.Open(p.Workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ws)
	fd, err := unix.Openat2(ws, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if readOnly {
		attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
			return err
		}
	}
	return unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// shut closes what Landlock and seccomp close.
func (p *plan) shut(ruleset int) error {
	if ruleset >= 0 {
		if err := restrictSelf(ruleset); err != nil {
			return fmt.Errorf("confine by landlock: %w", err)
		}
	}
	if !p.NoSockets && !p.NoUnix {
		return nil
	}
	filter := socketFilter(p.NoSockets)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return fmt.Errorf("confine by seccomp: %w", err)
	}
	return nil
}
