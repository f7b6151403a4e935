package archive

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sbx/engine"
)

// The names of what is kept of a sandbox, behind its id.
const (
	manifestSuffix = ".json"
	dataSuffix     = ".tar.zst"
	newSuffix      = ".new"  // being written; what a cut leaves is collected
	goneSuffix     = ".gone" // its remote archive is to be deleted
)

// Manifest is what is known of an archive. Written last, it is what makes a
// file an archive: one that no manifest names is rubbish.
type Manifest struct {
	Version int              `json:"version"` // of this format: 1
	Sandbox engine.SandboxID `json:"sandbox"`
	Name    string           `json:"name,omitempty"`
	Saved   time.Time        `json:"saved"`
	// File is the archive's name beside the manifest; "": it is not here.
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256"` // of the file
	Size   int64  `json:"size"`   // of the file
	Raw    int64  `json:"raw"`    // of the tar in it
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
	// Fingerprint is the workspace's, as long as it is unchanged.
	Fingerprint string   `json:"fingerprint,omitempty"`
	Rebuildable bool     `json:"rebuildable,omitempty"`
	LeftOut     []string `json:"leftOut,omitempty"`
	Unsettled   []string `json:"unsettled,omitempty"`
	// Uploaded is the SHA256 of what the remote place holds.
	Uploaded string `json:"uploaded,omitempty"`
	// Stays: the remote one was deleted on purpose; this one isn't uploaded.
	Stays bool `json:"stays,omitempty"`
}

// toUpload reports whether the remote place lacks it.
func (m Manifest) toUpload() bool { return m.File != "" && m.Uploaded != m.SHA256 && !m.Stays }

// archive is the manifest for people.
func (m Manifest) archive(remote bool) engine.Archive {
	return engine.Archive{
		Sandbox: m.Sandbox, Name: m.Name, Saved: m.Saved, Size: m.Size, Files: m.Files, Bytes: m.Bytes, SHA256: m.SHA256,
		Local: m.File != "", Remote: m.Uploaded != "", Pending: remote && m.toUpload(),
	}
}

// check refuses a manifest that could name something else than its own file.
func (m Manifest) check(id engine.SandboxID) error {
	switch {
	case m.Version != 1:
		return damaged("its manifest is of version %d", m.Version)
	case m.Sandbox != id:
		return damaged("its manifest is of %.40q", m.Sandbox)
	case m.File != "" && (m.File != filepath.Base(m.File) || !strings.HasPrefix(m.File, string(id)+".") || !strings.HasSuffix(m.File, dataSuffix)):
		return damaged("its manifest names the file %.80q", m.File)
	case len(m.SHA256) != 64 || m.Size < 0 || m.Raw < 0:
		return damaged("its manifest makes no sense")
	}
	return nil
}

// damaged is the error of an archive that can't be used.
func damaged(format string, args ...any) error {
	return engine.Errorf(engine.Invalid, "the archive is damaged: "+format, args...)
}

func (k *Keeper) path(name string) string { return filepath.Join(k.Dir, name) }

// checkID keeps what becomes a file's name and an object's key to what ids are
// made of.
func checkID(id engine.SandboxID) error {
	rest, ok := strings.CutPrefix(string(id), engine.SandboxPrefix)
	if !ok || rest == "" || len(rest) > 60 || strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return engine.Errorf(engine.Invalid, "%.80q is no sandbox id", string(id))
	}
	return nil
}

// manifest reads a sandbox's; engine.NotFound if there is none.
func (k *Keeper) manifest(id engine.SandboxID) (m Manifest, err error) {
	if err := checkID(id); err != nil {
		return m, err
	}
	b, err := os.ReadFile(k.path(string(id) + manifestSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return m, engine.Errorf(engine.NotFound, "%s has no archive", id)
	}
	if err != nil {
		return m, fault("read the manifest", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, damaged("its manifest can't be read")
	}
	return m, m.check(id)
}

// put writes a manifest: whole, on disk, and then in the place of the one
// before.
func (k *Keeper) put(m Manifest) error {
	b, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	defer k.levels.stale.Store(true)
	name := k.path(string(m.Sandbox) + manifestSuffix)
	f, err := os.OpenFile(name+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fault("write the manifest", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fault("write the manifest", errors.Join(err, os.Remove(name+newSuffix)))
	}
	if err := os.Rename(name+newSuffix, name); err != nil {
		return fault("write the manifest", err)
	}
	return k.syncDir()
}

func (k *Keeper) syncDir() error {
	d, err := os.Open(k.Dir)
	if err != nil {
		return fault("sync the archives", err)
	}
	return fault("sync the archives", errors.Join(d.Sync(), d.Close()))
}

// list is every manifest that can be read.
func (k *Keeper) list() ([]Manifest, error) {
	entries, err := os.ReadDir(k.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault("list the archives", err)
	}
	var all []Manifest
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), manifestSuffix)
		if !ok {
			continue
		}
		if m, err := k.manifest(engine.SandboxID(id)); err == nil {
			all = append(all, m)
		} else {
			k.Log.Warn("archives: a manifest can't be used", "file", e.Name(), "err", err)
		}
	}
	return all, nil
}
