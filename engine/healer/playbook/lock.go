package playbook

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// lock removes what a process that is gone left to say that it is at work: lock
// and pid files and sockets of git, package managers, bundlers and servers.
type lock struct{}

func (lock) Name() string { return "stale lock" }
func (lock) Edits() bool  { return false }

func (lock) Applies(ev Evidence) (string, bool) {
	stale := staleLocks(ev)
	if len(stale) == 0 {
		return "", false
	}
	return fmt.Sprintf("%s is left from a process that is gone, and the log names it%s", stale[0], andMore(len(stale)-1)), true
}

// staleLocks: the app is down or hangs, so that its own are nobody's; of git's
// and a package manager's it must be sure that no other command is at work.
func staleLocks(ev Evidence) []string {
	if !ev.Down() && (ev.Probe.OK || ev.Spec.App.Health == "") {
		return nil
	}
	var stale []string
	for _, l := range ev.Locks {
		if l.Socket || strings.HasSuffix(l.Path, ".pid") || ev.Others == 0 {
			stale = append(stale, l.Path)
		}
	}
	return stale
}

func (lock) Apply(ctx context.Context, ev Evidence, w Workbench) error {
	if err := w.KillStrays(ctx); err != nil { // whoever holds it is an orphan
		return err
	}
	if err := w.Remove(ctx, staleLocks(ev)); err != nil {
		return err
	}
	return w.Restart(ctx)
}

// Lock is a file or socket that says that somebody is at work.
type Lock struct {
	Path   string
	Socket bool
}

// lockWord matches what a log may name as a lock.
var lockWord = lazily(`[\w@.+/-]*(?:\.(?:lock|lck|pid|sock)|\b(?:lock|LOCK|SingletonLock|lockfile))\b`)

// LockNames are the names in a log that could be those of locks.
func LockNames(log string) []string {
	var names []string
	seen := map[string]bool{}
	for _, name := range lockWord().FindAllString(log, 200) {
		name = strings.TrimRight(name, ".")
		if !seen[name] && !listsVersions(name) {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// LockDirs are where a lock is looked for that a log names without its directory.
var LockDirs = []string{".", ".git", "tmp", "tmp/pids", "run", ".pm2", ".next", ".next/dev", "node_modules", ".venv"}

// IsLock reports whether a file that a log names is a lock by its name and its
// content, and nothing that somebody wrote: empty, or a process's number.
func IsLock(name, content string) bool {
	base := path.Base(name)
	if listsVersions(base) || len(content) > 256 {
		return false
	}
	if strings.HasPrefix(name, ".git/") || strings.Contains(name, "/.git/") {
		return strings.HasSuffix(base, ".lock")
	}
	content = strings.TrimSpace(content)
	if strings.Trim(content, "0123456789 \n") == "" {
		return true
	}
	return strings.HasPrefix(content, "{") && strings.Contains(content, `"pid"`)
}

// listsVersions: those are no locks but a person's choice of dependencies.
func listsVersions(name string) bool {
	switch path.Base(name) {
	case "yarn.lock", "Cargo.lock", "poetry.lock", "uv.lock", "Pipfile.lock", "Gemfile.lock", "composer.lock", "flake.lock",
		"deno.lock", "bun.lock", "mix.lock", "pubspec.lock", "pdm.lock", "pixi.lock", "Podfile.lock":
		return true
	}
	return false
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}
