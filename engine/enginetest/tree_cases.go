package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"sbx/engine"
)

var treeCases = []testCase{
	{"LargeFilesAreStreamedBothWays", streamLarge},
	{"AnUploadIsPutAtItsPlaceOnce", placeOnce},
	{"DirectoriesGoBothWaysAsTars", trees},
	{"EntriesAreMadeRenamedAndDeleted", entries},
	{"FilesAreFoundByNameAndText", find},
	{"NoActionOnFilesLeavesTheWorkspace", noActionEscapes},
	{"AChangeOfFilesIsUndoneAndRedone", undoChange},
	{"CheckpointsAreSavedAndRestored", checkpoints},
	{"AnArchiveBringsAWorkspaceBack", archives},
}

// upload brings data, and puts it at its place.
func (s *suite) upload(t *testing.T, body engine.PlaceFile, data []byte) engine.Receipt {
	t.Helper()
	up, err := s.Engine.Upload(s.ctx(t), s.home.ID, bytes.NewReader(data))
	if err != nil {
		t.Fatalf("upload: %v", err)
	}
	body.Sandbox, body.Upload = s.home.ID, up
	return s.do(t, body)
}

// content is a file from offset on.
func (s *suite) content(t *testing.T, name string, offset int64) (engine.File, []byte) {
	t.Helper()
	f, r, err := s.Engine.OpenFile(s.ctx(t), s.home.ID, name, offset)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return f, b
}

func streamLarge(t *testing.T, s *suite) {
	large := bytes.Repeat([]byte("0123456789abcdef"), engine.MaxFile/16+7)
	r := s.upload(t, engine.PlaceFile{Name: "enginetest-stream/large", Mode: 0o755}, large)
	f, got := s.content(t, "enginetest-stream/large", 0)
	if !bytes.Equal(got, large) || f.Size != int64(len(large)) || f.Version != r.Version || f.Version == "" {
		t.Errorf("it came back as %d bytes of %q (said to be %d), want %d of %q", len(got), f.Version, f.Size, len(large), r.Version)
	}
	if _, got := s.content(t, "enginetest-stream/large", int64(len(large)-3)); string(got) != "def" {
		t.Errorf("its end is %q", got)
	}
	if _, got := s.content(t, "enginetest-stream/large", int64(len(large)+3)); len(got) != 0 {
		t.Errorf("behind its end is %q", got)
	}
	_, err := s.Engine.ReadDir(s.ctx(t), s.home.ID, "enginetest-stream")
	if err != nil {
		t.Error(err)
	}
}

func placeOnce(t *testing.T, s *suite) {
	s.upload(t, engine.PlaceFile{Name: "enginetest-place"}, []byte("one"))
	up, err := s.Engine.Upload(s.ctx(t), s.home.ID, strings.NewReader("two"))
	if err != nil {
		t.Fatal(err)
	}
	place := engine.PlaceFile{Sandbox: s.home.ID, Name: "enginetest-place", Upload: up}
	_, err = s.Engine.Do(s.ctx(t), engine.NewAction(place))
	wantCode(t, "an upload over a file that is there", err, engine.Conflict, engine.NotFound)
	s.upload(t, engine.PlaceFile{Name: "enginetest-place", Overwrite: true}, []byte("three"))
	if _, got := s.content(t, "enginetest-place", 0); string(got) != "three" {
		t.Errorf("the file is %q", got)
	}
	for _, id := range []engine.UploadID{"", "up-aaaaaaaaaa", "../../etc/passwd", "up-../x"} {
		place.Upload = id
		_, err = s.Engine.Do(s.ctx(t), engine.NewAction(place))
		wantCode(t, "the upload "+string(id), err, engine.NotFound, engine.Invalid)
	}
}

func trees(t *testing.T, s *suite) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, data := range map[string]string{"a": "1", "sub/b": "2", "sub/ünï": "3"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, data) // into memory
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.upload(t, engine.PlaceFile{Name: "enginetest-tree", Tree: true}, b.Bytes())
	f, got := s.content(t, "enginetest-tree", 0)
	if !f.Mode.IsDir() {
		t.Errorf("the directory's mode is %s", f.Mode)
	}
	found := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(got)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(r) // from memory
		if h.Typeflag == tar.TypeReg {
			found[h.Name] = string(data)
		}
	}
	if len(found) != 3 || found["a"] != "1" || found["sub/b"] != "2" || found["sub/ünï"] != "3" {
		t.Errorf("the tree came back as %q", found)
	}
}

