//go:build linux

package host

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

func save(t *testing.T, b *box) string {
	t.Helper()
	tree, err := b.Checkpoints().Save(t.Context(), "test")
	check(t, err)
	return tree
}

// agoTree makes every file of the workspace as old as an hour, and returns
// once a save can tell a further change from it: the change of the times is
// itself one.
func agoTree(t *testing.T, b *box) time.Time {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	check(t, filepath.WalkDir(b.workspace, func(name string, _ fs.DirEntry, err error) error {
		check(t, err)
		return os.Chtimes(name, old, old)
	}))
	for {
		found, err := b.scan(t.Context())
		check(t, err)
		if found.signature != "" {
			return old
		}
	}
}

// changed are the paths of a diff.
func changed(t *testing.T, b *box, from, to string) []string {
	t.Helper()
	diff, err := b.Checkpoints().Diff(t.Context(), from, to)
	check(t, err)
	var paths []string
	for _, ch := range diff.Changes {
		paths = append(paths, ch.Path)
	}
	return paths
}

// rewrite replaces the workspace's content.
func rewrite(t *testing.T, b *box, tree map[string]string) {
	t.Helper()
	list, err := os.ReadDir(b.workspace)
	check(t, err)
	for _, e := range list {
		check(t, os.RemoveAll(filepath.Join(b.workspace, e.Name())))
	}
	lay(t, b, tree)
}

// everything is a workspace with all that is hard to keep.
var everything = map[string]string{
	".gitignore": "*.log\nignored/\n.env\n", ".env": "KEY=1\n", "app.log": "log", "ignored/x": "1",
	".gitattributes": "* text eol=crlf\n*.bin filter=evil diff=evil\n",
	"crlf.txt":       "a\r\nb\r\n", "lf.txt": "a\nb\n", "x.bin": "\x00\x01$Id$",
	"run.sh": "#!/bin/sh\n", "link": "-> run.sh", "broken": "-> ../nowhere", "abs": "-> /etc/passwd",
	"-rf": "dash", "new\nline": "nl", "esc\x1b[31m": "esc", "tab\there": "tab", "\"quoted\"": "q", "back\\slash": "b",
	":(glob)*": "magic", "uml\xc3\xa4ut": "utf8", "latin\xe4": "latin1", " space ": "s",
	"git~1": "short", ".gitfoo/x": "no git", "empty": "",
}

func TestRestoreBringsBackEverything(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, everything)
	before := save(t, b)
	rewrite(t, b, map[string]string{"link": "now a file", "run.sh/inside": "now a directory", "ignored": "now a file", "added": "x"})
	after := save(t, b)
	check(t, b.Checkpoints().Restore(t.Context(), before, changed(t, b, before, after)))
	if diff := cmp.Diff(everything, look(t, b)); diff != "" {
		t.Fatal(diff)
	}
	st, err := os.Stat(filepath.Join(b.workspace, "run.sh"))
	check(t, err)
	if st.Mode().Perm() != 0o755 {
		t.Errorf("run.sh is %s", st.Mode())
	}
	if again := save(t, b); again != before {
		t.Errorf("what was restored is saved as %s, not %s", again, before)
	}
}

func TestRestoreChangesTypesBack(t *testing.T) {
	kinds := map[string]map[string]string{
		"file": {"p": "file"}, "executable": {"p": "#!x"}, "link": {"p": "-> file"},
		"directory": {"p/q/r": "x", "p/s": "y"}, "nothing": {},
	}
	b := newTestBox(t)
	for _, from := range slices.Sorted(maps.Keys(kinds)) {
		rewrite(t, b, kinds[from])
		before := save(t, b)
		for to, tree := range kinds {
			rewrite(t, b, tree)
			lay(t, b, map[string]string{"users own": to})
			check(t, b.Checkpoints().Restore(t.Context(), before, []string{"p", "p/s", "p/q/r"}))
			want := maps.Clone(kinds[from])
			want["users own"] = to
			if diff := cmp.Diff(want, look(t, b)); diff != "" {
				t.Errorf("to %s from %s: %s", from, to, diff)
			}
		}
	}
}

