//go:build linux

package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// userGit runs git as the workspace's owner would, in dir of the workspace.
func userGit(t *testing.T, b *box, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(b.workspace, dir)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=user", "GIT_AUTHOR_EMAIL=user@example.com", "GIT_COMMITTER_NAME=user", "GIT_COMMITTER_EMAIL=user@example.com",
	}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.gid)}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// repo makes dir of the workspace a repository with all that is there in it.
func repo(t *testing.T, b *box, dir string) {
	t.Helper()
	userGit(t, b, dir, "init", "-q", "-b", "main")
	userGit(t, b, dir, "add", "-A")
	userGit(t, b, dir, "commit", "-q", "--allow-empty", "-m", "first")
}

// plant puts into the workspace's repository all that git would run by itself.
// Each would leave the file it returns, outside of the workspace.
func plant(t *testing.T, b *box) (marker string) {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	check(t, os.Chmod(dir, 0o777))
	marker = filepath.Join(dir, "ran")
	evil := filepath.Join(b.workspace, ".git", "evil")
	check(t, os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $@\" >>"+marker+"\n(: >escaped)\n(: >.git/escaped)\n[ $# = 0 ] || exit 0\ncat\n"), 0o755))
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change", "prepare-commit-msg", "fsmonitor-watchman"} {
		check(t, os.WriteFile(filepath.Join(b.workspace, ".git/hooks", hook), []byte("#!/bin/sh\necho "+hook+" >>"+marker+"\n"), 0o755))
	}
	for key, value := range map[string]string{
		"core.fsmonitor": evil, "core.hooksPath": filepath.Join(b.workspace, ".git/hooks"), "commit.gpgSign": "true",
		"gpg.program": evil, "core.editor": evil, "core.pager": evil, "diff.external": evil, "diff.evil.textconv": evil,
		"core.sshCommand": evil, "core.alternateRefsCommand": evil, "alias.write-tree": "!" + evil, "core.worktree": dir,
		"filter.evil.clean": evil, "filter.evil.smudge": evil, "filter.evil.required": "true",
	} {
		userGit(t, b, ".", "config", key, value)
	}
	give(t, b)
	return marker
}

func head(t *testing.T, b *box) string {
	return strings.TrimSpace(userGit(t, b, ".", "rev-parse", "HEAD"))
}

func status(t *testing.T, b *box) string {
	return userGit(t, b, ".", "status", "--porcelain", "-uall")
}

func remove(t *testing.T, b *box, name string) {
	t.Helper()
	check(t, os.Remove(filepath.Join(b.workspace, name)))
}

func TestCommitLeavesTheUsersWorkAsItWas(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{
		"fix.js": "broken\n", "gone.js": "x\n", "old-name.js": "renamed\n", "dirty.js": "1\n", "staged.js": "1\n", "both.js": "1\n",
		"staged-gone.js": "1\n", ".gitignore": "*.log\n", "tool": "#!x\n", "type": "file\n",
	})
	repo(t, b, ".")
	lay(t, b, map[string]string{"dirty.js": "2\n", "staged.js": "2\n", "both.js": "2\n", "staged-new.js": "new\n", "untracked.js": "u\n", "x.log": "l"})
	remove(t, b, "staged-gone.js")
	userGit(t, b, ".", "add", "staged.js", "both.js", "staged-new.js", "staged-gone.js")
	lay(t, b, map[string]string{"both.js": "3\n"})
	before, old := status(t, b), head(t, b)

	dirty, ok, why, err := b.Checkpoints().Dirty(t.Context())
	check(t, err)
	if !ok || why != "" {
		t.Fatalf("dirty says %v, %q", ok, why)
	}
	want := []string{"both.js", "dirty.js", "staged-gone.js", "staged-new.js", "staged.js", "untracked.js"}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(dirty))); diff != "" {
		t.Fatal(diff)
	}

	lay(t, b, map[string]string{"fix.js": "fixed\n", "new/file.js": "new\n", "new-name.js": "renamed\n", "y.log": "ignored", "tool": "plain\n"})
	check(t, os.Chmod(filepath.Join(b.workspace, "tool"), 0o644))
	remove(t, b, "gone.js")
	remove(t, b, "old-name.js")
	remove(t, b, "type")
	lay(t, b, map[string]string{"type/now/dir": "x\n", "-rf\nesc\x1b": "odd\n"})
	paths := []string{"fix.js", "gone.js", "old-name.js", "new-name.js", "new/file.js", "y.log", "tool", "type", "type/now/dir", "-rf\nesc\x1b"}
	commit, err := b.Checkpoints().Commit(t.Context(), paths, "sbx: fix the typo\n\nRun ru-x.")
	check(t, err)

	if got := head(t, b); got != commit || got == old {
		t.Fatalf("HEAD is %s, the commit %s, it was %s", got, commit, old)
	}
	if diff := cmp.Diff(before, status(t, b)); diff != "" {
		t.Errorf("the user's status changed: %s", diff)
	}
	if got := userGit(t, b, ".", "show", "-s", "--format=%an <%ae> %cn %s|%b|%P"); strings.TrimSpace(got) != "sbx healer <healer@sbx.invalid> sbx healer sbx: fix the typo|Run ru-x.\n|"+old {
		t.Errorf("the commit is %q", got)
	}
	wantChanges := "M\x00fix.js\x00D\x00gone.js\x00A\x00new-name.js\x00A\x00new/file.js\x00D\x00old-name.js\x00M\x00tool\x00D\x00type\x00A\x00type/now/dir\x00"
	if got := userGit(t, b, ".", "show", "--format=", "--name-status", "--no-renames", "-z"); strings.Replace(got, "A\x00-rf\nesc\x1b\x00", "", 1) != wantChanges {
		t.Errorf("the commit changes %q", got)
	}
	if got := userGit(t, b, ".", "show", ":both.js"); got != "2\n" {
		t.Errorf("staged is %q", got)
	}
	if list, err := filepath.Glob(filepath.Join(b.dir, "commit*")); err != nil || len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
	userGit(t, b, ".", "fsck", "--strict")
}

