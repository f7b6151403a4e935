//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sbx/engine"
)

// A commit is made in three steps, none of which anybody sees before the last:
//
//	forget   a private index: HEAD without the paths that are gone
//	build    the paths as they are, a tree, a commit object
//	publish  under the lock of the user's index: that index with the new
//	         entries, the branch moved from the old commit, the index renamed
//
// The private index is in a directory of ours; SCRATCH is where.
const (
	forgetScript = `
git read-tree "$OLD"
git update-index -z --index-info
`
	buildScript = `
git update-index -z --add --stdin
tree=$(git write-tree)
if [ "$tree" = "$(git rev-parse "$OLD^{tree}")" ]; then exit 0; fi
new=$(printf '%s\n' "$MESSAGE" | git commit-tree -p "$OLD" -F - "$tree")
echo "$new"
git diff-tree -r -z --raw --no-abbrev --no-renames "$OLD" "$new"
`
	publishScript = `
lock=$GIT_DIR/index.lock
if ! (set -C; : >"$lock") 2>/dev/null; then echo locked; exit 0; fi
trap 'rm -f "$lock"' EXIT
if [ -f "$GIT_DIR/index" ]; then cp "$GIT_DIR/index" "$SCRATCH/user"; fi
GIT_INDEX_FILE=$SCRATCH/user git update-index -z --index-info
cat "$SCRATCH/user" >"$lock"
git update-ref -m "commit: by sbx" HEAD "$NEW" "$OLD"
mv -f "$lock" "$GIT_DIR/index"
trap - EXIT
`
)

// publishTimeout is how long the last step may take. It isn't cut short by the
// caller: that could leave the user's index locked.
const publishTimeout = 30 * time.Second

// healerIdentity is who commits.
var healerIdentity = []string{
	"GIT_AUTHOR_NAME=sbx healer", "GIT_AUTHOR_EMAIL=healer@sbx.invalid",
	"GIT_COMMITTER_NAME=sbx healer", "GIT_COMMITTER_EMAIL=healer@sbx.invalid",
}

// Commit commits exactly paths to the workspace's own repository. Paths that
// git ignores and those of a repository within it are left out; if nothing
// remains, or one of paths is staged, it is a Conflict and nothing was done.
func (c *checkpoints) Commit(ctx context.Context, paths []string, message string) (string, error) {
	for _, p := range paths {
		if why := badKept(p); why != "" {
			return "", engine.Errorf(engine.Invalid, "commit %.80q: %s", p, why)
		}
	}
	if err := haveGit(); err != nil {
		return "", err
	}
	repo, why, err := c.b.repository(ctx)
	if err != nil {
		return "", err
	}
	if why != "" {
		return "", engine.Errorf(engine.Conflict, "not committed: %s", why)
	}
	if err := repo.checkUnstaged(paths); err != nil {
		return "", err
	}
	if err := c.b.awaitIndex(ctx); err != nil {
		return "", err
	}
	cm := &commit{b: c.b, old: repo.head, message: commitMessage(message)}
	commit, err := cm.make(ctx, paths)
	return commit, gitFailed("commit", err)
}

// checkUnstaged refuses to commit over what the user has staged.
func (repo repository) checkUnstaged(paths []string) error {
	wanted := set(paths)
	for _, ch := range repo.changes {
		if ch.staged() && wanted[ch.path] {
			return engine.Errorf(engine.Conflict, "not committed: %q is staged by someone else", ch.path)
		}
	}
	return nil
}

// maxMessage bounds a commit message: it travels in the environment.
const maxMessage = 32 << 10

// commitMessage makes a model's words fit for a commit.
func commitMessage(m string) string {
	m = strings.ToValidUTF8(strings.ReplaceAll(m, "\x00", ""), "\uFFFD")
	if len(m) > maxMessage {
		m = strings.ToValidUTF8(m[:maxMessage], "") + "…"
	}
	if m = strings.TrimSpace(m); m == "" {
		return "sbx: heal"
	}
	return m
}

// commit is a commit that is being made.
type commit struct {
	b       *box
	scratch string // a directory of ours that the script may write to
	old     string
	message string
}

func (cm *commit) make(ctx context.Context, paths []string) (string, error) {
	there, gone, err := cm.b.sortPaths(paths)
	if err != nil {
		return "", err
	}
	if there, err = cm.unignored(ctx, there); err != nil {
		return "", err
	}
	cm.scratch = filepath.Join(cm.b.dir, "commit"+tempName())
	if err := cm.b.makePrivate(cm.scratch); err != nil {
		return "", err
	}
	defer os.RemoveAll(cm.scratch) // Destroy removes what stays
	if _, err := cm.git(ctx, forgetScript, cm.forgetting(gone), "index"); err != nil {
		return "", err
	}
	out, err := cm.git(ctx, buildScript, list(there), "index")
	if err != nil {
		return "", err
	}
	id, raw, _ := bytes.Cut(out, []byte("\n"))
	if len(id) == 0 {
		return "", engine.Errorf(engine.Conflict, "not committed: nothing that git keeps has changed")
	}
	entries, err := indexEntries(raw, paths)
	if err != nil {
		return "", err
	}
	return string(id), cm.publish(ctx, string(id), entries)
}

