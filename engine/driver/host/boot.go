//go:build linux

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sbx/engine"
	"sbx/engine/driver"
)

// recordFile is what makes a directory a box: it is written last.
const recordFile = "box.json"

// A record is what is remembered of a box beside its files.
type record struct {
	Sandbox   engine.SandboxID `json:"sandbox"`
	Origin    engine.Origin    `json:"origin"`
	Workspace string           `json:"workspace"`
	Adopted   bool             `json:"adopted,omitempty"`
	UID       int              `json:"uid"`
	GID       int              `json:"gid"`
	Spec      engine.Spec      `json:"spec"`
}

// Boot makes a box, or finds it made.
func (h *Host) Boot(ctx context.Context, b driver.Boot) (driver.Box, error) {
	if err := checkID(b.ID); err != nil {
		return nil, err
	}
	box, err := h.Attach(ctx, b.ID)
	anew := b.Anew && driver.IsWorkspaceGone(err)
	if !errors.Is(err, engine.NotFound) && !anew {
		return box, err
	}
	if anew {
		if err := h.makeAnew(ctx, b); err != nil {
			return nil, fmt.Errorf("boot %s anew: %w", b.ID, err)
		}
		return h.Attach(ctx, b.ID)
	}
	if err := h.makeBox(ctx, b); err != nil {
		// Nothing has run in it: no more than files is left.
		return nil, errors.Join(fmt.Errorf("boot %s: %w", b.ID, err), removeTree(h.boxDir(b.ID)))
	}
	return h.Attach(ctx, b.ID)
}

// checkID keeps what becomes a directory's and a cgroup's name to what NewID
// makes.
func checkID(id engine.SandboxID) error {
	s := string(id)
	if len(s) < len(engine.SandboxPrefix)+1 || len(s) > 64 || s[:len(engine.SandboxPrefix)] != engine.SandboxPrefix {
		return engine.Errorf(engine.Invalid, "%q is no sandbox id", s)
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return engine.Errorf(engine.Invalid, "%q is no sandbox id", s)
		}
	}
	return nil
}

func (h *Host) boxDir(id engine.SandboxID) string { return filepath.Join(h.boxesDir(), string(id)) }

