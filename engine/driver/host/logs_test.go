//go:build linux

package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sbx/engine"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/host"
	"sbx/engine/logs"
)

// meddling are ways to take back what was said, or to make more of it than was
// said. Each is run between two lines, which must be there at the end.
var meddling = []string{
	": > /dev/stderr", ": > /dev/stdout", ": > /proc/self/fd/1", "truncate -s 0 /proc/self/fd/1", "truncate -s 1T /dev/stdout",
	"dd if=/dev/zero of=/proc/self/fd/1 bs=1 count=0 seek=1000000000", "fallocate -l 1G /proc/self/fd/1",
	"python3 -c 'import os; os.ftruncate(1, 0)'", "python3 -c 'import os; os.pwrite(1, b\"forged\", 0)'", "python3 -c 'import os; os.lseek(1, 0, 0); os.write(1, b\"\")'",
	"python3 -c 'import mmap; mmap.mmap(1, 100)'", "python3 -c 'import fcntl; fcntl.fcntl(1, 1031, 1 << 24)'",
	"timeout 1 head -c 6 /proc/self/fd/1 > taken; [ ! -s taken ] || echo forged",
	"timeout 1 dd if=/proc/$$/fd/1 of=taken bs=6 count=1; [ ! -s taken ] || echo forged",
	"timeout 1 sh -c 'exec 3<> /proc/self/fd/1; head -c 6 <&3 > taken'; [ ! -s taken ] || echo forged",
	"for f in /proc/[0-9]*/fd/1; do timeout 1 head -c 6 $f > taken; [ ! -s taken ] || [ $f != /proc/$$/fd/1 ] || echo forged; done",
	"rm -f /proc/self/fd/1 /dev/stdout", "mv /proc/self/fd/1 x", "ln /proc/self/fd/1 x",
}

func TestNobodyTakesBackWhatItSaid(t *testing.T) {
	each(t, means, func(t *testing.T, isolation string) {
		box := bootBox(t, openHost(t, host.Config{Isolation: isolation}))
		for _, shell := range meddling {
			out := drivertest.NewOutput()
			// Its complaints go elsewhere, but for what it says on purpose.
			p, err := box.Start(await(t), "ps-a", app("echo before; { "+shell+"; } 2> complaints; echo after"), out, drivertest.NewOutput())
			must(t, err)
			exit, err := p.Wait(await(t))
			must(t, err)
			if out.String() != "before\nafter\n" || exit.Code != 0 {
				t.Errorf("%s\nleaves %q, %+v", shell, out, exit)
			}
		}
		// The owner of the pipe of root's engine can't open it either.
		if os.Geteuid() == 0 {
			if text, _ := runIn(t, box, app("chmod 600 /proc/self/fd/1 2> complaints && echo it did")); strings.Contains(text, "it did") {
				t.Error("it changed who may read what it says")
			}
		}
	})
}

// A writer that never stops keeps no more than the bound, and a neighbour's
// lines come through meanwhile.
func TestAFloodKeepsItsBound(t *testing.T) {
	dir := tempDir(t)
	store, err := logs.Open(dir, logs.Options{})
	must(t, err)
	t.Cleanup(func() { store.Close() })
	h := openHost(t, host.Config{})
	box, other := bootBox(t, h), bootBox(t, h)
	w, err := store.Writer("ps-flood", engine.Stdout, true)
	must(t, err)
	p, err := box.Start(await(t), "ps-flood", app("exec yes"), w, nil)
	must(t, err)
	const slowed = 260 << 20 // more than any writer may have at once
	for ctx := await(t); w.Position() < slowed; {
		must(t, ctx.Err())
		proves(t, other)
	}
	must(t, p.Kill(await(t), 0))
	end := w.Position()
	var kept int64
	must(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			fi, err := d.Info()
			must(t, err)
			kept += fi.Size()
		}
		return err
	}))
	if kept > 65<<20 { // and its index
		t.Errorf("%d MiB are kept", kept>>20)
	}
	if end < slowed {
		t.Errorf("it wrote %d bytes", end)
	}
}
