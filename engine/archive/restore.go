package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"sbx/engine"
	"sbx/engine/driver"
)

// Restore makes a workspace what was archived of the sandbox id: from the
// local archive or, where there is none or it is damaged, from the remote one.
// engine.NotFound: there is none that can be used; the workspace is as it was.
// where "" tries both.
func (k *Keeper) Restore(ctx context.Context, id engine.SandboxID, ws driver.Archives, where engine.ArchivePlace) (engine.ArchivePlace, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	defer k.turns.lock(id)()
	var tried []string
	if where != engine.ArchiveRemote {
		m, err := k.manifest(id)
		if err == nil && m.File != "" {
			err = k.unpack(ctx, m, ws)
		} else if err == nil {
			err = engine.Errorf(engine.NotFound, "the local archive is gone")
		}
		if err == nil || !passed(err) {
			return engine.ArchiveLocal, err
		}
		k.Log.Warn("archives: the local one is passed over", "sandbox", id, "err", err)
		tried = append(tried, "local: "+err.Error())
	}
	if k.Remote != nil && where != engine.ArchiveLocal {
		m, err := k.fetch(ctx, id)
		if err == nil {
			err = k.unpack(ctx, m, ws)
		}
		if err == nil || !passed(err) {
			return engine.ArchiveRemote, err
		}
		k.Log.Warn("archives: the remote one is passed over", "sandbox", id, "err", err)
		tried = append(tried, "remote: "+err.Error())
	}
	return "", engine.Errorf(engine.NotFound, "%s has no archive that can be used (%s)", id, strings.Join(tried, "; "))
}

// passed reports whether an archive is passed over for the next place: it
// isn't there, or it is damaged. A full disk is no reason.
func passed(err error) bool {
	switch engine.AsCode(err) {
	case engine.NotFound, engine.Invalid:
		return true
	}
	return false
}

// unpack has a driver read an archive. The checksum stands at the end of what
// it reads, before it lets the workspace count.
func (k *Keeper) unpack(ctx context.Context, m Manifest, ws driver.Archives) error {
	f, err := os.Open(k.path(m.File))
	if errors.Is(err, os.ErrNotExist) {
		return engine.Errorf(engine.NotFound, "the archive's file is gone")
	}
	if err != nil {
		return fault("read the archive", err)
	}
	defer f.Close()
	v := &verifier{r: f, sum: sha256.New(), want: m}
	dec, err := zstd.NewReader(v, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return damaged("%v", err)
	}
	defer dec.Close()
	v.dec = dec
	return ws.Unpack(ctx, tarReader{v})
}

// verifier is an archive as a tar that fails where it isn't what its manifest
// says: at the latest at its end.
type verifier struct {
	r    io.Reader
	sum  hash.Hash
	n    int64
	want Manifest
	dec  *zstd.Decoder
	raw  int64
}

// Read is the decoder's: the file's own bytes.
func (v *verifier) Read(b []byte) (int, error) {
	n, err := v.r.Read(b)
	v.n += int64(n)
	v.sum.Write(b[:n])
	return n, err
}

type tarReader struct{ v *verifier }

func (t tarReader) Read(b []byte) (int, error) {
	v := t.v
	n, err := v.dec.Read(b)
	v.raw += int64(n)
	switch {
	case v.raw > v.want.Raw:
		return 0, damaged("it has more in it than it should")
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, damaged("%v", err)
	case v.n != v.want.Size || v.raw != v.want.Raw || hex.EncodeToString(v.sum.Sum(nil)) != v.want.SHA256:
		return 0, damaged("its checksum is wrong")
	}
	return n, io.EOF
}

// fetch brings the remote archive here, where it is the local one from then
// on. A local one that is as it should be is left alone.
func (k *Keeper) fetch(ctx context.Context, id engine.SandboxID) (Manifest, error) {
	var m Manifest
	if _, err := os.Stat(k.path(string(id) + goneSuffix)); err == nil {
		return m, engine.Errorf(engine.NotFound, "it is being deleted")
	}
	temp := k.path(string(id) + ".fetch" + newSuffix)
	defer os.Remove(temp) // renamed by then, or rubbish
	if err := k.fetchObject(ctx, manifestKey(id), temp); err != nil {
		return m, err
	}
	b, err := os.ReadFile(temp)
	if err != nil {
		return m, fault("read the manifest", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, damaged("its remote manifest can't be read")
	}
	if err := m.check(id); err != nil {
		return m, err
	}
	if m.File == "" {
		return m, damaged("its remote manifest names no file")
	}
	if err := k.fetchObject(ctx, dataKey(m), temp); err != nil {
		return m, err
	}
	if err := verifyFile(temp, m); err != nil {
		return m, err
	}
	m.Uploaded, m.Fingerprint = m.SHA256, ""
	if err := os.Rename(temp, k.path(m.File)); err != nil {
		return m, fault("keep the archive", err)
	}
	return m, k.put(m)
}

func (k *Keeper) fetchObject(ctx context.Context, key, file string) error {
	for try := 0; ; try++ {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault("fetch the archive", err)
		}
		err := k.Remote.Fetch(ctx, key, file)
		if engine.AsCode(err) != engine.Unavailable || try == fetchTries-1 {
			return fault("fetch the archive", err)
		}
		t := time.NewTimer(k.Retry << try / 4)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// fetchTries is how often a download is begun that breaks.
const fetchTries = 3

// verifyFile holds a file against its manifest.
func verifyFile(name string, m Manifest) error {
	f, err := os.Open(name)
	if err != nil {
		return fault("read the archive", err)
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return fault("read the archive", err)
	}
	if n != m.Size || hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
		return damaged("its checksum is wrong")
	}
	return nil
}

// The keys of a sandbox's objects.
func manifestKey(id engine.SandboxID) string { return path.Join(string(id), "manifest.json") }
func dataKey(m Manifest) string              { return path.Join(string(m.Sandbox), m.File) }