func TestRestoreTouchesNothingElse(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1", "b": "1", "dir/c": "1", "keep/": "", "was/file": "1"})
	before := save(t, b)
	lay(t, b, map[string]string{"a": "2", "b": "2", "dir/c": "2", "dir/new": "2", "keep/made": "2", "fresh/made": "2"})
	check(t, os.RemoveAll(filepath.Join(b.workspace, "was")))
	check(t, b.Checkpoints().Restore(t.Context(), before, []string{"a", "dir/new", "keep/made", "fresh/made", "was/file"}))
	want := map[string]string{"a": "1", "b": "2", "dir/c": "2", "keep/": "", "was/file": "1"}
	if diff := cmp.Diff(want, look(t, b)); diff != "" {
		t.Fatal(diff)
	}
}

func TestRestoreLeavesWhatIsInItsWayAndSaysSo(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1", "d/x": "1", "z": "1"})
	before := save(t, b)
	rewrite(t, b, map[string]string{"a/users": "own", "d": "-> /etc", "z": "2"})
	err := b.Checkpoints().Restore(t.Context(), before, []string{"a", "d/x", "z"})
	wantCode(t, err, engine.Conflict)
	for _, name := range []string{`"a"`, `"d/x"`} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v doesn't name %s", err, name)
		}
	}
	want := map[string]string{"a/users": "own", "d": "-> /etc", "z": "1"}
	if diff := cmp.Diff(want, look(t, b)); diff != "" {
		t.Fatal(diff)
	}
}

func TestRestoreKeepsModesAndOwner(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{".env": "K=1", "tool": "#!x", "plain": "x", "group": "x"})
	check(t, os.Chmod(filepath.Join(b.workspace, ".env"), 0o600))
	check(t, os.Chmod(filepath.Join(b.workspace, "group"), 0o664))
	before := save(t, b)
	check(t, os.Remove(filepath.Join(b.workspace, ".env")))
	check(t, os.Remove(filepath.Join(b.workspace, "tool")))
	lay(t, b, map[string]string{"plain": "#!y"})
	check(t, os.WriteFile(filepath.Join(b.workspace, "group"), []byte("y"), 0o664))
	check(t, b.Checkpoints().Restore(t.Context(), before, []string{".env", "tool", "plain", "group"}))
	for name, mode := range map[string]os.FileMode{".env": 0o600, "tool": 0o755, "plain": 0o644, "group": 0o664} {
		st, err := os.Stat(filepath.Join(b.workspace, name))
		check(t, err)
		if sys := st.Sys().(*syscall.Stat_t); st.Mode() != mode || int(sys.Uid) != b.uid {
			t.Errorf("%s is %s of %d, want %s of %d", name, st.Mode(), sys.Uid, mode, b.uid)
		}
	}
}

func TestNestedRepositoriesAreSavedAsFiles(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"vendor/sub/code.go": "one", "vendor/sub/.gitignore": "*.tmp", "vendor/sub/x.tmp": "t"})
	repo(t, b, "vendor/sub")
	before := save(t, b)
	lay(t, b, map[string]string{"vendor/sub/code.go": "two"})
	check(t, os.Remove(filepath.Join(b.workspace, "vendor/sub/x.tmp")))
	after := save(t, b)
	paths := changed(t, b, before, after)
	if diff := cmp.Diff([]string{"vendor/sub/code.go", "vendor/sub/x.tmp"}, paths); diff != "" {
		t.Fatal(diff)
	}
	check(t, b.Checkpoints().Restore(t.Context(), before, paths))
	want := map[string]string{"vendor/sub/code.go": "one", "vendor/sub/.gitignore": "*.tmp", "vendor/sub/x.tmp": "t"}
	if diff := cmp.Diff(want, look(t, b)); diff != "" {
		t.Fatal(diff)
	}
}

func TestSaveLeavesOutWhatCanBeRebuilt(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1", "node_modules/m/x": "1", ".git/config": "1", "sub/__pycache__/y": "1", "py/node_modules": "-> ../a"})
	before := save(t, b)
	lay(t, b, map[string]string{"node_modules/m/x": "2", ".git/config": "2", "sub/__pycache__/y": "2"})
	if after := save(t, b); after != before {
		t.Fatal("a rebuildable file changed the checkpoint")
	}
	for _, p := range []string{"node_modules/m/x", ".git/config", "sub/__pycache__/y", "../x", "/etc/passwd", "", "."} {
		wantCode(t, b.Checkpoints().Restore(t.Context(), before, []string{p}), engine.Invalid)
	}
}

