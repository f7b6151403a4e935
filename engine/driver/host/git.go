//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sbx/engine"
	"sbx/engine/driver"
)

// gitTimeout bounds one git command: a hostile repository can make it wait for
// ever (a FIFO as .gitattributes is enough).
const gitTimeout = 2 * time.Minute

// maxGitOut bounds what is read of a command that lists names.
const maxGitOut = 256 << 20

// gitEnv is what every git command of ours runs with. It makes our own
// commands predictable; against a hostile repository only the confinement
// helps, for its filters run whatever is set here.
var gitEnv = []string{
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_LITERAL_PATHSPECS=1",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_PAGER=cat",
	"GIT_EDITOR=false",
	"GIT_ASKPASS=false",
	"LC_ALL=C",
}

// gitConfig outranks every file that git reads its settings from.
var gitConfig = [][2]string{
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"core.quotePath", "true"},
	{"core.splitIndex", "false"},
	{"index.version", "2"},
	{"advice.detachedHead", "false"},
}

// gitCommand is git or a short shell script of git commands, run confined as
// the workspace's owner, in the workspace.
type gitCommand struct {
	script   string
	env      []string
	config   [][2]string
	mounts   []mount
	umask    string // "077" if ""
	writable bool   // the workspace's own .git
	stdin    io.Reader
	maxOut   int
}

// git runs a command in the box. A failure carries what git said.
func (b *box) git(ctx context.Context, c gitCommand) ([]byte, error) {
	if err := haveGit(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	if c.maxOut == 0 {
		c.maxOut = maxGitOut
	}
	if c.umask == "" {
		c.umask = "077"
	}
	out, said, err := b.run(ctx, launch{
		Argv:              []string{"/bin/sh", "-c", "set -eu\numask " + c.umask + "\n" + c.script},
		Env:               concat(gitEnv, configEnv(concat(gitConfig, c.config)), c.env),
		Profile:           driver.ProfileAgent,
		Mounts:            c.mounts,
		ReadOnlyWorkspace: true,
		WritableGit:       c.writable,
	}, c.stdin, c.maxOut)
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return out, &gitError{said: said, err: err}
}

func concat[T any](lists ...[]T) []T {
	var all []T
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// configEnv hands settings to git as its command line would (git 2.31 and up).
func configEnv(config [][2]string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config))}
	for i, kv := range config {
		env = append(env, "GIT_CONFIG_KEY_"+strconv.Itoa(i)+"="+kv[0], "GIT_CONFIG_VALUE_"+strconv.Itoa(i)+"="+kv[1])
	}
	return env
}

// haveGit is Unavailable where there is no git.
func haveGit() error {
	if _, err := exec.LookPath("git"); err != nil {
		return engine.Errorf(engine.Unavailable, "this host has no git").WithHint("install git")
	}
	return nil
}

// gitError is a git command that failed, with its words.
type gitError struct {
	said []byte
	err  error
}

func (e *gitError) Unwrap() error { return e.err }

func (e *gitError) Error() string {
	if line := e.line(); line != "" {
		return line
	}
	return "git: " + e.err.Error()
}

// line is the line of git's words that says most: the last one that tells of
// an error, made fit to be shown.
func (e *gitError) line() string {
	best := ""
	for line := range strings.Lines(string(e.said)) {
		line = strings.TrimSpace(line)
		if best == "" || strings.HasPrefix(line, "fatal:") || strings.HasPrefix(line, "error:") {
			best = line
		}
	}
	best = strings.TrimPrefix(strings.TrimPrefix(best, "fatal: "), "error: ")
	best = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(best, "?"))
	if len(best) > 300 {
		best = strings.ToValidUTF8(best[:300], "") + "…"
	}
	return best
}

// says reports whether git's words have any of the phrases; it speaks C here.
func says(err error, phrases ...string) bool {
	var e *gitError
	if !errors.As(err, &e) {
		return false
	}
	for _, p := range phrases {
		if bytes.Contains(e.said, []byte(p)) {
			return true
		}
	}
	return false
}

// diskFull reports whether git ran out of space, in its several phrases.
func diskFull(err error) bool {
	return says(err, "No space left on device", "Out of diskspace", "Disk quota exceeded")
}

// gitFailed gives a failed command a code and says what was being done.
func gitFailed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*engine.Error)), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return engine.Errorf(engine.Unavailable, "%s: git took too long: %w", doing, err)
	case diskFull(err):
		return engine.Errorf(engine.Exhausted, "%s: the disk is full", doing).WithHint("free space and try again")
	}
	return engine.Errorf(engine.Internal, "%s: %w", doing, err)
}