// publish moves the branch and the user's index in one go.
func (cm *commit) publish(ctx context.Context, id string, entries []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	out, err := cm.git(ctx, publishScript, entries, "", "NEW="+id)
	if err == nil && bytes.HasPrefix(out, []byte("locked")) {
		return errLocked()
	}
	return err
}

// git runs a step. index names the index in the scratch directory; "": the
// user's own.
func (cm *commit) git(ctx context.Context, script string, stdin []byte, index string, env ...string) ([]byte, error) {
	env = concat(env, healerIdentity, []string{"OLD=" + cm.old, "MESSAGE=" + cm.message, "SCRATCH=" + cm.scratch})
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+filepath.Join(cm.scratch, index))
	}
	return cm.b.ownGit(ctx, gitCommand{
		script: script, env: env, stdin: bytes.NewReader(stdin), writable: true,
		mounts: []mount{{Source: cm.scratch, Target: cm.scratch}},
	})
}

// unignored leaves out what git ignores. Files that it tracks are not ignored.
func (cm *commit) unignored(ctx context.Context, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	out, err := cm.b.ownGit(ctx, gitCommand{
		script: "unset GIT_LITERAL_PATHSPECS\ngit check-ignore -z --stdin || [ $? = 1 ]",
		stdin:  bytes.NewReader(list(paths)),
	})
	if err != nil {
		return nil, err
	}
	ignored := set(strings.Split(string(out), "\x00"))
	return slices.DeleteFunc(paths, func(p string) bool { return ignored[p] }), nil
}

// forgetting is the input with which update-index forgets paths; a zero id is
// as long as the repository's ids are.
func (cm *commit) forgetting(paths []string) []byte {
	var in bytes.Buffer
	for _, p := range paths {
		in.WriteString("0 " + strings.Repeat("0", len(cm.old)) + "\t" + p + "\x00")
	}
	return in.Bytes()
}

// indexEntries are the entries that a commit has for its paths, as input for
// update-index: first what it forgets, for a file may have become a directory.
func indexEntries(raw []byte, paths []string) ([]byte, error) {
	changes, err := parseRaw(raw)
	if err != nil {
		return nil, err
	}
	var gone, there bytes.Buffer
	wanted := set(paths)
	for _, ch := range changes {
		if !wanted[ch.Path] {
			return nil, engine.Errorf(engine.Internal, "not committed: the commit would change %q too", ch.Path)
		}
		if ch.Status == engine.Deleted {
			gone.WriteString("0 " + strings.Repeat("0", len(ch.Before)) + "\t" + ch.Path + "\x00")
		} else {
			there.WriteString(ch.after + " " + ch.After + "\t" + ch.Path + "\x00")
		}
	}
	return append(gone.Bytes(), there.Bytes()...), nil
}

// list is names as git reads them with -z.
func list(names []string) []byte {
	var in bytes.Buffer
	for _, name := range names {
		in.WriteString(name)
		in.WriteByte(0)
	}
	return in.Bytes()
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// sortPaths tells files and links that are there from paths that are not, and
// leaves out what lies in a repository of its own.
func (b *box) sortPaths(paths []string) (present, gone []string, err error) {
	r, err := b.openWorkspace()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	for _, p := range paths {
		if nested(r, path.Dir(p)) {
			continue
		}
		dir, err := enterAll(r, path.Dir(p))
		var st fs.FileInfo
		if err == nil {
			st, err = dir.Lstat(path.Base(p))
			dir.Close()
		}
		switch {
		case absent(err), err == nil && st.IsDir():
			gone = append(gone, p)
		case err != nil:
			return nil, nil, fileError("commit", p, err)
		case st.Mode().IsRegular(), st.Mode()&fs.ModeSymlink != 0:
			present = append(present, p)
		default:
			return nil, nil, engine.Errorf(engine.Conflict, "not committed: %q is a pipe or device", p)
		}
	}
	return present, gone, nil
}

// nested reports whether dir or a directory above it, but not the workspace
// itself, is a repository.
func nested(r *os.Root, dir string) bool {
	for ; dir != "." && dir != ""; dir = path.Dir(dir) {
		if _, err := r.Lstat(dir + "/.git"); !errors.Is(err, fs.ErrNotExist) && !absent(err) {
			return true
		}
	}
	return false
}
