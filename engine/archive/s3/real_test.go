package s3_test

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/archive"
	"sbx/engine/driver"
)

// large is more than two parts of an upload.
const large = 36 << 20

// random is a content that can't be compressed.
func random(size int, seed uint64) []byte {
	var key [32]byte
	key[0] = byte(seed)
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	return b
}

func TestARealServerKeepsWhatItIsGiven(t *testing.T) {
	g := newGateway(t)
	g.start()
	b, dir := g.bucket(), t.TempDir()
	for key, size := range map[string]int{"sb-a/none": 0, "sb-a/small": 12_345, "sb-a/large": large, "sb-b/other": 1} {
		in, out, want := filepath.Join(dir, "in"), filepath.Join(dir, "out"), random(size, 1)
		if err := os.WriteFile(in, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.Put(t.Context(), key, in); err != nil {
			t.Fatalf("put %s: %v", key, err)
		}
		if err := b.Fetch(t.Context(), key, out); err != nil {
			t.Fatalf("fetch %s: %v", key, err)
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %s %d of %d bytes came back, %v", key, len(got), size, err)
		}
		if err := os.Remove(out); err != nil {
			t.Error(err)
		}
	}
	if log, err := os.ReadFile(g.log()); err != nil || !strings.Contains(string(log), "partNumber=3") {
		t.Errorf("the large one did not go in parts: %v", err)
	}
	wantKeys(t, b.List, "sb-a/", "sb-a/large", "sb-a/none", "sb-a/small")
	for range 2 { // what is gone is gone
		if err := b.Delete(t.Context(), "sb-a/large"); err != nil {
			t.Error(err)
		}
	}
	wantKeys(t, b.List, "", "sb-a/none", "sb-a/small", "sb-b/other")
	if err := b.Fetch(t.Context(), "sb-a/large", filepath.Join(dir, "out")); engine.AsCode(err) != engine.NotFound {
		t.Errorf("what was deleted: %v", err)
	}
}

func wantKeys(t *testing.T, list func(context.Context, string) ([]string, error), prefix string, want ...string) {
	t.Helper()
	keys, err := list(t.Context(), prefix)
	slices.Sort(keys)
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("under %q are %v, %v, want %v", prefix, keys, err, want)
	}
}

// workspace is one in memory: its tar is its content.
type workspace struct{ content []byte }

func (w *workspace) Fingerprint(context.Context, bool) (string, error) { return "", nil }

func (w *workspace) Pack(_ context.Context, to io.Writer, _ bool) (driver.Packed, error) {
	_, err := to.Write(w.content)
	return driver.Packed{Files: 1, Bytes: int64(len(w.content))}, err
}

func (w *workspace) Unpack(_ context.Context, r io.Reader) (err error) {
	w.content, err = io.ReadAll(r)
	return err
}

const boxID = engine.SandboxID("sb-aaaaaaaaaa")

func openKeeper(t *testing.T, g *gateway, dir string) *archive.Keeper {
	t.Helper()
	k := &archive.Keeper{Dir: dir, Remote: g.bucket(), Retry: 20 * time.Millisecond, RetryMost: 200 * time.Millisecond}
	if err := k.Open(); err != nil {
		t.Fatal(err)
	}
	return k
}

// upload has the keeper upload until the test ends, or stop is called.
func upload(t *testing.T, k *archive.Keeper) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the uploading ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func save(t *testing.T, k *archive.Keeper, id engine.SandboxID, content []byte) {
	t.Helper()
	if _, _, err := k.Save(t.Context(), engine.Sandbox{ID: id, Name: "box"}, &workspace{content}); err != nil {
		t.Fatal(err)
	}
}

func uploaded(t *testing.T, k *archive.Keeper, id engine.SandboxID) {
	t.Helper()
	eventually(t, "the upload of "+string(id), func() bool { return k.Uploaded(id) })
}

// wantElsewhere restores on a host that has nothing but the server.
func wantElsewhere(t *testing.T, g *gateway, want []byte) {
	t.Helper()
	ws := &workspace{}
	where, err := openKeeper(t, g, t.TempDir()).Restore(t.Context(), boxID, ws, "")
	if err != nil || where != engine.ArchiveRemote || !bytes.Equal(ws.content, want) {
		t.Errorf("elsewhere %d bytes came from %q, %v; want the %d that were saved", len(ws.content), where, err, len(want))
	}
}

// TestUploadsGoOutWhenTheServerIsBack: meanwhile the backlog is to be seen.
func TestUploadsGoOutWhenTheServerIsBack(t *testing.T) {
	g := newGateway(t)
	k, content := openKeeper(t, g, t.TempDir()), random(100_000, 2)
	save(t, k, boxID, content)
	upload(t, k)
	eventually(t, "a failure that is told", func() bool {
		list, err := k.List(boxID)
		if err != nil || len(list) != 1 || !list[0].Pending || list[0].Remote {
			t.Fatalf("the list is %+v, %v", list, err)
		}
		return list[0].Failure != "" && !list[0].Retry.IsZero()
	})
	if l, err := k.Levels(); err != nil || l.Pending != 1 || l.Failing != 1 {
		t.Errorf("the numbers are %+v, %v", l, err)
	}
	g.start()
	uploaded(t, k, boxID)
	wantElsewhere(t, g, content)
	if l, err := k.Levels(); err != nil || l.Pending != 0 || l.Failing != 0 || l.Remote != 1 {
		t.Errorf("the numbers are %+v, %v", l, err)
	}
}