func entries(t *testing.T, s *suite) {
	ctx := s.ctx(t)
	id := s.home.ID
	s.do(t, engine.MakeDir{Sandbox: id, Name: "enginetest-entries/deep"})
	if r := s.do(t, engine.MakeDir{Sandbox: id, Name: "enginetest-entries/deep"}); r.Note == "" {
		t.Error("a directory was made twice, and nothing said")
	}
	if _, err := engine.Save(ctx, s.Engine, id, "enginetest-entries/deep/a", "", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Save(ctx, s.Engine, id, "enginetest-entries/b", "", []byte("b")); err != nil {
		t.Fatal(err)
	}
	rename := engine.RenameFile{Sandbox: id, From: "enginetest-entries/deep/a", To: "enginetest-entries/b"}
	_, err := s.Engine.Do(ctx, engine.NewAction(rename))
	wantCode(t, "a rename over a file", err, engine.Conflict)
	rename.Overwrite = true
	s.do(t, rename)
	if f, err := s.Engine.ReadFile(ctx, id, "enginetest-entries/b"); err != nil || string(f.Data) != "a" {
		t.Errorf("the renamed file is %q, %v", f.Data, err)
	}
	rename.From, rename.To = "enginetest-entries/missing", "enginetest-entries/c"
	_, err = s.Engine.Do(ctx, engine.NewAction(rename))
	wantCode(t, "a rename of nothing", err, engine.NotFound)
	_, err = s.Engine.Do(ctx, engine.NewAction(engine.RemoveFile{Sandbox: id, Name: "enginetest-entries"}))
	wantCode(t, "deleting a directory with something in it", err, engine.Conflict)
	s.do(t, engine.RemoveFile{Sandbox: id, Name: "enginetest-entries", Recursive: true})
	_, err = s.Engine.ReadDir(ctx, id, "enginetest-entries")
	wantCode(t, "the deleted directory", err, engine.NotFound)
	_, err = s.Engine.Do(ctx, engine.NewAction(engine.RemoveFile{Sandbox: id, Name: "enginetest-entries"}))
	wantCode(t, "deleting nothing", err, engine.NotFound)
}

func find(t *testing.T, s *suite) {
	ctx := s.ctx(t)
	for name, data := range map[string]string{"one.txt": "x\nneedle 1\ny\nneedle 2", "two.md": "needle 3\n", "bin.txt": "needle\x00"} {
		if _, err := engine.Save(ctx, s.Engine, s.home.ID, "enginetest-find/"+name, "", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	q := engine.FindQuery{Sandbox: s.home.ID, Name: "one.txt", Text: "needle"}
	lines := func() (list []engine.Found) {
		for f, err := range s.Engine.Find(ctx, q) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, f)
		}
		return list
	}
	all := lines()
	if len(all) != 2 || all[0].Text != "needle 1" || all[1].Line != 4 || all[0].Name != "enginetest-find/one.txt" {
		t.Errorf("found %+v", all)
	}
	q.After = all[0].FindPosition
	if rest := lines(); len(rest) != 1 || rest[0] != all[1] {
		t.Errorf("after the first: %+v", rest)
	}
	q = engine.FindQuery{Sandbox: s.home.ID, Name: "two.md"}
	if files := lines(); len(files) != 1 || files[0].Size != 9 {
		t.Errorf("by name: %+v", files)
	}
}

func noActionEscapes(t *testing.T, s *suite) {
	ctx := s.ctx(t)
	if _, err := engine.Save(ctx, s.Engine, s.home.ID, "enginetest-stays", "", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, name := range escapes {
		for _, body := range []engine.ActionBody{
			engine.MakeDir{Sandbox: s.home.ID, Name: name},
			engine.RemoveFile{Sandbox: s.home.ID, Name: name, Recursive: true},
			engine.RenameFile{Sandbox: s.home.ID, From: name, To: "enginetest-in"},
			engine.RenameFile{Sandbox: s.home.ID, From: "enginetest-stays", To: name, Overwrite: true},
		} {
			_, err := s.Engine.Do(ctx, engine.NewAction(body))
			wantCode(t, engine.EntryOf(body).Kind+" "+name, err, engine.Invalid, engine.Forbidden, engine.NotFound)
		}
		if _, r, err := s.Engine.OpenFile(ctx, s.home.ID, name, 0); err == nil {
			r.Close()
			t.Errorf("%q was opened", name)
		}
	}
}

// undoChange: an action on files is undone, and the undo too.
func undoChange(t *testing.T, s *suite) {
	ctx := s.ctx(t)
	const name = "enginetest-undo"
	v, err := engine.Save(ctx, s.Engine, s.home.ID, name, "", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = engine.Save(ctx, s.Engine, s.home.ID, name, v, []byte("two")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"one", "two", "one"} {
		s.do(t, engine.Undo{Sandbox: s.home.ID})
		if f, err := s.Engine.ReadFile(ctx, s.home.ID, name); err != nil || string(f.Data) != want {
			t.Fatalf("after undo %d the file is %q, %v; want %q", i+1, f.Data, err, want)
		}
	}
}

func checkpoints(t *testing.T, s *suite) {
	ctx := s.ctx(t)
	const name = "enginetest-checkpoint"
	v, err := engine.Save(ctx, s.Engine, s.home.ID, name, "", []byte("good"))
	if err != nil {
		t.Fatal(err)
	}
	cp := s.do(t, engine.SaveCheckpoint{Sandbox: s.home.ID, Note: "by hand"}).Checkpoint
	if _, err := engine.Save(ctx, s.Engine, s.home.ID, name, v, []byte("bad")); err != nil {
		t.Fatal(err)
	}
	d, err := s.Engine.Diff(ctx, s.home.ID, cp, "")
	if err != nil || len(d.Changes) != 1 || d.Changes[0].Path != name || d.Changes[0].Status != engine.Modified {
		t.Errorf("the difference is %+v, %v", d.Changes, err)
	}
	s.do(t, engine.RestoreCheckpoint{Sandbox: s.home.ID, Checkpoint: cp})
	if f, err := s.Engine.ReadFile(ctx, s.home.ID, name); err != nil || string(f.Data) != "good" {
		t.Errorf("the restored file is %q, %v", f.Data, err)
	}
	list, err := s.Engine.Checkpoints(ctx, s.home.ID)
	if err != nil || len(list) < 2 || list[0].Change == nil {
		t.Fatalf("the checkpoints are %+v, %v; want the newest to be of the restore", list, err)
	}
	for _, id := range []engine.CheckpointID{"cp-aaaaaaaaaa", "x"} {
		_, err := s.Engine.Do(context.WithoutCancel(ctx), engine.NewAction(engine.RestoreCheckpoint{Sandbox: s.home.ID, Checkpoint: id}))
		wantCode(t, "a checkpoint that isn't there", err, engine.NotFound)
	}
}

func archives(t *testing.T, s *suite) {
	ctx := s.ctx(t)
	// Kept: the pool archives what is not when it goes down.
	sb := s.ready(t, engine.CreateSandbox{Name: "archived", Keep: true})
	v, err := engine.Save(ctx, s.Engine, sb.ID, "kept", "", []byte("as archived"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Engine.Do(ctx, engine.NewAction(engine.RemoveArchive{Sandbox: sb.ID}))
	wantCode(t, "delete an archive that isn't there", err, engine.NotFound)
	s.do(t, engine.SaveArchive{Sandbox: sb.ID})
	list, err := s.Engine.Archives(ctx, sb.ID)
	if err != nil || len(list) != 1 || !list[0].Local || list[0].Size == 0 || len(list[0].SHA256) != 64 {
		t.Fatalf("the archives are %+v, %v", list, err)
	}
	if _, err := engine.Save(ctx, s.Engine, sb.ID, "kept", v, []byte("changed")); err != nil {
		t.Fatal(err)
	}
	_, err = s.Engine.Do(ctx, engine.NewAction(engine.RestoreArchive{Sandbox: sb.ID}))
	wantCode(t, "a restore under a sandbox that is up", err, engine.Conflict)
	s.do(t, engine.StopSandbox{Sandbox: sb.ID})
	s.until(t, "be cold", sb.ID, func(sb engine.Sandbox, snap *engine.Snapshot) bool {
		return sb.State == engine.Cold && !snap.App(sb.ID).State.Alive()
	})
	s.do(t, engine.RestoreArchive{Sandbox: sb.ID})
	if f, err := s.Engine.ReadFile(ctx, sb.ID, "kept"); err != nil || string(f.Data) != "as archived" {
		t.Errorf("the restored file is %q, %v", f.Data, err)
	}
	s.do(t, engine.RemoveArchive{Sandbox: sb.ID})
	if list, err := s.Engine.Archives(ctx, sb.ID); err != nil || len(list) != 0 {
		t.Errorf("after it was deleted: %+v, %v", list, err)
	}
}