func TestUnreadableFilesAreNotTakenForDeleted(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"secret": "1", "closed/x": "1", "a": "1"})
	before := save(t, b)
	check(t, os.Chmod(filepath.Join(b.workspace, "secret"), 0))
	check(t, os.Chmod(filepath.Join(b.workspace, "closed"), 0))
	defer os.Chmod(filepath.Join(b.workspace, "closed"), 0o755)
	lay(t, b, map[string]string{"a": "2"})
	if diff := cmp.Diff([]string{"a"}, changed(t, b, before, save(t, b))); diff != "" {
		t.Fatal(diff)
	}
}

func TestSavingWhatHasNotChangedStartsNoProcess(t *testing.T) {
	b := newTestBox(t)
	tree := make(map[string]string)
	for i := range 300 {
		tree[fmt.Sprintf("d%d/f%d", i%17, i)] = fmt.Sprint(i)
	}
	lay(t, b, tree)
	old := agoTree(t, b)
	before := save(t, b)
	objects := filepath.Join(b.shadow(), "objects")
	check(t, os.Rename(objects, objects+".away")) // no git command works without
	if again := save(t, b); again != before {
		t.Fatalf("saved %s and then %s", before, again)
	}
	check(t, os.WriteFile(filepath.Join(b.workspace, "d0/f0"), []byte("X"), 0o644)) // of the same size
	check(t, os.Chtimes(filepath.Join(b.workspace, "d0/f0"), old, old))
	_, err := b.Checkpoints().Save(t.Context(), "")
	wantCode(t, err, engine.Internal)
	check(t, os.Rename(objects+".away", objects))
	if again := save(t, b); again == before {
		t.Fatal("a change of the same size and time was missed")
	}
}

func TestDiffTellsChangesAndBoundsThePatch(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"mod": "1\n", "del": "1\n", "bin": "a\x00b", "exec": "x\n", "link": "-> a", "\x1b[2J": "1\n"})
	before := save(t, b)
	lay(t, b, map[string]string{"mod": "2\n", "add": "2\n", "bin": "c\x00d", "exec": "x\n", "link": "-> b", "\x1b[2J": "2\n"})
	check(t, os.Remove(filepath.Join(b.workspace, "del")))
	check(t, os.Chmod(filepath.Join(b.workspace, "exec"), 0o755))
	after := save(t, b)
	diff, err := b.Checkpoints().Diff(t.Context(), before, after)
	check(t, err)
	got := make(map[string]engine.ChangeKind)
	for _, ch := range diff.Changes {
		got[ch.Path] = ch.Status
		if (ch.Before == "") != (ch.Status == engine.Added) || (ch.After == "") != (ch.Status == engine.Deleted) {
			t.Errorf("%+v", ch)
		}
	}
	want := map[string]engine.ChangeKind{"mod": "M", "del": "D", "add": "A", "bin": "M", "exec": "M", "link": "M", "\x1b[2J": "M"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, part := range []string{"-1\n+2\n", "Binary files a/bin and b/bin differ", "old mode 100644\nnew mode 100755"} {
		if !strings.Contains(diff.Patch, part) {
			t.Errorf("the patch lacks %q:\n%s", part, diff.Patch)
		}
	}
	if strings.Contains(diff.Patch, "\x1b") || diff.Cut {
		t.Errorf("patch (cut: %v) has an escape", diff.Cut)
	}
	lay(t, b, map[string]string{"long": strings.Repeat("line\n", 100_000)})
	diff, err = b.Checkpoints().Diff(t.Context(), before, save(t, b))
	check(t, err)
	if !diff.Cut || len(diff.Patch) > maxPatch || !strings.HasSuffix(diff.Patch, "line\n") {
		t.Errorf("a long patch has %d bytes, cut: %v", len(diff.Patch), diff.Cut)
	}
}

