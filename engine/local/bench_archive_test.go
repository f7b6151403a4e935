package local

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"sbx/engine"
	"sbx/engine/archive"
	"sbx/engine/driver"
)

// benchTree is a sandbox's workspace of SBX_BENCH_FILES small files (1,000) and
// as many KiB in one that can't be compressed, with the keeper of its archives.
func benchTree(b *testing.B) (driver.Box, *archive.Keeper, engine.Sandbox) {
	b.Helper()
	n := 1000
	if text := os.Getenv("SBX_BENCH_FILES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	from := filepath.Join(b.TempDir(), "tree")
	put := func(name string, data []byte) {
		name = filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for i := range n {
		put(fmt.Sprintf("src/d%03d/f%05d.js", i/100, i), fmt.Appendf(nil, "export const n = %d\n%s", i, bytes.Repeat([]byte("// a line of code\n"), i%150)))
	}
	noise := make([]byte, n<<10)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	put("noise", noise)
	cfg := config(b, openDir(b), "none")
	b.Cleanup(func() { cfg.Driver.Close() })
	sb := engine.Sandbox{ID: "sb-bench", Name: "bench"}
	box, err := cfg.Driver.Boot(b.Context(), driver.Boot{ID: sb.ID, Origin: engine.Origin{Kind: engine.FromCopy, Ref: from}})
	if err != nil {
		b.Fatal(err)
	}
	k := &archive.Keeper{Dir: filepath.Join(cfg.Dir, "archives")}
	if err := k.Open(); err != nil {
		b.Fatal(err)
	}
	return box, k, sb
}

// touch changes one file of the workspace, so that it has to be archived.
func touch(b *testing.B, box driver.Box) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(box.Location(), "src/d000/f00000.js"), fmt.Append(nil, b.N), 0o644); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkArchive is a changed workspace archived, checksummed and synced.
func BenchmarkArchive(b *testing.B) {
	box, k, sb := benchTree(b)
	for b.Loop() {
		b.StopTimer()
		touch(b, box)
		b.StartTimer()
		if _, wrote, err := k.Save(b.Context(), sb, box.Archives()); err != nil || !wrote {
			b.Fatalf("written %v, %v", wrote, err)
		}
	}
}

// BenchmarkArchiveUnchanged is the second archive of the same.
func BenchmarkArchiveUnchanged(b *testing.B) {
	box, k, sb := benchTree(b)
	wait(b, "files old enough to be told apart", func() bool {
		_, wrote, err := k.Save(b.Context(), sb, box.Archives())
		if err != nil {
			b.Fatal(err)
		}
		return !wrote
	})
	for b.Loop() {
		if _, wrote, err := k.Save(b.Context(), sb, box.Archives()); err != nil || wrote {
			b.Fatalf("written %v, %v", wrote, err)
		}
	}
}

// BenchmarkArchiveRestore puts a workspace in the place of another.
func BenchmarkArchiveRestore(b *testing.B) {
	box, k, sb := benchTree(b)
	if _, _, err := k.Save(b.Context(), sb, box.Archives()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := k.Restore(b.Context(), sb.ID, box.Archives(), ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFloorTar is what a shell does: tar, zstd at its fastest, synced.
func BenchmarkFloorTar(b *testing.B) {
	box, k, _ := benchTree(b)
	for b.Loop() {
		b.StopTimer()
		touch(b, box)
		b.StartTimer()
		shell(b, `tar -C "$1" -cf - . | zstd -1 -q -T0 -f -o "$2/x" && sync "$2/x"`, box.Location(), k.Dir)
	}
}

// BenchmarkFloorUntar is the way back: laid out, synced, and what was there
// deleted.
func BenchmarkFloorUntar(b *testing.B) {
	box, k, _ := benchTree(b)
	shell(b, `tar -C "$1" -cf - . | zstd -1 -q -T0 -f -o "$2/x" && mkdir "$2/old"`, box.Location(), k.Dir)
	for b.Loop() {
		shell(b, `cd "$1" && mkdir new && zstd -dqc x | tar -C new -xf - && sync -f new && rm -r old && mv new old`, k.Dir)
	}
}

func shell(b *testing.B, script string, args ...string) {
	b.Helper()
	if out, err := exec.Command("bash", append([]string{"-ec", "set -o pipefail; " + script, "bash"}, args...)...).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s (the floor needs tar and zstd)", err, out)
	}
}