// TestASlowServerHoldsNobodyUp: while an upload crawls, sandboxes are archived
// and restored.
func TestASlowServerHoldsNobodyUp(t *testing.T) {
	g := newGateway(t)
	g.start()
	k, content := openKeeper(t, g, t.TempDir()), random(large, 3)
	crawls, walk := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(crawls) })
	pace := time.NewTicker(2 * time.Millisecond) // with 64 KiB at most: 32 MiB a second
	defer pace.Stop()
	g.watch(func(passed int64) {
		if passed > 1<<20 {
			begun()
			<-walk
			<-pace.C
		}
	})
	defer g.watch(nil)
	save(t, k, boxID, content)
	upload(t, k)
	<-crawls
	save(t, k, boxID, content[1:]) // newer than what is on its way
	save(t, k, "sb-bbbbbbbbbb", content[:1000])
	ws := &workspace{}
	if where, err := k.Restore(t.Context(), boxID, ws, ""); err != nil || where != engine.ArchiveLocal || !bytes.Equal(ws.content, content[1:]) {
		t.Errorf("meanwhile %d bytes came from %q, %v", len(ws.content), where, err)
	}
	if l, err := k.Levels(); err != nil || l.Pending != 2 || l.Remote != 0 {
		t.Errorf("meanwhile the numbers are %+v, %v", l, err)
	}
	close(walk)
	uploaded(t, k, boxID)
	uploaded(t, k, "sb-bbbbbbbbbb")
	wantElsewhere(t, g, content[1:])
}

// TestAServerKilledInAnUploadKeepsTheArchiveBefore, and the next try works.
func TestAServerKilledInAnUploadKeepsTheArchiveBefore(t *testing.T) {
	g := newGateway(t)
	g.start()
	dir, before, after := t.TempDir(), random(300_000, 4), random(large, 5)
	k := openKeeper(t, g, dir)
	save(t, k, boxID, before)
	stop := upload(t, k)
	uploaded(t, k, boxID)
	cut, down := cutAfter(g, 20<<20)
	save(t, k, boxID, after)
	<-cut
	stop() // so that what is looked at stays as it is
	g.kill()
	close(down)
	g.watch(nil)
	g.start()
	wantElsewhere(t, g, before)
	upload(t, k)
	uploaded(t, k, boxID)
	wantElsewhere(t, g, after)
	wantTidy(t, g)
}

// cutAfter holds what passes once so much has, until down is closed.
func cutAfter(g *gateway, n int64) (cut <-chan struct{}, down chan struct{}) {
	reached, down := make(chan struct{}), make(chan struct{})
	tell := sync.OnceFunc(func() { close(reached) })
	g.watch(func(passed int64) {
		if passed > n {
			tell()
			<-down
		}
	})
	return reached, down
}

// wantTidy: one archive and its manifest are there, and no parts of others.
func wantTidy(t *testing.T, g *gateway) {
	t.Helper()
	eventually(t, "the archive before to go", func() bool {
		keys, err := g.bucket().List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return len(keys) == 2
	})
	if parts, err := os.ReadDir(filepath.Join(g.dir, "root/bucket/.sgwtmp/multipart")); err != nil || len(parts) != 0 {
		t.Errorf("of the upload that was cut the server still has %v, %v", parts, err)
	}
}

const childEnv = "SBX_TEST_UPLOAD"

// TestMain is also the engine that is killed: it uploads what is to be.
func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		os.Exit(uploadMain(spec))
	}
	os.Exit(m.Run())
}

// TestAnEngineKilledInAnUploadKeepsTheArchiveBefore, and the next one goes on.
func TestAnEngineKilledInAnUploadKeepsTheArchiveBefore(t *testing.T) {
	g := newGateway(t)
	g.start()
	dir, before, after := t.TempDir(), random(300_000, 6), random(large, 7)
	k := openKeeper(t, g, dir)
	save(t, k, boxID, before)
	stop := upload(t, k)
	uploaded(t, k, boxID)
	stop()
	save(t, k, boxID, after)
	cut, down := cutAfter(g, 20<<20)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir+" "+g.url())
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-cut
	_ = child.Process.Kill()
	_ = child.Wait() // killed
	close(down)
	g.watch(nil)
	wantElsewhere(t, g, before)
	k = openKeeper(t, g, dir)
	if l, err := k.Levels(); err != nil || l.Pending != 1 {
		t.Errorf("the next engine has the numbers %+v, %v", l, err)
	}
	upload(t, k)
	uploaded(t, k, boxID)
	wantElsewhere(t, g, after)
	wantTidy(t, g)
}

func uploadMain(spec string) int {
	dir, url, _ := strings.Cut(spec, " ")
	b, err := open(url)
	k := &archive.Keeper{Dir: dir, Remote: b}
	if err == nil {
		err = k.Open()
	}
	if err == nil {
		err = k.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, "the upload ended by itself:", err)
	return 1
}
