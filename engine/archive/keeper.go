// Package archive keeps workspaces as files: one tar, compressed by zstd, with
// a manifest beside it, in a directory of this host and, where there is one, in
// object storage too.
//
// The one rule: at every moment the last archive that was finished can be
// used. A new one is written beside it under a name of its own, checksummed and
// synced; the manifest that is renamed into place last makes it count.
//
// It knows nothing of the pool, nor what a workspace is: a driver makes one
// stream of it and takes one.
package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"sbx/engine"
	"sbx/engine/driver"
)

// Keeper keeps the archives of one engine. Its fields are set before Open.
type Keeper struct {
	// Dir is the directory of the local ones; it is made.
	Dir string
	// Remote is object storage; nil: there is none.
	Remote Remote
	// Rebuildable: archives have node_modules and its like too.
	Rebuildable bool
	// Retry is the first wait after an upload that failed; it doubles up to
	// RetryMost. Zero: 2 s and 5 min.
	Retry, RetryMost time.Duration
	Log              *slog.Logger

	turns  turns
	queue  queue
	levels levels
}

// Remote is a place for objects. Its errors are engine.NotFound for what isn't
// there; others may pass.
type Remote interface {
	// Put stores a file: whole, or not at all.
	Put(ctx context.Context, key, file string) error
	// Fetch writes an object to a new file.
	Fetch(ctx context.Context, key, file string) error
	// List are the keys that begin with prefix.
	List(ctx context.Context, prefix string) ([]string, error)
	Delete(ctx context.Context, key string) error
}

// Open makes the directory, and collects what a cut left in it.
func (k *Keeper) Open() error {
	if k.Log == nil {
		k.Log = slog.New(slog.DiscardHandler)
	}
	if k.Retry <= 0 {
		k.Retry = 2 * time.Second
	}
	if k.RetryMost <= 0 {
		k.RetryMost = 5 * time.Minute
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return fault("make the directory of archives", err)
	}
	all, err := k.list()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, m := range all {
		named[m.File] = true
	}
	entries, err := os.ReadDir(k.Dir)
	if err != nil {
		return fault("list the archives", err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, newSuffix) || strings.HasSuffix(name, dataSuffix) && !named[name] {
			if err := os.Remove(k.path(name)); err != nil {
				k.Log.Warn("archives: rubbish stays", "file", name, "err", err)
			}
		}
	}
	k.queue.begin(all, k.Remote != nil)
	return nil
}

// fault gives a system's error its code. It says nothing of the host's paths
// beyond what the system does.
func fault(doing string, err error) error {
	switch {
	case err == nil || errors.As(err, new(*engine.Error)):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return engine.Errorf(engine.Exhausted, "%s: the disk of the archives is full", doing).
			WithHint("free space, or keep them elsewhere: archive.dir")
	}
	return engine.Errorf(engine.Internal, "%s: %w", doing, err)
}

// Save archives a workspace, unless it is as it was when that was done last;
// wrote is false then.
func (k *Keeper) Save(ctx context.Context, sb engine.Sandbox, ws driver.Archives) (a engine.Archive, wrote bool, err error) {
	if err := checkID(sb.ID); err != nil {
		return a, false, err
	}
	defer k.turns.lock(sb.ID)()
	last, err := k.manifest(sb.ID)
	if err != nil && engine.AsCode(err) != engine.NotFound {
		k.Log.Warn("archives: a manifest is replaced that can't be used", "sandbox", sb.ID, "err", err)
		last = Manifest{}
	}
	if k.unchanged(ctx, last, ws) {
		return last.archive(k.Remote != nil), false, nil
	}
	m, err := k.write(ctx, sb, ws)
	if err != nil {
		return a, false, err
	}
	m.Uploaded = last.Uploaded
	if err := k.put(m); err != nil {
		return a, false, errors.Join(err, k.unlink(m.File, last.File))
	}
	if err := k.unlink(last.File, m.File); err != nil {
		k.Log.Warn("archives: the one before stays", "file", last.File, "err", err)
	}
	k.queue.add(sb.ID, m, k.Remote != nil)
	return m.archive(k.Remote != nil), true, nil
}

