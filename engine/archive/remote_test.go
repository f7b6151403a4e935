package archive

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
)

// shelf is a remote place that is a directory, and that can be away.
type shelf struct {
	dir string

	mu   sync.Mutex
	away bool
	puts int
}

func newShelf(t *testing.T) *shelf { return &shelf{dir: t.TempDir()} }

func (s *shelf) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *shelf) there() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return engine.Errorf(engine.Unavailable, "the shelf is away")
	}
	return nil
}

func (s *shelf) at(key string) string { return filepath.Join(s.dir, strings.ReplaceAll(key, "/", "!")) }

func (s *shelf) Put(_ context.Context, key, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := s.there(); err != nil {
		return err
	}
	s.mu.Lock()
	s.puts++
	s.mu.Unlock()
	return os.WriteFile(s.at(key), b, 0o600)
}

func (s *shelf) Fetch(_ context.Context, key, file string) error {
	if err := s.there(); err != nil {
		return err
	}
	b, err := os.ReadFile(s.at(key))
	if err != nil {
		return engine.Errorf(engine.NotFound, "no %s", key)
	}
	return os.WriteFile(file, b, 0o600)
}

func (s *shelf) List(_ context.Context, prefix string) (keys []string, err error) {
	if err := s.there(); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(s.dir)
	for _, e := range list {
		if key := strings.ReplaceAll(e.Name(), "!", "/"); strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys, err
}

func (s *shelf) Delete(_ context.Context, key string) error {
	if err := s.there(); err != nil {
		return err
	}
	return os.Remove(s.at(key))
}

// damage cuts every archive on the shelf.
func (s *shelf) damage(t *testing.T) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(s.dir, "*"+dataSuffix))
	if err != nil || len(list) == 0 {
		t.Fatalf("nothing to damage: %v", err)
	}
	for _, name := range list {
		if err := os.Truncate(name, 7); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited a minute in vain: %s", what)
		}
	}
}

func waitUploaded(t *testing.T, k *Keeper) {
	t.Helper()
	eventually(t, "the upload", func() bool { return k.Uploaded(boxID) })
}

func (s *shelf) keys(t *testing.T) []string {
	t.Helper()
	keys, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestUploadsWaitForAPlaceThatIsAway(t *testing.T) {
	far, dir := newShelf(t), t.TempDir()
	far.set(true)
	k := openKeeper(t, dir, far)
	ws := &workspace{content: "one", print: "p1"}
	if a, _ := ws.save(t, k); !a.Pending || a.Remote {
		t.Errorf("it is %+v, want it pending", a)
	}
	stop, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(stop) }()
	var failing engine.Archive
	eventually(t, "a failure that is told", func() bool {
		list, err := k.List(boxID)
		if err != nil || len(list) != 1 {
			t.Fatalf("the list is %v, %v", list, err)
		}
		failing = list[0]
		return failing.Failure != ""
	})
	if !failing.Pending || failing.Retry.IsZero() || !strings.Contains(failing.Failure, "away") {
		t.Errorf("the backlog says %+v", failing)
	}
	if l, err := k.Levels(); err != nil || l.Pending != 1 || l.Failing != 1 || l.Local != 1 {
		t.Errorf("the numbers are %+v, %v", l, err)
	}
	cancel()
	<-done
	far.set(false)
	k = openKeeper(t, dir, far) // the next engine finds the backlog
	run(t, k)
	waitUploaded(t, k)
	if keys := far.keys(t); len(keys) != 2 {
		t.Errorf("far away are %v", keys)
	}
	ws.content, ws.print = "two", "p2"
	ws.save(t, k)
	waitUploaded(t, k)
	eventually(t, "the older one to go", func() bool { return len(far.keys(t)) == 2 })
	if l, err := k.Levels(); err != nil || l.Pending != 0 || l.Remote != 1 {
		t.Errorf("the numbers are %+v, %v", l, err)
	}
}

func TestTheRemoteArchiveOutlivesTheLocalOne(t *testing.T) {
	far := newShelf(t)
	k := openKeeper(t, t.TempDir(), far)
	ws := &workspace{content: "one", print: "p1"}
	ws.save(t, k)
	run(t, k)
	waitUploaded(t, k)
	if err := k.Drop(t.Context(), boxID); err != nil {
		t.Fatal(err)
	}
	if list, err := k.List(""); err != nil || len(list) != 1 || list[0].Local || !list[0].Remote {
		t.Errorf("after the drop: %+v, %v", list, err)
	}
	wantRestored(t, k, "one", engine.ArchiveRemote)
	if err := k.Remove(t.Context(), boxID, ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all to be gone", func() bool { return len(far.keys(t)) == 0 && len(dirNames(t, k.Dir)) == 0 })
	if _, err := k.Restore(t.Context(), boxID, ws, ""); engine.AsCode(err) != engine.NotFound {
		t.Errorf("a restore of nothing: %v", err)
	}
}

func TestADeletionWaitsForAPlaceThatIsAway(t *testing.T) {
	far, dir := newShelf(t), t.TempDir()
	k := openKeeper(t, dir, far)
	ws := &workspace{content: "one", print: "p1"}
	ws.save(t, k)
	stop, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(stop) }()
	waitUploaded(t, k)
	far.set(true)
	if err := k.Remove(t.Context(), boxID, ""); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	far.set(false)
	k = openKeeper(t, dir, far)
	if _, err := k.Restore(t.Context(), boxID, ws, ""); engine.AsCode(err) != engine.NotFound {
		t.Errorf("what was deleted came back: %v", err)
	}
	run(t, k)
	eventually(t, "all to be gone", func() bool { return len(far.keys(t)) == 0 && len(dirNames(t, dir)) == 0 })
}

func TestAPlaceThatIsAwayIsNoReasonToGiveUpAnArchive(t *testing.T) {
	far := newShelf(t)
	far.set(true)
	k := openKeeper(t, t.TempDir(), far)
	if _, err := k.Restore(t.Context(), boxID, &workspace{}, ""); engine.AsCode(err) != engine.Unavailable {
		t.Errorf("got %v, want unavailable: there may be one", err)
	}
}
