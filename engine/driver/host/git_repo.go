//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"sbx/engine"
)

// The workspace's own repository is whoever's wrote the workspace. Its hooks
// are off and its settings outranked, and yet its filters run: so everything
// here is confined, as the workspace's owner, and .git is writable for the
// last steps of a commit only.

// busy are the files in .git that tell of an operation in progress.
var busy = []struct{ name, what string }{
	{"MERGE_HEAD", "a merge is in progress"},
	{"rebase-merge", "a rebase is in progress"},
	{"rebase-apply", "a rebase or am is in progress"},
	{"CHERRY_PICK_HEAD", "a cherry-pick is in progress"},
	{"REVERT_HEAD", "a revert is in progress"},
	{"sequencer", "a cherry-pick or revert is in progress"},
	{"BISECT_LOG", "a bisect is in progress"},
}

// ownGit runs a script on the workspace's own repository.
func (b *box) ownGit(ctx context.Context, c gitCommand) ([]byte, error) {
	// Explicit paths: git looks nowhere else, whatever core.worktree says.
	c.env = append([]string{"GIT_DIR=.git", "GIT_WORK_TREE=."}, c.env...)
	c.config = append([][2]string{
		{"core.untrackedCache", "false"},
		{"commit.gpgSign", "false"},
		{"i18n.commitEncoding", "UTF-8"},
	}, c.config...)
	c.umask = "022" // what it writes is the user's
	return b.git(ctx, c)
}

// Dirty are the paths that the workspace's own repository shows as changed,
// staged or untracked, and not ignored.
func (c *checkpoints) Dirty(ctx context.Context) (paths []string, ok bool, why string, err error) {
	repo, why, err := c.b.repository(ctx)
	if err != nil || why != "" {
		return nil, false, why, err
	}
	for _, ch := range repo.changes {
		paths = append(paths, ch.path)
	}
	return paths, true, "", nil
}

// repository is what the workspace's own git says.
type repository struct {
	head    string // the commit
	changes []statusEntry
}

// statusEntry is one path of "git status": how the index differs from HEAD and
// the workspace from the index.
type statusEntry struct {
	index, work byte
	path        string
}

const readRepository = `
echo "bare $(git config --type=bool --get core.bare || :)"
echo "ref $(git symbolic-ref -q HEAD || :)"
echo "head $(git rev-parse -q --verify 'HEAD^{commit}' || :)"
printf '\0'
git status --porcelain=v1 -z --untracked-files=all --ignore-submodules=dirty --no-renames
`

// repository looks at the workspace's own repository. why says what makes a
// commit impossible; what git itself can't cope with is such a reason too.
func (b *box) repository(ctx context.Context) (repo repository, why string, err error) {
	if why, err := b.lookAtGit(); why != "" || err != nil {
		return repo, why, err
	}
	if haveGit() != nil {
		return repo, "this host has no git", nil
	}
	if !b.host.iso.Confines {
		return repo, "nothing on this host confines what the repository makes git run", nil
	}
	out, err := b.ownGit(ctx, gitCommand{script: readRepository})
	switch {
	case errors.As(err, new(*gitError)), errors.Is(err, errCut), errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return repo, "git can't read the repository: " + err.Error(), nil
	case err != nil:
		return repo, "", err
	}
	return parseRepository(out)
}

// lookAtGit finds what can be seen without git.
func (b *box) lookAtGit() (why string, err error) {
	r, err := b.openWorkspace()
	if err != nil {
		return "", err
	}
	defer r.Close()
	st, err := r.Lstat(".git")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no git repository", nil
	case err != nil:
		return "", fileError("look at", ".git", err)
	case !st.IsDir():
		return "the repository lies outside of the workspace (.git is no directory: a worktree or submodule)", nil
	case !there(r, ".git/HEAD"):
		return "no git repository", nil
	case there(r, ".git/commondir"):
		return "the repository lies outside of the workspace (a worktree)", nil
	}
	for _, op := range busy {
		if there(r, ".git/"+op.name) {
			return op.what, nil
		}
	}
	return "", nil
}

func there(r *os.Root, name string) bool {
	_, err := r.Lstat(name)
	return err == nil
}

// parseRepository reads the output of readRepository.
func parseRepository(out []byte) (repo repository, why string, err error) {
	head, rest, _ := bytes.Cut(out, []byte{0})
	facts := make(map[string]string)
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		facts[key] = value
	}
	switch {
	case facts["bare"] == "true":
		return repo, "the repository is bare", nil
	case facts["ref"] == "":
		return repo, "HEAD is detached: no branch would hold the commit", nil
	case !strings.HasPrefix(facts["ref"], "refs/heads/"):
		return repo, "HEAD is not on a branch", nil
	case !isOID(facts["head"]):
		return repo, "the repository has no commit yet", nil
	}
	repo.head = facts["head"]
	for record := range strings.SplitSeq(strings.TrimSuffix(string(rest), "\x00"), "\x00") {
		if len(record) < 4 {
			continue
		}
		e := statusEntry{index: record[0], work: record[1], path: strings.TrimSuffix(record[3:], "/")}
		if e.unmerged() {
			return repository{}, "it has conflicts that nobody has resolved yet", nil
		}
		repo.changes = append(repo.changes, e)
	}
	return repo, "", nil
}

func (e statusEntry) unmerged() bool {
	xy := string([]byte{e.index, e.work})
	return e.index == 'U' || e.work == 'U' || xy == "AA" || xy == "DD"
}

// staged reports whether the index has something of the user's for the path.
func (e statusEntry) staged() bool { return e.index != ' ' && e.index != '?' && e.index != '!' }

// lockWait is how long a commit waits for a git command of the user's.
const lockWait = time.Second

// awaitIndex waits a little while somebody else's git holds the index.
func (b *box) awaitIndex(ctx context.Context) error {
	r, err := b.openWorkspace()
	if err != nil {
		return err
	}
	defer r.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(lockWait); there(r, ".git/index.lock"); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return errLocked()
		case <-tick.C:
		}
	}
	return nil
}

func errLocked() error {
	return engine.Errorf(engine.Conflict, "not committed: another git command holds the index (.git/index.lock)").
		WithHint("if no git command runs in the workspace, delete .git/index.lock")
}
