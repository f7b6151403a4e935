package archive

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"sbx/engine"
)

// uploadWithin bounds one try of one upload.
const uploadWithin = time.Hour

// queue is what is yet to be uploaded or deleted far away. What is in it can
// be read from the directory again: nothing is lost with the process.
type queue struct {
	mu   sync.Mutex
	wake chan struct{} // holds one
	jobs map[engine.SandboxID]*job
}

// job is one sandbox's, with what became of the last try.
type job struct {
	tries   int
	next    time.Time
	failure string
}

func (q *queue) begin(all []Manifest, remote bool) {
	q.wake, q.jobs = make(chan struct{}, 1), map[engine.SandboxID]*job{}
	for _, m := range all {
		q.add(m.Sandbox, m, remote)
	}
}

func (q *queue) add(id engine.SandboxID, m Manifest, remote bool) {
	if remote && m.toUpload() {
		q.put(id)
	}
}

func (q *queue) put(id engine.SandboxID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs[id] = &job{}
	select {
	case q.wake <- struct{}{}:
	default: // the loop will look anyway
	}
}

func (q *queue) drop(id engine.SandboxID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.jobs, id)
}

// due is a job whose time has come, or when the next one's will.
func (q *queue) due(now time.Time) (id engine.SandboxID, j *job, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, one := range q.jobs {
		if !one.next.After(now) {
			return key, one, now
		}
		if next.IsZero() || one.next.Before(next) {
			next = one.next
		}
	}
	return "", nil, next
}

// done takes a job out that was not put in anew meanwhile.
func (q *queue) done(id engine.SandboxID, j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.jobs[id] == j {
		delete(q.jobs, id)
	}
}

func (q *queue) failed(j *job, err error, first, most time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := min(most, first<<min(j.tries, 20))
	if wait <= 0 {
		wait = most
	}
	wait += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(wait)) // so that many don't return at once
	j.tries++
	j.failure, j.next = err.Error(), time.Now().Add(wait)
	return wait
}

// about fills in what the queue knows of an archive.
func (q *queue) about(a *engine.Archive) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j := q.jobs[a.Sandbox]; j != nil {
		a.Failure, a.Retry = j.failure, j.next
	}
}

// Run uploads what is to be uploaded, one after another, until ctx ends. A
// failure is tried again, later each time; it stops nobody.
func (k *Keeper) Run(ctx context.Context) error {
	if k.Remote == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	k.findTombs()
	for {
		id, j, next := k.queue.due(time.Now())
		if j == nil {
			if err := k.queue.wait(ctx, next); err != nil {
				return err
			}
			continue
		}
		err := k.sync(ctx, id)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			k.queue.done(id, j)
		default:
			wait := k.queue.failed(j, err, k.Retry, k.RetryMost)
			k.levels.stale.Store(true)
			k.Log.Warn("archives: an upload failed", "sandbox", id, "err", err, "again_in", wait)
		}
	}
}

func (q *queue) wait(ctx context.Context, next time.Time) error {
	d := time.Hour
	if !next.IsZero() {
		d = max(0, time.Until(next))
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-q.wake:
	case <-t.C:
	}
	return nil
}

// findTombs queues the deletions that an engine before this one left.
func (k *Keeper) findTombs() {
	entries, _ := os.ReadDir(k.Dir) // Open has read it a moment ago
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), goneSuffix); ok {
			k.queue.put(engine.SandboxID(id))
		}
	}
}

// sync makes the remote place what it should be for one sandbox.
func (k *Keeper) sync(ctx context.Context, id engine.SandboxID) error {
	ctx, cancel := context.WithTimeout(ctx, uploadWithin)
	defer cancel()
	if _, err := os.Stat(k.path(string(id) + goneSuffix)); err == nil {
		if err := k.removeRemote(ctx, id, ""); err != nil {
			return err
		}
		if err := os.Remove(k.path(string(id) + goneSuffix)); err != nil {
			return fault("note the deletion", err)
		}
	}
	return k.upload(ctx, id)
}

