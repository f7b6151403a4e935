package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

func seedFiles(f *fakeEngine) {
	f.files = map[string]string{
		"src/agents/weather.ts": "import { Agent } from 'x';\nexport const port = 4111;\n",
		"src/db.ts":             "connect(4111)\n",
		"package.json":          "{\n  \"name\": \"shop\"\n}\n",
		".env":                  "PORT=4111\n",
		"logo.png":              "\x89PNG\x00\x01",
	}
	f.points = []engine.Checkpoint{{ID: "cp-good", Good: true, Created: f.snap.Sandboxes[seedID(3)].Created.Add(time.Hour)}}
	f.patch = engine.Diff{
		Changes: []engine.Change{{Path: "src/db.ts", Status: engine.Modified}},
		Patch:   "diff --git a/src/db.ts b/src/db.ts\n--- a/src/db.ts\n+++ b/src/db.ts\n@@ -1 +1 @@\n-connect(4000)\n+connect(4111)\n",
	}
}

func onFiles(t *testing.T, width int, edit func(*Config), f func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(14 * time.Hour)
		fake := seeded(40, time.Now())
		seedFiles(fake)
		d := liveDesk(t, fake, width, 32, edit)
		d.press("4")
		f(d)
	})
}

func TestTheTreeOpensAndShowsWhatChanged(t *testing.T) {
	for _, width := range []int{160, 120, 80, 60} {
		onFiles(t, width, nil, func(d *desk) {
			d.sees("src/")
			d.sees("package.json")
			d.misses("db.ts")
			d.press("enter")
			d.sees("db.ts")
			d.press("j", "j") // agents/, db.ts
			d.press("enter")
			d.sees("connect(4111)")
			d.press("v")
			d.sees("- connect(4000)")
			d.fits()
			d.press("esc", "esc")
			d.sees("M")
			d.press(".")
			d.misses(".env")
			d.fits()
		})
	}
}

func TestAFileIsEditedAndSavedOverWhatWasRead(t *testing.T) {
	onFiles(t, 120, nil, func(d *desk) {
		d.press("/")
		d.text("package")
		d.press("enter", "enter", "e")
		d.sees(" TYPE ")
		d.text("HRS ")
		d.sees("edited, not saved")
		d.press("esc", "w")
		if got := d.fake.files["package.json"]; !strings.HasPrefix(got, "HRS {\n") || !strings.HasSuffix(got, "\n}\n") {
			t.Errorf("the file is %q", got)
		}
		d.sees("saved package.json")
		d.press("esc")
		if d.files().edit != nil {
			t.Error("Esc did not leave the editor, with nothing unsaved")
		}
	})
}

func TestAFileThatChangedMeanwhileIsNotOverwrittenUnasked(t *testing.T) {
	onFiles(t, 120, nil, func(d *desk) {
		d.press("/")
		d.text("package")
		d.press("enter", "enter", "e")
		d.text("mine")
		d.fake.files["package.json"] = "theirs"
		d.press("esc", "w")
		d.sees("changed since you opened it")
		if got := d.fake.files["package.json"]; got != "theirs" {
			t.Fatalf("the file is %q", got)
		}
		d.later(time.Second)
		d.press("o")
		if got := d.fake.files["package.json"]; !strings.HasPrefix(got, "mine{") {
			t.Errorf("the file is %q", got)
		}
	})
}

func TestUnsavedWorkIsAskedAboutAndKeptWhileLookingElsewhere(t *testing.T) {
	onFiles(t, 120, nil, func(d *desk) {
		d.press("/")
		d.text("package")
		d.press("enter", "enter", "e")
		d.text("mine")
		d.press("esc", "}", "{")
		d.sees("edited, not saved")
		d.press("esc")
		d.sees("unsaved?")
		d.later(time.Second)
		d.press("esc")
		if d.files().edit == nil {
			t.Fatal("Esc threw away what was typed")
		}
		d.press("esc")
		d.later(time.Second)
		d.press("y")
		if d.files().edit != nil {
			t.Error("y did not throw it away")
		}
	})
}

func TestATextIsFoundInAllFiles(t *testing.T) {
	onFiles(t, 120, nil, func(d *desk) {
		d.press("&")
		d.text("4111")
		d.press("enter")
		d.sees("1 of 3")
		d.press("j", "enter")
		d.sees("export const port = 4111;")
		d.press("esc", "esc")
		d.sees("package.json")
	})
}

func TestFilesAreMadeRenamedDeletedAndUndone(t *testing.T) {
	id := seedID(3)
	onFiles(t, 120, nil, func(d *desk) {
		d.press("a")
		d.text("notes.md")
		d.press("enter")
		d.press("a")
		d.text("x/")
		d.press("enter")
		d.press("c")
		d.press("backspace", "backspace", "backspace")
		d.text("lib")
		d.press("enter")
		d.press("d")
		d.later(time.Second)
		d.text("src")
		d.press("enter")
		d.press("u")
		d.later(time.Second)
		d.press("y")
		d.asked(
			engine.WriteFile{Sandbox: id, Name: "src/notes.md"}, engine.MakeDir{Sandbox: id, Name: "src/x"},
			engine.RenameFile{Sandbox: id, From: "src", To: "lib"}, engine.RemoveFile{Sandbox: id, Name: "src", Recursive: true},
			engine.Undo{Sandbox: id},
		)
	})
}

func TestABinaryFileIsToldAndDownloaded(t *testing.T) {
	dir := t.TempDir()
	onFiles(t, 120, nil, func(d *desk) {
		d.press("/")
		d.text("logo")
		d.press("enter", "enter")
		d.sees("not text")
		d.press("e")
		d.sees("only text of at most 1 MB")
		d.press(">")
		d.sees("logo.png")
		for range len("logo.png") {
			d.press("backspace")
		}
		d.text(filepath.Join(dir, "l"))
		d.press("enter")
		d.sees("saved as")
	})
	if b, err := os.ReadFile(filepath.Join(dir, "l")); err != nil || string(b) != "\x89PNG\x00\x01" {
		t.Errorf("it has %q, %v", b, err)
	}
}

func TestAViewerCantChangeFiles(t *testing.T) {
	onFiles(t, 120, func(c *Config) { c.ReadOnly = "your token may only read" }, func(d *desk) {
		for _, k := range []string{"a", "c", "d", "u", "e", "<"} {
			d.press(k)
			d.sees(k + ": your token may only read")
		}
		d.asked()
	})
}

func TestHostileFileNamesAndContentDrawOnlyCells(t *testing.T) {
	onFiles(t, 120, nil, func(d *desk) {
		d.fake.files["\x1b]52;c;aGk=\x07\u202e漢字.txt"] = "\x1b[2J\x9b31m" + strings.Repeat("漢\u0301", 200) + "\n"
		d.press("r", "/")
		d.text("txt")
		d.press("enter", "enter")
		for _, width := range []int{160, 120, 80, 60} {
			d.send(tea.WindowSizeMsg{Width: width, Height: 24})
			d.fits()
		}
	})
}

func TestAnEngineOutOfReachIsSaidInTheTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(3, time.Now())
		d := liveDesk(t, fake, 120, 32, nil)
		fake.away = engine.Errorf(engine.Unavailable, "no route to host")
		d.press("4")
		d.sees("no route to host")
		fake.away = nil
		seedFiles(fake)
		d.press("r")
		d.sees("package.json")
	})
}