// makeBox makes the directory, the workspace, and at last the record.
func (h *Host) makeBox(ctx context.Context, b driver.Boot) error {
	dir := h.boxDir(b.ID)
	if err := removeTree(dir); err != nil { // of a boot that was cut
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	workspace, adopted, err := h.makeWorkspace(ctx, b, dir)
	if err != nil {
		return err
	}
	if workspace, err = filepath.EvalSymlinks(workspace); err != nil {
		return err
	}
	r := record{Sandbox: b.ID, Origin: b.Origin, Workspace: workspace, Adopted: adopted, Spec: b.Spec}
	if err := h.settleOwner(&r, dir); err != nil {
		return err
	}
	return r.write(dir)
}

// makeAnew makes the workspace of a box that has lost it. Who the sandbox runs
// as stays.
func (h *Host) makeAnew(ctx context.Context, b driver.Boot) error {
	dir := h.boxDir(b.ID)
	r, err := readRecord(dir)
	switch {
	case err != nil:
		return err
	case r.Adopted:
		return engine.Errorf(engine.Unavailable, "%w: %s is a directory of yours", driver.ErrWorkspaceGone, r.Workspace).
			WithHint("put it back, or remove the sandbox: sbx rm %s", b.ID)
	}
	workspace, _, err := h.makeWorkspace(ctx, b, dir)
	if err != nil {
		return err
	}
	if r.Workspace, err = filepath.EvalSymlinks(workspace); err != nil {
		return err
	}
	if h.root && r.UID != 0 {
		if err := giveTree(r.Workspace, r.UID, r.GID); err != nil {
			return fmt.Errorf("give the workspace to uid %d: %w", r.UID, err)
		}
	}
	return r.write(dir)
}

// settleOwner decides who the sandbox runs as, and gives it what is its own.
func (h *Host) settleOwner(r *record, dir string) error {
	var st syscall.Stat_t
	if err := syscall.Stat(r.Workspace, &st); err != nil {
		return fmt.Errorf("look at the workspace: %w", err)
	}
	r.UID, r.GID = int(st.Uid), int(st.Gid)
	if !h.root {
		r.UID, r.GID = os.Geteuid(), os.Getegid()
	}
	if h.root && r.UID == 0 && !(r.Adopted && h.cfg.AllowRoot) {
		if r.Adopted {
			return engine.Errorf(engine.Forbidden, "%s belongs to root: its sandbox would run as root", r.Workspace).
				WithHint("give the directory to an ordinary user, or start the engine with --allow-root")
		}
		uid, err := h.freeUID()
		if err != nil {
			return err
		}
		r.UID, r.GID = uid, uid
		if err := giveTree(r.Workspace, uid, uid); err != nil {
			return fmt.Errorf("give the workspace to uid %d: %w", uid, err)
		}
	}
	if r.GID == 0 && r.UID != 0 {
		r.GID = r.UID // root's group is no sandbox's
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if !h.root {
		return nil
	}
	if err := os.Lchown(home, r.UID, r.GID); err != nil {
		return err
	}
	// Its own group may pass through, to the workspace and home; others not.
	if err := errors.Join(os.Lchown(dir, 0, r.GID), os.Chmod(dir, 0o710)); err != nil {
		return err
	}
	return h.checkReach(r)
}

// checkReach refuses a workspace that its owner can't reach: where no mount
// shows it, every directory above must let the owner through.
func (h *Host) checkReach(r *record) error {
	if h.confine.hides() {
		return nil
	}
	for dir := filepath.Dir(r.Workspace); ; dir = filepath.Dir(dir) {
		var st syscall.Stat_t
		if err := syscall.Stat(dir, &st); err != nil {
			return err
		}
		bit := uint32(0o001)
		switch {
		case int(st.Uid) == r.UID:
			bit = 0o100
		case int(st.Gid) == r.GID:
			bit = 0o010
		}
		if st.Mode&bit == 0 {
			return engine.Errorf(engine.Unavailable, "uid %d can't reach %s: %s is closed to it", r.UID, r.Workspace, dir).
				WithHint("install bubblewrap, or keep the data directory where others may pass, such as /var/lib/sbx")
		}
		if dir == "/" {
			return nil
		}
	}
}

// freeUID is a uid that no box has.
func (h *Host) freeUID() (int, error) {
	taken := map[int]bool{}
	for _, id := range h.boxIDs() {
		if r, err := readRecord(h.boxDir(id)); err == nil {
			taken[r.UID] = true
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for range h.uids.last - h.uids.first + 1 {
		uid := h.uid
		if h.uid++; h.uid > h.uids.last {
			h.uid = h.uids.first
		}
		if !taken[uid] {
			return uid, nil
		}
	}
	return 0, engine.Errorf(engine.Exhausted, "every uid from %d to %d has a sandbox", h.uids.first, h.uids.last)
}

// boxIDs are the directories of boxes, made and half made.
func (h *Host) boxIDs() []engine.SandboxID {
	entries, _ := os.ReadDir(h.boxesDir()) // none: no boxes
	var ids []engine.SandboxID
	for _, e := range entries {
		if id := engine.SandboxID(e.Name()); e.IsDir() && checkID(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Attach finds a box by its record.
func (h *Host) Attach(_ context.Context, id engine.SandboxID) (driver.Box, error) {
	if err := checkID(id); err != nil {
		return nil, engine.Errorf(engine.NotFound, "there is no box %q", id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.boxes[id]; b != nil {
		if _, err := os.Lstat(b.workspace); !errors.Is(err, fs.ErrNotExist) || len(b.live()) > 0 {
			return h.outward(b), nil
		}
		delete(h.boxes, id) // what it knows of itself isn't so any more
	}
	r, err := readRecord(h.boxDir(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, engine.Errorf(engine.NotFound, "%s has no box here", id)
	}
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", id, err)
	}
	settleSwap(r.Workspace)
	if _, err := os.Stat(r.Workspace); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", driver.ErrWorkspaceGone, err)
		}
		return nil, engine.Errorf(engine.Unavailable, "attach %s: %w", id, err)
	}
	b := &box{
		host: h, id: id, dir: h.boxDir(id), workspace: r.Workspace, adopted: r.Adopted,
		uid: r.UID, gid: r.GID, spec: r.Spec, bounds: r.Spec.Limits, procs: map[engine.ProcessID]*proc{}, ending: map[*proc]bool{}, masks: map[string]*mask{},
		kept: map[engine.ProcessID]*proc{},
	}
	b.dropOldMasks()
	h.boxes[id] = b
	return h.outward(b), nil
}

// outward is a box as others see it: one that keeps, where there are shims.
func (h *Host) outward(b *box) driver.Box {
	if h.cfg.Shims != nil {
		return shimBox{b}
	}
	return b
}

func (h *Host) forget(b *box) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.boxes, b.id)
}

func (r record) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return writeAside(filepath.Join(dir, recordFile), data)
}

// writeAside writes a file whole or not at all.
func writeAside(name string, data []byte) error {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func readRecord(dir string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, engine.Errorf(engine.Internal, "%s: %w", recordFile, err)
	}
	return r, nil
}
