package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// workspace is one in memory: its tar is its content.
type workspace struct {
	content string
	print   string
	err     error
	packed  int
}

func (w *workspace) Fingerprint(context.Context, bool) (string, error) { return w.print, nil }

func (w *workspace) Pack(_ context.Context, to io.Writer, _ bool) (driver.Packed, error) {
	w.packed++
	_, err := io.WriteString(to, w.content)
	return driver.Packed{Files: 1, Bytes: int64(len(w.content)), Fingerprint: w.print}, errors.Join(err, w.err)
}

func (w *workspace) Unpack(_ context.Context, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err == nil {
		w.content = string(b)
	}
	return err
}

var _ driver.Archives = (*workspace)(nil)

const boxID = engine.SandboxID("sb-aaaaaaaaaa")

var box = engine.Sandbox{ID: boxID, Name: "box"}

func openKeeper(t *testing.T, dir string, remote Remote) *Keeper {
	t.Helper()
	k := &Keeper{Dir: dir, Remote: remote, Retry: time.Millisecond, RetryMost: 10 * time.Millisecond}
	if err := k.Open(); err != nil {
		t.Fatal(err)
	}
	return k
}

// run has the keeper upload until the test ends.
func run(t *testing.T, k *Keeper) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the uploading ended with %v", err)
		}
	})
}

func (w *workspace) save(t *testing.T, k *Keeper) (engine.Archive, bool) {
	t.Helper()
	a, wrote, err := k.Save(t.Context(), box, w)
	if err != nil {
		t.Fatal(err)
	}
	return a, wrote
}

func wantRestored(t *testing.T, k *Keeper, content string, from engine.ArchivePlace) {
	t.Helper()
	ws := &workspace{content: "as it was"}
	where, err := k.Restore(t.Context(), boxID, ws, "")
	if err != nil || where != from || ws.content != content {
		t.Errorf("restored %.40q from %q, %v; want %.40q from %q", ws.content, where, err, content, from)
	}
}

func dirNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestWhatHasNotChangedIsNotWrittenAgain(t *testing.T) {
	k := openKeeper(t, t.TempDir(), nil)
	ws := &workspace{content: "one", print: "p1"}
	first, wrote := ws.save(t, k)
	if !wrote || first.Size == 0 || !first.Local || first.Pending {
		t.Errorf("the first is %+v, written %v", first, wrote)
	}
	if again, wrote := ws.save(t, k); wrote || again.SHA256 != first.SHA256 || ws.packed != 1 {
		t.Errorf("the second is %+v, written %v, packed %d times", again, wrote, ws.packed)
	}
	ws.content, ws.print = "two", "" // too young to be told
	ws.save(t, k)
	if _, wrote := ws.save(t, k); !wrote {
		t.Error("without a fingerprint it was taken for unchanged")
	}
	wantRestored(t, k, "two", engine.ArchiveLocal)
	if names := dirNames(t, k.Dir); len(names) != 2 {
		t.Errorf("the directory has %v, want an archive and its manifest", names)
	}
}

func TestADamagedArchiveIsFoundAndTheNextPlaceAsked(t *testing.T) {
	far := newShelf(t)
	k := openKeeper(t, t.TempDir(), far)
	content := strings.Repeat("all of it ", 10_000)
	ws := &workspace{content: content, print: "p"}
	a, _ := ws.save(t, k)
	run(t, k)
	waitUploaded(t, k)
	file := k.path(string(boxID) + "." + a.SHA256[:16] + dataSuffix)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for what, data := range map[string][]byte{"a flipped bit": flipped, "a cut": whole[:len(whole)-9], "nothing": {}, "more": append(bytes.Clone(whole), whole...)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Restore(t.Context(), boxID, ws, engine.ArchiveLocal); engine.AsCode(err) != engine.NotFound {
			t.Errorf("%s: restored from here alone: %v, want not found", what, err)
		}
		wantRestored(t, k, content, engine.ArchiveRemote)
		wantRestored(t, k, content, engine.ArchiveLocal) // it has come home
	}
	if err := os.Remove(k.path(string(boxID) + manifestSuffix)); err != nil {
		t.Fatal(err)
	}
	wantRestored(t, k, content, engine.ArchiveRemote) // as on another host
	far.damage(t)
	if err := k.Drop(t.Context(), boxID); err != nil {
		t.Fatal(err)
	}
	ws = &workspace{content: "as it was"}
	if _, err := k.Restore(t.Context(), boxID, ws, ""); engine.AsCode(err) != engine.NotFound || ws.content != "as it was" {
		t.Errorf("with both damaged: %v, the workspace is %.20q", err, ws.content)
	}
}

