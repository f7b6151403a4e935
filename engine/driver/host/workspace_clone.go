//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"sbx/engine"
)

// cloneTimeout bounds a clone.
const cloneTimeout = 10 * time.Minute

// cloneSchemes are the transports that git may use for us; "ext::" and its
// kind run commands.
var cloneSchemes = []string{"https", "ssh", "git", "file"}

// scpLike is a remote as git@host:path.
var scpLike = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^:]`)

// checkRemote says where to clone from, and what may be shown of it: without
// a password.
func (h *Host) checkRemote(ref string) (remote, shown string, err error) {
	bad := func(why string) (string, string, error) {
		return "", "", engine.Errorf(engine.Invalid, "the repository's address %s", why).
			WithHint("use an https, ssh, git or file URL, or an absolute path")
	}
	switch {
	case ref == "" || len(ref) > maxName:
		return bad("is empty or too long")
	case strings.ContainsFunc(ref, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) && r != ' ' }):
		return bad("has control characters")
	case strings.HasPrefix(ref, "-"):
		return bad("looks like a flag")
	case filepath.IsAbs(ref):
		dir, err := h.checkSource(ref)
		return dir, dir, err
	case scpLike.MatchString(ref):
		return ref, ref, nil
	}
	u, err := url.Parse(ref)
	switch {
	case err != nil:
		return bad("is no URL") // the error would show a password
	case !slices.Contains(cloneSchemes, u.Scheme):
		return bad("has none of the schemes that are allowed")
	case u.Scheme == "file":
		if u.Host != "" {
			return bad("names a host for a file")
		}
		dir, err := h.checkSource(u.Path)
		return "file://" + dir, dir, err
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return bad("has no host")
	}
	return ref, u.Redacted(), nil
}

// clone makes the directory dir a clone of a repository. It is the operator
// who clones: their git settings, keys and proxies apply, and nothing of what
// is cloned runs: no hooks, no submodules.
func (h *Host) clone(ctx context.Context, ref, dir string) error {
	remote, shown, err := h.checkRemote(ref)
	if err != nil {
		return err
	}
	if err := haveGit(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cloneTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "-c", "core.hooksPath=/dev/null",
		"clone", "--quiet", "--no-hardlinks", "--no-recurse-submodules", "--template=", "--", remote, dir)
	cmd.Env = cloneEnv()
	cmd.Dir = "/"
	// A group of its own, so that its transport ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var said tail
	cmd.Stderr = &said
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return engine.Errorf(engine.Unavailable, "clone %s: took longer than %s", shown, cloneTimeout)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return cloneFailed(shown, &gitError{said: bytes.ReplaceAll(said.buf, []byte(remote), []byte(shown)), err: err})
}

func cloneFailed(shown string, failed error) error {
	switch {
	case diskFull(failed):
		return gitFailed("clone "+shown, failed)
	case says(failed, "dubious ownership"):
		// Reading a stranger's repository runs what its settings say.
		return engine.Errorf(engine.Forbidden, "clone %s: it belongs to another user", shown).
			WithHint("copy it instead, as --from does")
	}
	return engine.Errorf(engine.Unavailable, "clone %s: %w", shown, failed)
}

// cloneEnv is the engine's environment without what would ask, or send git to
// another repository.
func cloneEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "GIT_SSL_") && !strings.HasPrefix(kv, "GIT_SSH")
	})
	if os.Getenv("GIT_SSH_COMMAND") == "" {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	return append(env,
		"GIT_ALLOW_PROTOCOL="+strings.Join(cloneSchemes, ":"),
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false",
		"GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C")
}

// tail keeps the end of what a command says.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	const keep = 16 << 10
	t.buf = append(t.buf, p...)
	if len(t.buf) > keep {
		t.buf = slices.Clone(t.buf[len(t.buf)-keep:])
	}
	return len(p), nil
}