// upload sends an archive: its content under a name of its own, then the
// manifest that makes it count, then what was there before goes. A link holds
// the file meanwhile, so that nobody who saves has to wait for the network.
func (k *Keeper) upload(ctx context.Context, id engine.SandboxID) error {
	m, hold, err := k.hold(id)
	if err != nil || hold == "" {
		return err
	}
	defer os.Remove(hold)
	if err := k.Remote.Put(ctx, dataKey(m), hold); err != nil {
		return err
	}
	sent := m
	sent.Uploaded, sent.Fingerprint = "", ""
	about, err := k.aside(sent)
	if err != nil {
		return err
	}
	defer os.Remove(about)
	if err := k.Remote.Put(ctx, manifestKey(id), about); err != nil {
		return err
	}
	if err := k.noteUploaded(id, m.SHA256); err != nil {
		return err
	}
	if err := k.removeRemote(ctx, id, dataKey(m)); err != nil {
		k.Log.Warn("archives: an older remote one stays", "sandbox", id, "err", err)
	}
	return nil
}

// hold links the archive's file under another name; "" if there is nothing to
// upload any more.
func (k *Keeper) hold(id engine.SandboxID) (m Manifest, name string, err error) {
	defer k.turns.lock(id)()
	m, err = k.manifest(id)
	if engine.AsCode(err) == engine.NotFound || err == nil && !m.toUpload() {
		return m, "", nil
	}
	if err != nil {
		return m, "", err
	}
	if err := verifyFile(k.path(m.File), m); err != nil {
		return m, "", err // the good one far away is not replaced by this
	}
	name = k.path(string(id) + ".upload" + newSuffix)
	_ = os.Remove(name) // of a try that was cut
	return m, name, fault("hold the archive", os.Link(k.path(m.File), name))
}

// aside writes a manifest to a file of its own.
func (k *Keeper) aside(m Manifest) (string, error) {
	b, err := encode(m)
	if err != nil {
		return "", err
	}
	name := k.path(string(m.Sandbox) + ".manifest" + newSuffix)
	return name, fault("write the manifest", os.WriteFile(name, b, 0o600))
}

func (k *Keeper) noteUploaded(id engine.SandboxID, sum string) error {
	defer k.turns.lock(id)()
	m, err := k.manifest(id)
	if engine.AsCode(err) == engine.NotFound {
		return nil // deleted meanwhile: its tomb is queued
	}
	if err != nil {
		return err
	}
	m.Uploaded = sum
	return k.put(m)
}

// removeRemote deletes a sandbox's objects but keep; with keep "" all of them,
// the manifest first.
func (k *Keeper) removeRemote(ctx context.Context, id engine.SandboxID, keep string) error {
	keys, err := k.Remote.List(ctx, string(id)+"/")
	if err != nil {
		return err
	}
	var errs []error
	if keep == "" {
		errs = append(errs, gone(k.Remote.Delete(ctx, manifestKey(id))))
	}
	for _, key := range keys {
		if key != keep && key != manifestKey(id) {
			errs = append(errs, gone(k.Remote.Delete(ctx, key)))
		}
	}
	return errors.Join(errs...)
}

func gone(err error) error {
	if engine.AsCode(err) == engine.NotFound {
		return nil
	}
	return err
}

// Remove deletes a sandbox's archive: here, far away, or both (where ""). What
// can't be reached now is deleted as soon as it can.
func (k *Keeper) Remove(ctx context.Context, id engine.SandboxID, where engine.ArchivePlace) error {
	if err := checkID(id); err != nil {
		return err
	}
	if where == engine.ArchiveLocal {
		return k.Drop(ctx, id)
	}
	if err := k.bury(id, where); err != nil || k.Remote == nil {
		return err
	}
	k.queue.put(id)
	return nil
}

func (k *Keeper) bury(id engine.SandboxID, where engine.ArchivePlace) error {
	defer k.turns.lock(id)()
	m, err := k.manifest(id)
	k.queue.drop(id)
	if k.Remote != nil {
		if err := os.WriteFile(k.path(string(id)+goneSuffix), nil, 0o600); err != nil {
			return fault("note the deletion", err)
		}
	}
	if engine.AsCode(err) == engine.NotFound {
		return nil
	}
	if where == engine.ArchiveRemote && err == nil && m.File != "" {
		m.Uploaded, m.Stays = "", true
		return k.put(m)
	}
	return k.forget(id, m)
}