func TestAFailedSaveLeavesTheArchiveBefore(t *testing.T) {
	k := openKeeper(t, t.TempDir(), nil)
	ws := &workspace{content: "good", print: "p1"}
	ws.save(t, k)
	ws.content, ws.print, ws.err = "bad", "p2", syscall.ENOSPC
	_, _, err := k.Save(t.Context(), box, ws)
	if engine.AsCode(err) != engine.Exhausted || engine.Hint(err) == "" {
		t.Errorf("a full disk is %q: %v", engine.AsCode(err), err)
	}
	wantRestored(t, k, "good", engine.ArchiveLocal)
	if names := dirNames(t, k.Dir); len(names) != 2 {
		t.Errorf("the directory has %v", names)
	}
}

func TestHostileManifestsNameNothingElse(t *testing.T) {
	k := openKeeper(t, t.TempDir(), nil)
	ws := &workspace{content: "x", print: "p"}
	ws.save(t, k)
	m, err := k.manifest(boxID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", string(boxID) + "./../x" + dataSuffix, "sb-bbbbbbbbbb.0" + dataSuffix, "x"} {
		bad := m
		bad.File = name
		if err := bad.check(boxID); engine.AsCode(err) != engine.Invalid {
			t.Errorf("a manifest that names %q: %v", name, err)
		}
	}
	for _, id := range []engine.SandboxID{"", "sb-", "../x", "sb-../x", "sb-a/b", "sb-A"} {
		_, _, err1 := k.Save(t.Context(), engine.Sandbox{ID: id}, ws)
		_, err2 := k.Restore(t.Context(), id, ws, "")
		err3 := k.Remove(t.Context(), id, "")
		for _, err := range []error{err1, err2, err3} {
			if engine.AsCode(err) != engine.Invalid {
				t.Errorf("the id %q: %v", id, err)
			}
		}
	}
}

const killEnv = "SBX_TEST_ARCHIVE_DIR"

// TestMain is also the process that is killed: it saves one state after the
// other, and says so after each.
func TestMain(m *testing.M) {
	dir := os.Getenv(killEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	k := &Keeper{Dir: dir}
	if err := k.Open(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		ws := &workspace{content: state(i)}
		if _, _, err := k.Save(context.Background(), box, ws); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// state is a content that tells whether it is whole.
func state(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	b := make([]byte, 200_000)
	for j := range b {
		b[j] = byte(r.Uint32())
	}
	return fmt.Sprintf("%d\n", i) + string(b)
}

func TestKilledAtAnyPointTheArchiveBeforeIsUsable(t *testing.T) {
	dir := t.TempDir()
	for round := range 25 {
		saved := killWhileSaving(t, dir, round)
		k := openKeeper(t, dir, nil)
		ws := &workspace{}
		if _, err := k.Restore(t.Context(), boxID, ws, ""); err != nil {
			t.Fatalf("round %d, killed after %d: %v", round, saved, err)
		}
		var i int
		if _, err := fmt.Sscanf(ws.content, "%d\n", &i); err != nil || ws.content != state(i) || i < saved {
			t.Fatalf("round %d, killed after %d: state %d was restored, whole: %v", round, saved, i, ws.content == state(i))
		}
		if names := dirNames(t, dir); len(names) != 2 {
			t.Fatalf("round %d: the directory has %v", round, names)
		}
	}
}

// killWhileSaving returns the last state that was surely saved.
func killWhileSaving(t *testing.T, dir string, round int) (saved int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for saved < 2+round%3 {
		if _, err := fmt.Fscanln(out, &saved); err != nil {
			t.Fatalf("the process that saves: %v", err)
		}
	}
	// Somewhere in the next save: where exactly, the rounds make different.
	timer := time.NewTimer(time.Duration(round*round) * 40 * time.Microsecond)
	<-timer.C
	_ = cmd.Process.Kill()
	rest, _ := io.ReadAll(out) // what it said before it died
	_ = cmd.Wait()
	for _, line := range strings.Fields(string(rest)) {
		_, _ = fmt.Sscan(line, &saved) // a line that was cut is no save
	}
	return saved
}

func TestRubbishOfACutIsCollected(t *testing.T) {
	dir := t.TempDir()
	k := openKeeper(t, dir, nil)
	ws := &workspace{content: "x", print: "p"}
	ws.save(t, k)
	for _, name := range []string{"sb-aaaaaaaaaa.new", "sb-aaaaaaaaaa.0123456789abcdef.tar.zst", "sb-bbbbbbbbbb.fetch.new"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k = openKeeper(t, dir, nil)
	if names := dirNames(t, dir); len(names) != 2 {
		t.Errorf("the directory has %v", names)
	}
	wantRestored(t, k, "x", engine.ArchiveLocal)
}