func TestWhatTheRepositoryWouldRunDoesNotRunOrNotOutside(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1\n", ".gitattributes": "* filter=evil diff=evil\n"})
	repo(t, b, ".")
	marker := plant(t, b)
	lay(t, b, map[string]string{"a": "2\n"})
	dirty, ok, why, err := b.Checkpoints().Dirty(t.Context())
	check(t, err)
	if !ok || len(dirty) != 1 || dirty[0] != "a" {
		t.Fatalf("dirty says %v %v %q", dirty, ok, why)
	}
	for _, name := range []string{"escaped", ".git/escaped"} {
		if _, err := os.Stat(filepath.Join(b.workspace, name)); err == nil {
			t.Errorf("a filter made %s", name)
		}
	}
	_, err = b.Checkpoints().Commit(t.Context(), []string{"a"}, "fix")
	check(t, err)
	if _, err := os.Stat(filepath.Join(b.workspace, "escaped")); err == nil {
		t.Error("a filter wrote to the workspace")
	}
	if data, err := os.ReadFile(marker); err == nil {
		t.Errorf("ran:\n%s", data)
	}
}

func TestWhatMakesACommitImpossibleIsSaid(t *testing.T) {
	conflict := func(t *testing.T, b *box, end ...string) {
		userGit(t, b, ".", "checkout", "-q", "-b", "side")
		lay(t, b, map[string]string{"a": "side\n"})
		userGit(t, b, ".", "commit", "-qam", "side")
		userGit(t, b, ".", "checkout", "-q", "main")
		lay(t, b, map[string]string{"a": "main\n"})
		userGit(t, b, ".", "commit", "-qam", "main")
		userGit(t, b, ".", append([]string{"-c", "core.editor=true"}, end...)...)
	}
	cases := map[string]struct {
		make func(t *testing.T, b *box)
		why  string
	}{
		"none":     {func(t *testing.T, b *box) { check(t, os.RemoveAll(filepath.Join(b.workspace, ".git"))) }, "no git repository"},
		"detached": {func(t *testing.T, b *box) { userGit(t, b, ".", "checkout", "-q", "--detach") }, "HEAD is detached"},
		"unborn":   {func(t *testing.T, b *box) { userGit(t, b, ".", "checkout", "-q", "--orphan", "new") }, "no commit yet"},
		"bare":     {func(t *testing.T, b *box) { userGit(t, b, ".", "config", "core.bare", "true") }, "bare"},
		"worktree": {func(t *testing.T, b *box) {
			check(t, os.Rename(filepath.Join(b.workspace, ".git"), filepath.Join(b.dir, "elsewhere")))
			lay(t, b, map[string]string{".git": "gitdir: " + b.dir + "/elsewhere\n"})
		}, "outside of the workspace"},
		"linked": {func(t *testing.T, b *box) {
			check(t, os.Rename(filepath.Join(b.workspace, ".git"), filepath.Join(b.dir, "elsewhere")))
			lay(t, b, map[string]string{".git": "-> " + b.dir + "/elsewhere"})
		}, "outside of the workspace"},
		"corrupt": {func(t *testing.T, b *box) {
			check(t, os.WriteFile(filepath.Join(b.workspace, ".git/index"), []byte("garbage garbage garbage"), 0o644))
		}, "git can't read the repository"},
		"merge":       {func(t *testing.T, b *box) { conflict(t, b, "merge", "-q", "-s", "ours", "--no-commit", "side") }, "a merge is in progress"},
		"rebase":      {func(t *testing.T, b *box) { conflict(t, b, "rebase", "-q", "-x", "true", "HEAD~1"); stopRebase(t, b) }, "a rebase is in progress"},
		"cherry-pick": {func(t *testing.T, b *box) { conflict(t, b, "update-ref", "CHERRY_PICK_HEAD", "side") }, "a cherry-pick is in progress"},
		"bisect":      {func(t *testing.T, b *box) { userGit(t, b, ".", "bisect", "start") }, "a bisect is in progress"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newTestBox(t)
			lay(t, b, map[string]string{"a": "1\n", "fix": "1\n"})
			repo(t, b, ".")
			c.make(t, b)
			lay(t, b, map[string]string{"fix": "2\n"})
			paths, ok, why, err := b.Checkpoints().Dirty(t.Context())
			check(t, err)
			if ok || len(paths) != 0 || !strings.Contains(why, c.why) {
				t.Errorf("dirty says %v %v %q, want %q", paths, ok, why, c.why)
			}
			_, err = b.Checkpoints().Commit(t.Context(), []string{"fix"}, "fix")
			wantCode(t, err, engine.Conflict)
			if !strings.Contains(err.Error(), c.why) {
				t.Errorf("commit says %q, want %q", err, c.why)
			}
		})
	}
}

