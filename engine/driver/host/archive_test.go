//go:build linux

package host

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/driver"
)

// layReal lays out what a real workspace has: a git repository, links,
// executables, unicode names, a large file, many small ones, and what an
// install makes again.
func layReal(t testing.TB, dir string, small int, large int64) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "src"), 0o755))
	for i := range small {
		d := filepath.Join(dir, "src", fmt.Sprintf("d%03d", i/100))
		if i%100 == 0 {
			must(os.Mkdir(d, 0o755))
		}
		must(os.WriteFile(filepath.Join(d, fmt.Sprintf("f%05d.js", i)), fmt.Appendf(nil, "export const n = %d\n%s\n", i, strings.Repeat("// x\n", i%40)), 0o644))
	}
	r := rand.New(rand.NewPCG(1, 2))
	big, err := os.Create(filepath.Join(dir, "big.bin"))
	must(err)
	block := make([]byte, 1<<20)
	for left := large; left > 0; left -= int64(len(block)) {
		for i := range block {
			block[i] = byte(r.Uint32() >> (i % 3 * 8))
		}
		_, err := big.Write(block[:min(left, int64(len(block)))])
		must(err)
	}
	must(big.Close())
	for name, data := range map[string]string{
		"run.sh": "#!/bin/sh\n", "ünï côdé/日本.txt": "x", "package-lock.json": "{}", ".env": "SECRET=1", "src/a\nb": "a name",
		"node_modules/left/index.js": "module.exports = 1", "sub/.venv/bin/x": "x", "hard": "one content",
	} {
		must(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
	}
	must(os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	must(os.Chmod(filepath.Join(dir, ".env"), 0o600))
	must(os.Link(filepath.Join(dir, "hard"), filepath.Join(dir, "src/harder")))
	for name, target := range map[string]string{"link": "src", "out": "/etc/passwd", "dangling": "nowhere", "src/up": "../run.sh"} {
		must(os.Symlink(target, filepath.Join(dir, name)))
	}
	must(os.Mkdir(filepath.Join(dir, "empty"), 0o750))
	must(os.Mkdir(filepath.Join(dir, "closed"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "closed/in"), []byte("in"), 0o444))
	gitConfig := filepath.Join(t.TempDir(), "config") // safe.directory counts in a file only
	must(os.WriteFile(gitConfig, []byte("[safe]\n\tdirectory = *\n"), 0o644))
	for _, args := range [][]string{{"init", "-q"}, {"add", "run.sh", "src/d000"}, {"-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+gitConfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	must(os.Chmod(filepath.Join(dir, "closed"), 0o555))
	must(os.Chtimes(filepath.Join(dir, "empty"), time.Unix(1e9, 123456789), time.Unix(1e9, 123456789)))
	must(os.Chtimes(filepath.Join(dir, "run.sh"), time.Unix(1e9, 5), time.Unix(1e9, 5)))
}

// hashTree is what an archive keeps of each entry; owners aside.
func hashTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, full) // it lies beneath
		fi, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%s %d", fi.Mode(), fi.ModTime().UnixNano())
		switch {
		case rebuildable[d.Name()]:
			return filepath.SkipDir
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(full)
			all[name] = what + " -> " + target
			return err
		case fi.Mode().IsRegular():
			f, err := os.Open(full)
			if err != nil {
				return err
			}
			defer f.Close()
			sum := sha256.New()
			if _, err := io.Copy(sum, f); err != nil {
				return err
			}
			what += " " + hex.EncodeToString(sum.Sum(nil))
		}
		all[name] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAWorkspaceComesBackFromItsArchive(t *testing.T) {
	small, large := 600, int64(3<<20)
	if os.Getenv("SBX_TEST_FULL") != "" {
		small, large = 20_000, 200<<20
	}
	b := newTestBox(t)
	layReal(t, b.workspace, small, large)
	// What rebuildable directories do to their parents' times is of no interest.
	check(t, os.Chtimes(filepath.Join(b.workspace, "sub"), time.Unix(2e9, 0), time.Unix(2e9, 0)))
	give(t, b)
	check(t, os.Chmod(filepath.Join(b.workspace, ".env"), 0o600))
	want := hashTree(t, b.workspace)
	var tape bytes.Buffer
	packed, err := b.Archives().Pack(t.Context(), &tape, false)
	check(t, err)
	if len(packed.LeftOut) > 0 || len(packed.Unsettled) > 0 || packed.Bytes < large {
		t.Errorf("packed %+v", packed)
	}
	data := tape.Bytes()
	for _, name := range []string{"run.sh", "link", "src/d000/f00000.js"} {
		check(t, os.Remove(filepath.Join(b.workspace, name)))
	}
	lay(t, b, map[string]string{"new": "not in the archive"})
	check(t, b.Archives().Unpack(t.Context(), bytes.NewReader(data)))
	if diff := cmp.Diff(want, hashTree(t, b.workspace)); diff != "" {
		t.Errorf("the restored workspace differs (-want +got):\n%.4000s", diff)
	}
	one, err1 := os.Stat(filepath.Join(b.workspace, "hard"))
	two, err2 := os.Stat(filepath.Join(b.workspace, "src/harder"))
	if check(t, errors.Join(err1, err2)); !os.SameFile(one, two) {
		t.Error("the hard link has become a file of its own")
	}
	if sys := one.Sys().(*syscall.Stat_t); int(sys.Uid) != b.uid {
		t.Errorf("it belongs to %d, want %d", sys.Uid, b.uid)
	}
	if left, err := filepath.Glob(b.workspace + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left beside the workspace: %v, %v", left, err)
	}
	// And a box that is gone is made anew of it.
	id := engine.SandboxID(engine.NewID(engine.SandboxPrefix))
	fresh, err := b.host.Boot(t.Context(), driver.Boot{ID: id, Origin: engine.Origin{Kind: engine.FromTemplate}, Archive: bytes.NewReader(data)})
	check(t, err)
	if diff := cmp.Diff(want, hashTree(t, fresh.Location())); diff != "" {
		t.Errorf("the new workspace differs (-want +got):\n%.4000s", diff)
	}
}

func TestAFingerprintTellsEveryChange(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "one", "dir/b": "two", "node_modules/x": "1"})
	old := time.Now().Add(-time.Hour)
	print := func() string {
		t.Helper()
		for { // until nothing is so young that it couldn't tell
			got, err := b.Archives().Fingerprint(t.Context(), false)
			if check(t, err); got != "" {
				return got
			}
		}
	}
	seen := map[string]string{print(): "at first"}
	if first, again := print(), print(); first != again {
		t.Error("two looks at one state differ")
	}
	for what, change := range map[string]func() error{
		"content of the same size and time": func() error {
			name := filepath.Join(b.workspace, "a")
			return errors.Join(os.WriteFile(name, []byte("two"), 0o644), os.Chtimes(name, old, old))
		},
		"mode": func() error { return os.Chmod(filepath.Join(b.workspace, "a"), 0o600) },
		"name": func() error {
			return os.Rename(filepath.Join(b.workspace, "dir/b"), filepath.Join(b.workspace, "dir/c"))
		},
		"directory": func() error { return os.Mkdir(filepath.Join(b.workspace, "empty"), 0o755) },
	} {
		check(t, change())
		now := print()
		if was, again := seen[now]; again {
			t.Errorf("after a change of the %s the fingerprint is that %s", what, was)
		}
		seen[now] = "after a change of the " + what
	}
	last := print()
	check(t, os.WriteFile(filepath.Join(b.workspace, "node_modules/x"), []byte("2"), 0o644))
	if print() != last {
		t.Error("a change in a rebuildable directory counts")
	}
}