// unchanged reports whether the last archive is of the workspace as it is.
func (k *Keeper) unchanged(ctx context.Context, last Manifest, ws driver.Archives) bool {
	if last.Fingerprint == "" || last.File == "" || last.Rebuildable != k.Rebuildable {
		return false
	}
	st, err := os.Stat(k.path(last.File))
	if err != nil || st.Size() != last.Size {
		return false
	}
	now, err := ws.Fingerprint(ctx, k.Rebuildable)
	return err == nil && now == last.Fingerprint
}

// unlink deletes an archive's file, unless it is also keep.
func (k *Keeper) unlink(name, keep string) error {
	if name == "" || name == keep {
		return nil
	}
	if err := os.Remove(k.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault("delete an archive", err)
	}
	return nil
}

// write makes the archive's file, under the name of its content.
func (k *Keeper) write(ctx context.Context, sb engine.Sandbox, ws driver.Archives) (m Manifest, err error) {
	m = Manifest{Version: 1, Sandbox: sb.ID, Name: sb.Name, Saved: time.Now().UTC(), Rebuildable: k.Rebuildable}
	temp := k.path(string(sb.ID) + newSuffix)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return m, fault("write the archive", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp) // else Open does it
		}
	}()
	packed, err := compress(ctx, f, ws, &m)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return m, fault("write the archive", err)
	}
	m.Files, m.Bytes, m.Fingerprint = packed.Files, packed.Bytes, packed.Fingerprint
	m.LeftOut, m.Unsettled = packed.LeftOut, packed.Unsettled
	m.File = string(sb.ID) + "." + m.SHA256[:16] + dataSuffix
	if err := os.Rename(temp, k.path(m.File)); err != nil {
		return m, fault("write the archive", err)
	}
	return m, k.syncDir()
}

// compress packs a workspace into w, and says in m what that came to.
func compress(ctx context.Context, w io.Writer, ws driver.Archives, m *Manifest) (packed driver.Packed, err error) {
	sum := &counter{w: w, sum: sha256.New()}
	// The fastest level: on two cores the next one takes thrice as long to save
	// a tenth.
	enc, err := zstd.NewWriter(sum, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(min(4, runtime.GOMAXPROCS(0))))
	if err != nil {
		return packed, err
	}
	raw := &counter{w: enc}
	packed, err = ws.Pack(ctx, raw, m.Rebuildable)
	if err = errors.Join(err, enc.Close()); err != nil {
		return packed, err
	}
	m.Size, m.Raw, m.SHA256 = sum.n, raw.n, hex.EncodeToString(sum.sum.Sum(nil))
	return packed, nil
}

// counter counts what passes, and sums it up if it has a sum.
type counter struct {
	w   io.Writer
	n   int64
	sum hash.Hash
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	if c.sum != nil {
		c.sum.Write(b[:n])
	}
	return n, err
}

// Drop deletes the local archive; the remote one stays, and known.
func (k *Keeper) Drop(_ context.Context, id engine.SandboxID) error {
	defer k.turns.lock(id)()
	m, err := k.manifest(id)
	if engine.AsCode(err) == engine.NotFound {
		return nil
	}
	k.queue.drop(id)
	if err != nil || m.Uploaded == "" {
		return k.forget(id, m)
	}
	file := m.File
	m.File, m.SHA256 = "", m.Uploaded
	if err := k.put(m); err != nil {
		return err
	}
	return k.unlink(file, "")
}

// forget deletes an archive with its manifest, the manifest first.
func (k *Keeper) forget(id engine.SandboxID, m Manifest) error {
	if err := checkID(id); err != nil {
		return err
	}
	defer k.levels.stale.Store(true)
	err := os.Remove(k.path(string(id) + manifestSuffix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault("delete an archive", err)
	}
	return k.unlink(m.File, "")
}

// turns lets one at a time be at a sandbox's archive.
type turns struct {
	mu   sync.Mutex
	held map[engine.SandboxID]*turn
}

type turn struct {
	sync.Mutex
	wanted int // guarded by turns.mu
}

func (t *turns) lock(id engine.SandboxID) (unlock func()) {
	t.mu.Lock()
	if t.held == nil {
		t.held = map[engine.SandboxID]*turn{}
	}
	mine := t.held[id]
	if mine == nil {
		mine = &turn{}
		t.held[id] = mine
	}
	mine.wanted++
	t.mu.Unlock()
	mine.Lock()
	return func() {
		mine.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.wanted--; mine.wanted == 0 {
			delete(t.held, id)
		}
	}
}