// stopRebase leaves a rebase as one that waits for its user.
func stopRebase(t *testing.T, b *box) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Join(b.workspace, ".git/rebase-merge"), 0o755))
	give(t, b)
}

func TestUnconfinedGitIsKeptFromTheRepository(t *testing.T) {
	b := bootTestBox(t, openTestHost(t, "none"))
	lay(t, b, map[string]string{"a": "1\n"})
	repo(t, b, ".")
	_, ok, why, err := b.Checkpoints().Dirty(t.Context())
	check(t, err)
	if ok || !strings.Contains(why, "confines") {
		t.Errorf("dirty says %v %q", ok, why)
	}
	_, err = b.Checkpoints().Commit(t.Context(), []string{"a"}, "fix")
	wantCode(t, err, engine.Conflict)
	before := save(t, b) // its own git directory is no danger
	lay(t, b, map[string]string{"a": "2\n"})
	check(t, b.Checkpoints().Restore(t.Context(), before, []string{"a"}))
}

func TestCommitRefusesWhatSomebodyElseStaged(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1\n"})
	repo(t, b, ".")
	lay(t, b, map[string]string{"a": "staged\n"})
	userGit(t, b, ".", "add", "a")
	lay(t, b, map[string]string{"a": "fixed\n"})
	before, old := status(t, b), head(t, b)
	_, err := b.Checkpoints().Commit(t.Context(), []string{"a"}, "fix")
	wantCode(t, err, engine.Conflict)
	if status(t, b) != before || head(t, b) != old {
		t.Error("something was done")
	}
}

func TestCommitLeavesNestedRepositoriesAndIgnoredFilesOut(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1\n", ".gitignore": ".env\n", "sub/code": "1\n"})
	repo(t, b, "sub")
	repo(t, b, ".")
	lay(t, b, map[string]string{"sub/code": "2\n", ".env": "K=1\n"})
	_, err := b.Checkpoints().Commit(t.Context(), []string{"sub/code", ".env"}, "fix")
	wantCode(t, err, engine.Conflict)
	lay(t, b, map[string]string{"a": "2\n"})
	_, err = b.Checkpoints().Commit(t.Context(), []string{"sub/code", ".env", "a"}, "fix")
	check(t, err)
	if got := userGit(t, b, ".", "show", "--format=", "--name-only"); got != "a\n" {
		t.Errorf("committed %q", got)
	}
}

func TestCommitWaitsForTheIndexOnlyBriefly(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1\n"})
	repo(t, b, ".")
	lay(t, b, map[string]string{"a": "2\n", ".git/index.lock": ""})
	old := head(t, b)
	_, err := b.Checkpoints().Commit(t.Context(), []string{"a"}, "fix")
	wantCode(t, err, engine.Conflict)
	if !strings.Contains(err.Error(), "index.lock") || head(t, b) != old {
		t.Errorf("it says %v", err)
	}
	lock := filepath.Join(b.workspace, ".git/index.lock")
	timer := time.AfterFunc(200*time.Millisecond, func() { _ = os.Remove(lock) })
	defer timer.Stop()
	_, err = b.Checkpoints().Commit(t.Context(), []string{"a"}, "fix")
	check(t, err)
	if got := status(t, b); got != "" {
		t.Errorf("status is %q", got)
	}
}

func TestCommitToAShallowClone(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1\n"})
	repo(t, b, ".")
	for _, m := range []string{"2\n", "3\n"} {
		lay(t, b, map[string]string{"a": m})
		userGit(t, b, ".", "commit", "-qam", "more")
	}
	check(t, os.WriteFile(filepath.Join(b.workspace, ".git/shallow"), []byte(head(t, b)+"\n"), 0o644))
	lay(t, b, map[string]string{"a": "4\n"})
	_, err := b.Checkpoints().Commit(t.Context(), []string{"a"}, "fix")
	check(t, err)
	if got := status(t, b); got != "" {
		t.Errorf("status is %q", got)
	}
}
