package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestThePanesOfADashboardReachTheSandbox: a file is edited and saved, a shell is
// typed into and left, and what the healer did is on the timeline.
func TestThePanesOfADashboardReachTheSandbox(t *testing.T) {
	t.Parallel()
	w := deskWorld(t, 31)
	w.ok("create", "--template", "demo", "--name", "api")
	w.ok("exec", "api", "--", "rm parts/menu.txt")
	w.ok("restart", "api") // is healed
	d := w.openDesk(120, 32, "tui", "api", "--pane", "files")
	d.editsAFile()
	d.usesAShell()
	d.press("#")
	d.sees(`Timeline`)
	d.sees(`1 healed without you`)
	d.sees(`api .*p━*✓`)
	d.escape(`Timeline`)
	d.press("q")
	d.restored(0)
	if got := w.ok("exec", "api", "--", "cat parts/hours.txt"); !strings.HasPrefix(got, "never") {
		t.Errorf("the file holds %q", got)
	}
}

func (d *desk) editsAFile() {
	d.sees(`parts/`)
	d.press("/")
	d.typing("parts")
	d.sees(`/parts`)
	d.press("Enter", "Enter") // keeps the filter, opens the directory
	d.sees(`hours\.txt`)
	d.press("/", "C-u")
	d.typing("hours")
	d.press("Enter", "Enter")
	d.sees(`━ \d+ lines?`)
	d.press("e")
	d.sees(`TYPE`)
	d.typing("never ")
	d.sees(`edited, not saved`)
	d.press("C-s")
	d.sees(`saved parts/hours\.txt`)
	d.escape(`TYPE`)
	d.escape(`ctrl\+s|w save`)
}

// usesAShell types only once the shell listens: what comes before would be read
// by the terminal and not by it.
func (d *desk) usesAShell() {
	d.press("5")
	d.sees(`No terminal is open here`)
	d.press("i")
	d.sees(`TERM`)
	d.sees(`(?m)workspace[$#] *$`)
	d.typing("echo mark-$((40+2)); stty size")
	d.press("Enter")
	d.sees(`mark-42`)
	d.sees(`(?m)^\d+ 120\s*$`)
	d.resize(100, 30)
	d.typing("stty size")
	d.press("Enter")
	d.sees(`(?m)^\d+ 100\s*$`)
	d.press("C-]")
	d.sees(`NAV`)
	if b, err := os.ReadFile(filepath.Join(d.dir, "bytes")); err != nil || strings.Contains(string(b), "\x1b]52;") {
		d.w.t.Errorf("the terminal was written to: %v", err)
	}
}