func TestHostileArchivesChangeNothing(t *testing.T) {
	type e = tar.Header
	reg := func(name string) *e { return &e{Name: name, Typeflag: tar.TypeReg, Size: 1, Mode: 0o644} }
	dir := t.TempDir()
	for what, headers := range map[string][]*e{
		"up":                   {reg("../out")},
		"deep up":              {reg("a/../../out")},
		"absolute":             {reg("/" + dir[1:] + "/out")},
		"through a link":       {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: dir}, reg("l/out")},
		"through links":        {{Name: "a", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: "../.."}, reg("a/l/out")},
		"a directory's link":   {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: dir}, {Name: "l", Typeflag: tar.TypeDir, Mode: 0o777}},
		"over a link":          {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: dir + "/out"}, reg("l")},
		"hard link out":        {{Name: "h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"hard link up":         {{Name: "h", Typeflag: tar.TypeLink, Linkname: "../../../../../../etc/passwd"}},
		"hard link by a link":  {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "h", Typeflag: tar.TypeLink, Linkname: "l/passwd"}},
		"hard link to a link":  {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, {Name: "h", Typeflag: tar.TypeLink, Linkname: "l"}},
		"device":               {{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"FIFO":                 {{Name: "f", Typeflag: tar.TypeFifo}},
		"twice":                {reg("a"), reg("a")},
		"file as a directory":  {reg("a"), reg("a/b")},
		"a NUL":                {{Name: "a\x00b", Typeflag: tar.TypeReg, Format: tar.FormatPAX}},
		"far too deep":         {reg(strings.Repeat("a/", 300) + "a")},
		"a name without end":   {reg(strings.Repeat("a", 300))},
		"a bomb":               {{Name: "big", Typeflag: tar.TypeReg, Size: maxCopy + 1}},
		"nothing for its size": {{Name: "cut", Typeflag: tar.TypeReg, Size: 1 << 20}},
	} {
		t.Run(what, func(t *testing.T) {
			b := newTestBox(t)
			lay(t, b, map[string]string{"mine": "precious"})
			var tape bytes.Buffer
			w := tar.NewWriter(&tape)
			for _, h := range headers {
				if err := w.WriteHeader(h); err != nil {
					return // no tar can say this
				}
				if h.Size == 1 {
					_, err := io.WriteString(w, "x")
					check(t, err)
				}
			}
			_ = w.Close() // some are cut on purpose
			err := b.Archives().Unpack(t.Context(), &tape)
			if err == nil {
				t.Fatal("it was unpacked")
			}
			if code := engine.AsCode(err); code == engine.Internal || strings.Contains(err.Error(), b.dir) {
				t.Errorf("it is refused as %s: %v", code, err)
			}
			if diff := cmp.Diff(map[string]string{"mine": "precious"}, look(t, b)); diff != "" {
				t.Errorf("the workspace has changed: %s", diff)
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
				t.Errorf("outside is %v, %v", list, err)
			}
			if left, err := filepath.Glob(b.workspace + ".*"); err != nil || len(left) > 0 {
				t.Errorf("left beside the workspace: %v, %v", left, err)
			}
		})
	}
}

func TestWhatNoArchiveHoldsIsLeftOutAndTold(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"file": "x", "dir/other": "y"})
	check(t, syscall.Mkfifo(filepath.Join(b.workspace, "dir/fifo"), 0o666))
	give(t, b)
	var tape bytes.Buffer
	packed, err := b.Archives().Pack(t.Context(), &tape, false)
	check(t, err)
	if diff := cmp.Diff([]string{"dir/fifo"}, packed.LeftOut); diff != "" {
		t.Error(diff)
	}
	check(t, b.Archives().Unpack(t.Context(), &tape))
	if diff := cmp.Diff(map[string]string{"file": "x", "dir/other": "y"}, look(t, b)); diff != "" {
		t.Error(diff)
	}
}

func TestAnArchiveIsWholeHoweverFilesChangeMeanwhile(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a": "x", "big": strings.Repeat("y", smallFile+100), "z": "z"})
	// A writer at work: the tar is written into a pipe that nobody reads until
	// the file has been cut.
	pr, pw := io.Pipe()
	done := make(chan driver.Packed, 1)
	go func() {
		packed, err := b.Archives().Pack(t.Context(), pw, false)
		pw.CloseWithError(err)
		done <- packed
	}()
	tr := tar.NewReader(pr)
	for {
		h, err := tr.Next()
		check(t, err)
		if h.Name == "big" {
			break
		}
	}
	check(t, os.Truncate(filepath.Join(b.workspace, "big"), 10))
	if n, err := io.Copy(io.Discard, tr); err != nil || n != smallFile+100 {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if h, err := tr.Next(); err != nil || h.Name != "z" {
		t.Errorf("next is %v, %v", h, err)
	}
	_, err := io.Copy(io.Discard, pr)
	check(t, err)
	if packed := <-done; len(packed.Unsettled) != 1 || packed.Fingerprint != "" {
		t.Errorf("packed %+v, want the file named and no fingerprint", packed)
	}
}
