package enginetest

import (
	"bytes"
	"strings"
	"testing"

	"sbx/engine"
)

var fileCases = []testCase{
	{"FilesAreReadAsTheyWereWritten", readWritten},
	{"ASaveOverAnotherVersionConflicts", staleSave},
	{"DirectoriesAreListed", listDirectory},
	{"WhatIsNotThereIsNotFound", missingFile},
	{"NoNameLeavesTheWorkspace", noEscape},
	{"NoLinkLeavesTheWorkspace", noLinkEscape},
}

func readWritten(t *testing.T, s *suite) {
	contents := map[string][]byte{
		"enginetest-empty":       {},
		"enginetest-bytes":       {0, 0xff, '\n', 0x1b, '[', '2', 'J'},
		"enginetest ünïcode &=?": []byte("a name with everything that a URL must escape"),
		"enginetest-large":       bytes.Repeat([]byte("0123456789abcdef"), 1<<20/16+1),
	}
	for name, data := range contents {
		version, err := engine.Save(s.ctx(t), s.Engine, s.home.ID, name, "", data)
		if err != nil {
			t.Errorf("write %q: %v", name, err)
			continue
		}
		f, err := s.Engine.ReadFile(s.ctx(t), s.home.ID, name)
		if err != nil {
			t.Errorf("read %q: %v", name, err)
			continue
		}
		if !bytes.Equal(f.Data, data) || f.Version != version || f.Size != int64(len(data)) || f.Version == "" {
			t.Errorf("%q came back as %d bytes of version %q, want %d of %q", name, len(f.Data), f.Version, len(data), version)
		}
	}
}

func staleSave(t *testing.T, s *suite) {
	const name = "enginetest-versions"
	one, err := engine.Save(s.ctx(t), s.Engine, s.home.ID, name, "", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := engine.Save(s.ctx(t), s.Engine, s.home.ID, name, one, []byte("two"))
	if err != nil || two == one {
		t.Fatalf("the second version is %q, %v; want another than %q", two, err, one)
	}
	for _, replaces := range []engine.Version{one, ""} {
		_, err := engine.Save(s.ctx(t), s.Engine, s.home.ID, name, replaces, []byte("three"))
		wantCode(t, "a save over version "+string(replaces), err, engine.Conflict)
	}
	if f, err := s.Engine.ReadFile(s.ctx(t), s.home.ID, name); err != nil || string(f.Data) != "two" {
		t.Errorf("the file is %q, %v; want it as it was before the refused saves", f.Data, err)
	}
}

func listDirectory(t *testing.T, s *suite) {
	s.exec(t, engine.Command{Shell: "mkdir -p enginetest-list/sub && printf 12345 > enginetest-list/five"})
	list, err := s.Engine.ReadDir(s.ctx(t), s.home.ID, "enginetest-list")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]engine.FileInfo{}
	for _, fi := range list {
		found[fi.Name] = fi
	}
	if len(list) != 2 || found["five"].Size != 5 || !found["sub"].Mode.IsDir() {
		t.Errorf("the directory has %+v, want a file of 5 bytes and a directory", list)
	}
	root, err := s.Engine.ReadDir(s.ctx(t), s.home.ID, "")
	if err != nil || len(root) == 0 {
		t.Errorf("the root has %+v, %v", root, err)
	}
}

func missingFile(t *testing.T, s *suite) {
	_, err := s.Engine.ReadFile(s.ctx(t), s.home.ID, "enginetest-missing")
	wantCode(t, "read a file that isn't there", err, engine.NotFound)
	_, err = s.Engine.ReadDir(s.ctx(t), s.home.ID, "enginetest-missing")
	wantCode(t, "list a directory that isn't there", err, engine.NotFound)
	_, err = engine.Save(s.ctx(t), s.Engine, s.home.ID, "enginetest-missing", "deadbeef", []byte("x"))
	wantCode(t, "replace a file that isn't there", err, engine.Conflict, engine.NotFound)
}

// escapes are names that no engine follows.
var escapes = []string{
	"../out", "../../etc/passwd", "/etc/passwd", "a/../../out", "./../out", "enginetest-list/../../out", "..", "x/../..",
	"a\x00b", strings.Repeat("../", 40) + "etc/passwd", "/", "/proc/self/environ",
}

func noEscape(t *testing.T, s *suite) {
	for _, name := range escapes {
		_, err := s.Engine.ReadFile(s.ctx(t), s.home.ID, name)
		wantCode(t, "read "+name, err, engine.Invalid, engine.Forbidden, engine.NotFound)
		_, err = s.Engine.ReadDir(s.ctx(t), s.home.ID, name)
		wantCode(t, "list "+name, err, engine.Invalid, engine.Forbidden, engine.NotFound)
		_, err = engine.Save(s.ctx(t), s.Engine, s.home.ID, name, "", []byte("x"))
		wantCode(t, "write "+name, err, engine.Invalid, engine.Forbidden, engine.NotFound)
	}
}

func noLinkEscape(t *testing.T, s *suite) {
	s.exec(t, engine.Command{Shell: "ln -sfn / enginetest-root; ln -sf /etc/passwd enginetest-passwd; ln -sfn .. enginetest-up"})
	for _, name := range []string{"enginetest-passwd", "enginetest-root/etc/passwd", "enginetest-up/enginetest-out"} {
		f, err := s.Engine.ReadFile(s.ctx(t), s.home.ID, name)
		wantCode(t, "read through "+name, err, engine.Invalid, engine.Forbidden, engine.NotFound)
		if len(f.Data) > 0 {
			t.Errorf("read %d bytes through %s", len(f.Data), name)
		}
		_, err = engine.Save(s.ctx(t), s.Engine, s.home.ID, name, "", []byte("x"))
		wantCode(t, "write through "+name, err, engine.Invalid, engine.Forbidden, engine.NotFound, engine.Conflict)
	}
	_, err := s.Engine.ReadDir(s.ctx(t), s.home.ID, "enginetest-root/etc")
	wantCode(t, "list through a link", err, engine.Invalid, engine.Forbidden, engine.NotFound)
}
