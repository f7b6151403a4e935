package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/archive"
	"sbx/store"
)

// far is a remote place that is a directory.
type far struct{ dir string }

func (f far) at(key string) string { return filepath.Join(f.dir, strings.ReplaceAll(key, "/", "!")) }

func (f far) Put(_ context.Context, key, file string) error { return copyFile(f.at(key), file) }

func (f far) Fetch(_ context.Context, key, file string) error {
	if _, err := os.Stat(f.at(key)); err != nil {
		return engine.Errorf(engine.NotFound, "no %s", key)
	}
	return copyFile(file, f.at(key))
}

func (f far) Delete(_ context.Context, key string) error { return os.RemoveAll(f.at(key)) }

func (f far) List(_ context.Context, prefix string) (keys []string, err error) {
	list, err := os.ReadDir(f.dir)
	for _, e := range list {
		if key := strings.ReplaceAll(e.Name(), "!", "/"); strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys, err
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// tight is an engine with one place, whose archives go to a directory too.
func tight(t *testing.T) *Engine {
	t.Helper()
	cfg := config(t, t.TempDir(), "")
	cfg.MaxSandboxes = 1
	cfg.Keeper = &archive.Keeper{Remote: far{t.TempDir()}, Retry: 10 * time.Millisecond}
	return open(t, cfg)
}

// evict has a session's sandbox give its place to another's, and returns its
// id, which nothing is left of but archives.
func evict(t *testing.T, e *Engine, mine, other engine.SessionID) engine.SandboxID {
	t.Helper()
	id := resting(t, e, mine)
	says(t, e, other, "", "echo ok", "ok\n")
	goneButArchived(t, e, id)
	return id
}

// resting waits until nothing runs in a session's sandbox.
func resting(t *testing.T, e *Engine, id engine.SessionID) (sb engine.SandboxID) {
	t.Helper()
	err := engine.Until(t.Context(), e, time.Minute, func(s *engine.Snapshot) bool {
		sb = s.Sessions[id].Sandbox
		return s.Sandboxes[sb].State == engine.Waiting
	})
	if err != nil {
		t.Fatal("its sandbox does not come to rest: ", err)
	}
	return sb
}

// goneButArchived follows a sandbox's end: whenever its processes are said to
// be down, and when it is gone, the archive is there.
func goneButArchived(t *testing.T, e *Engine, id engine.SandboxID) {
	t.Helper()
	err := engine.Until(t.Context(), e, time.Minute, func(s *engine.Snapshot) bool {
		sb, there := s.Sandboxes[id]
		if list, err := e.Archives(t.Context(), id); (!there || sb.State == engine.Cold) && (err != nil || len(list) != 1 || !list[0].Local) {
			t.Errorf("the sandbox is %q, and its archives %+v, %v", sb.State, list, err)
		}
		return !there
	})
	if err != nil {
		t.Fatal("it is still there: ", err)
	}
	uploaded := func() bool { return e.keeper.Uploaded(id) }
	wait(t, "the upload", uploaded)
}

// wait waits until ok.
func wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited a minute in vain: %s", what)
		}
	}
}

func wantCounters(t *testing.T, e *Engine, want engine.PoolCounters) {
	t.Helper()
	err := e.store.View(t.Context(), func(tx *store.Tx) error {
		l, err := e.pool.Levels(tx)
		if want.ResumeWarmHits = l.ResumeWarmHits; l.PoolCounters != want {
			t.Errorf("the counters are %+v, want %+v", l.PoolCounters, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAnEvictedSandboxComesBackFromTheNearestPlace: the local archive, then,
// where that is damaged, the remote one, then nothing; each is counted.
func TestAnEvictedSandboxComesBackFromTheNearestPlace(t *testing.T) {
	t.Parallel()
	e := tight(t)
	origin := source(t)
	mine := session(t, e, origin)
	says(t, e, mine.ID, "", "echo draft > 'my note'; echo ok", "ok\n")
	resting(t, e, mine.ID)
	other := session(t, e, origin)
	goneButArchived(t, e, mine.Sandbox)

	resting(t, e, other.ID)
	says(t, e, mine.ID, mine.Sandbox, "cat 'my note'", "draft\n")
	wantCounters(t, e, engine.PoolCounters{ResumeColdLocalHits: 1, Evictions: 2})

	damaged := evict(t, e, mine.ID, other.ID)
	files, err := filepath.Glob(filepath.Join(e.keeper.Dir, string(damaged)+".*.tar.zst"))
	if err != nil || len(files) != 1 {
		t.Fatalf("its archives are %v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("not what it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	resting(t, e, other.ID)
	says(t, e, mine.ID, "", "cat 'my note'", "draft\n")
	wantCounters(t, e, engine.PoolCounters{ResumeColdLocalHits: 2, ResumeColdCloudHits: 1, Evictions: 4})

	lost := evict(t, e, mine.ID, other.ID)
	if _, err := e.Do(t.Context(), engine.NewAction(engine.RemoveArchive{Sandbox: lost})); err != nil {
		t.Fatal(err)
	}
	resting(t, e, other.ID)
	says(t, e, mine.ID, "", "test -e 'my note' || test -e sbx.toml && echo fresh", "fresh\n")
	wantCounters(t, e, engine.PoolCounters{ResumeColdLocalHits: 3, ResumeColdCloudHits: 1, ResumeColdFreshHits: 1, Evictions: 6})
}

// TestWhatCantBeArchivedIsNotEvicted: its workspace stays where it is, and the
// session has it back.
func TestWhatCantBeArchivedIsNotEvicted(t *testing.T) {
	t.Parallel()
	e := tight(t)
	mine := session(t, e, source(t))
	says(t, e, mine.ID, "", "echo draft > note; echo ok", "ok\n")
	resting(t, e, mine.ID)
	if err := os.RemoveAll(e.keeper.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.keeper.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := session(t, e, source(t))
	sb := until(t, e, mine.Sandbox, "be kept on disk", func(sb engine.Sandbox) bool { return sb.State == engine.Cold && !sb.Leaving })
	if !strings.Contains(sb.Reason, "kept on disk") {
		t.Errorf("the reason is %q", sb.Reason)
	}
	if _, err := e.Do(t.Context(), engine.NewAction(engine.EndSession{Session: other.ID})); err != nil {
		t.Fatal(err)
	}
	says(t, e, mine.ID, mine.Sandbox, "cat note", "draft\n")
	wantCounters(t, e, engine.PoolCounters{ResumeColdHits: 1, Evictions: 1})
}