func TestHostileSettingsInTheWorkspaceDoNotReachCheckpoints(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a.txt": "1\n", ".gitattributes": "* filter=evil diff=evil ident\n"})
	repo(t, b, ".")
	lay(t, b, map[string]string{".gitattributes": "* filter=evil diff=evil working-tree-encoding=UTF-16 ident\n"})
	marker := plant(t, b)
	before := save(t, b)
	lay(t, b, map[string]string{"a.txt": "2\n"})
	after := save(t, b)
	if diff := cmp.Diff([]string{"a.txt"}, changed(t, b, before, after)); diff != "" {
		t.Error(diff)
	}
	check(t, b.Checkpoints().Restore(t.Context(), before, []string{"a.txt"}))
	if got := look(t, b)["a.txt"]; got != "1\n" {
		t.Errorf("restored %q", got)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("something planted in the repository ran")
	}
}

func TestAPipeAsAttributesIsRefusedAndDoesNotHang(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1"})
	check(t, syscall.Mkfifo(filepath.Join(b.workspace, ".gitattributes"), 0o666))
	_, err := b.Checkpoints().Save(t.Context(), "")
	wantCode(t, err, engine.Conflict)
}

func TestDropForgetsAllButThoseKept(t *testing.T) {
	b := newTestBox(t)
	var trees []string
	for i := range 3 {
		lay(t, b, map[string]string{"a": strings.Repeat("x", i+1)})
		trees = append(trees, save(t, b))
	}
	c := b.Checkpoints()
	check(t, c.Drop(t.Context(), trees[:1]))
	check(t, c.Restore(t.Context(), trees[0], []string{"a"}))
	if got := look(t, b)["a"]; got != "x" {
		t.Errorf("restored %q", got)
	}
	wantCode(t, c.Restore(t.Context(), trees[2], []string{"a"}), engine.NotFound)
	wantCode(t, c.Restore(t.Context(), "HEAD", []string{"a"}), engine.Invalid)
	wantCode(t, c.Restore(t.Context(), strings.Repeat("0", 40), []string{"a"}), engine.NotFound)
	lay(t, b, map[string]string{"a": "xxx"})
	again := save(t, b)
	if again != trees[2] {
		t.Errorf("saved %s, want %s again", again, trees[2])
	}
	if diff := cmp.Diff([]string{"a"}, changed(t, b, trees[0], again)); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenIndexIsMadeAnew(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1"})
	before := save(t, b)
	check(t, os.WriteFile(filepath.Join(b.shadow(), "index"), []byte("garbage"), 0o644))
	check(t, os.WriteFile(filepath.Join(b.shadow(), "index.lock"), nil, 0o644)) // of a git that was killed
	lay(t, b, map[string]string{"a": "2"})
	if diff := cmp.Diff([]string{"a"}, changed(t, b, before, save(t, b))); diff != "" {
		t.Error(diff)
	}
}

func TestManyAtOnceGetOneAnswer(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, everything)
	want := save(t, b)
	got := make(chan error)
	for range 8 {
		go func() {
			tree, err := b.Checkpoints().Save(context.Background(), "")
			if err == nil && tree != want {
				err = fmt.Errorf("saved %s, want %s", tree, want)
			}
			got <- err
		}()
	}
	for range 8 {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

func TestWithoutGitItSaysWhatToDo(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "1", ".git/HEAD": "ref: refs/heads/main\n"})
	t.Setenv("PATH", t.TempDir())
	_, err := b.Checkpoints().Save(t.Context(), "")
	wantCode(t, err, engine.Unavailable)
	if engine.Hint(err) != "install git" {
		t.Errorf("hint is %q", engine.Hint(err))
	}
	_, ok, why, err := b.Checkpoints().Dirty(t.Context())
	if ok || why != "this host has no git" || err != nil {
		t.Errorf("dirty says %v %q %v", ok, why, err)
	}
}

func TestAFullDiskIsNamed(t *testing.T) {
	err := gitFailed("save checkpoint", &gitError{said: []byte("error: file write error: No space left on device\nfatal: Unable to process path a\n")})
	wantCode(t, err, engine.Exhausted)
	if err.Error() != "save checkpoint: the disk is full" {
		t.Errorf("it says %q", err)
	}
}
