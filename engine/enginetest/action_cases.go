package enginetest

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

var actionCases = []testCase{
	{"AnActionIsDoneOnce", actionOnce},
	{"AReceiptCoversItsEffect", receiptCovers},
	{"AnActionOnAStaleRowConflicts", staleRow},
	{"NamesAreUniqueAndVisible", names},
	{"StopMakesItColdAndStartBringsItBack", stopAndStart},
	{"RestartStartsTheAppAgain", restart},
	{"MaintenanceIsSetAndEnded", maintenance},
	{"RemoveForgetsASandbox", removeForgets},
	{"UnknownIDsAreNotFound", unknownIDs},
}

func actionOnce(t *testing.T, s *suite) {
	a := engine.NewAction(engine.CreateSandbox{Name: "made once", Origin: s.Origin})
	first, err := s.Engine.Do(s.ctx(t), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.remove(t, first.Sandbox) })
	again, err := s.Engine.Do(s.ctx(t), a)
	if err != nil {
		t.Fatalf("the same action again: %v", err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the receipt of the same action (-first +again):\n%s", diff)
	}
	if first.Action != a.ID || first.Sandbox == "" {
		t.Errorf("the receipt is %+v, want the action's id and the sandbox", first)
	}
}

func receiptCovers(t *testing.T, s *suite) {
	r := s.do(t, engine.KeepSandbox{Sandbox: s.home.ID, Keep: false})
	defer s.do(t, engine.KeepSandbox{Sandbox: s.home.ID, Keep: true})
	snap := s.snapshot(t)
	if snap.Position.Epoch != r.Position.Epoch || snap.Position.Seq < r.Position.Seq {
		t.Errorf("the snapshot at %s is older than the receipt at %s", snap.Position, r.Position)
	}
	if sb := snap.Sandboxes[s.home.ID]; sb.Keep || sb.Seq > r.Position.Seq {
		t.Errorf("kept %t at %d, want the effect at or before the receipt's %s", sb.Keep, sb.Seq, r.Position)
	}
}

func staleRow(t *testing.T, s *suite) {
	seen := s.snapshot(t).Sandboxes[s.home.ID].Seq
	s.do(t, engine.KeepSandbox{Sandbox: s.home.ID, Keep: false})
	defer s.do(t, engine.KeepSandbox{Sandbox: s.home.ID, Keep: true})
	a := engine.NewAction(engine.SetMaintenance{Sandbox: s.home.ID, On: true})
	a.IfSeq = seen
	_, err := s.Engine.Do(s.ctx(t), a)
	wantCode(t, "an action on what was seen before a change", err, engine.Conflict)
	now := s.snapshot(t).Sandboxes[s.home.ID]
	if now.Maintenance.On {
		t.Error("it was refused, and done")
	}
	a = engine.NewAction(engine.KeepSandbox{Sandbox: s.home.ID, Keep: true})
	a.IfSeq = now.Seq
	if _, err := s.Engine.Do(s.ctx(t), a); err != nil {
		t.Errorf("an action on the row as it is: %v", err)
	}
}

func names(t *testing.T, s *suite) {
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.CreateSandbox{Name: s.home.Name, Origin: s.Origin}))
	wantCode(t, "a name that is taken", err, engine.Conflict)
	_, err = s.Engine.Do(s.ctx(t), engine.NewAction(engine.CreateSandbox{Name: "esc\x1b[2J", Origin: s.Origin}))
	wantCode(t, "a name with an escape sequence", err, engine.Invalid)
}

func stopAndStart(t *testing.T, s *suite) {
	sb := s.ready(t, engine.CreateSandbox{Name: "down and up"})
	s.do(t, engine.StopSandbox{Sandbox: sb.ID})
	s.until(t, "be cold", sb.ID, func(sb engine.Sandbox, snap *engine.Snapshot) bool {
		return sb.State == engine.Cold && !snap.App(sb.ID).State.Alive()
	})
	s.do(t, engine.StartSandbox{Sandbox: sb.ID})
	s.until(t, "be ready again", sb.ID, func(sb engine.Sandbox, snap *engine.Snapshot) bool {
		return sb.Health == engine.Ready && snap.App(sb.ID).State == engine.ProcessRunning
	})
}

func restart(t *testing.T, s *suite) {
	before := s.snapshot(t).App(s.home.ID)
	s.do(t, engine.RestartApp{Sandbox: s.home.ID})
	s.until(t, "be ready after a restart", s.home.ID, func(sb engine.Sandbox, snap *engine.Snapshot) bool {
		app := snap.App(sb.ID)
		return app.Starts > before.Starts && app.State == engine.ProcessRunning && sb.Health == engine.Ready
	})
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.RestartApp{Sandbox: s.home.ID, Process: "nobody"}))
	wantCode(t, "restart a process that isn't there", err, engine.NotFound)
}

func maintenance(t *testing.T, s *suite) {
	s.do(t, engine.SetMaintenance{Sandbox: s.home.ID, On: true, Reason: "a test"})
	if m := s.snapshot(t).Sandboxes[s.home.ID].Maintenance; !m.On || m.Reason != "a test" {
		t.Errorf("maintenance is %+v, want it on, with its reason", m)
	}
	s.do(t, engine.SetMaintenance{Sandbox: s.home.ID, On: false})
	if m := s.snapshot(t).Sandboxes[s.home.ID].Maintenance; m.On {
		t.Errorf("maintenance is %+v, want it over", m)
	}
}

func removeForgets(t *testing.T, s *suite) {
	sb := s.ready(t, engine.CreateSandbox{Name: "to be removed"})
	s.do(t, engine.RemoveSandbox{Sandbox: sb.ID})
	s.until(t, "be gone", sb.ID, func(gone engine.Sandbox, snap *engine.Snapshot) bool {
		return gone.ID == "" && len(snap.Of(sb.ID)) == 0
	})
	_, err := s.Engine.ReadDir(s.ctx(t), sb.ID, "")
	wantCode(t, "its files", err, engine.NotFound)
}

// aboutNobody are actions on what isn't there.
func aboutNobody(sb engine.SandboxID, ps engine.ProcessID) []engine.ActionBody {
	return []engine.ActionBody{
		engine.ApplySpec{Sandbox: sb, SpecTOML: crashingSpec},
		engine.StartSandbox{Sandbox: sb},
		engine.StopSandbox{Sandbox: sb},
		engine.RestartApp{Sandbox: sb},
		engine.RemoveSandbox{Sandbox: sb},
		engine.KeepSandbox{Sandbox: sb},
		engine.SetMaintenance{Sandbox: sb},
		engine.StartHeal{Sandbox: sb},
		engine.CancelHeal{Sandbox: sb},
		engine.ApplyPlan{Sandbox: sb},
		engine.NoteHeal{Sandbox: sb, Text: "a"},
		engine.WatchIncident{Incident: "in-aaaaaaaaaa"},
		engine.Spawn{Sandbox: sb, Command: engine.Command{Shell: "true"}},
		engine.OpenTerminal{Sandbox: sb},
		engine.KillProcess{Process: ps},
		engine.WriteFile{Sandbox: sb, Name: "a"},
		engine.MakeDir{Sandbox: sb, Name: "a"},
		engine.RenameFile{Sandbox: sb, From: "a", To: "b"},
		engine.RemoveFile{Sandbox: sb, Name: "a"},
		engine.PlaceFile{Sandbox: sb, Name: "a", Upload: "up-aaaaaaaaaa"},
		engine.SaveCheckpoint{Sandbox: sb},
		engine.RestoreCheckpoint{Sandbox: sb},
		engine.RollBack{Sandbox: sb},
		engine.Undo{Sandbox: sb},
		engine.SaveArchive{Sandbox: sb},
		engine.RestoreArchive{Sandbox: sb},
		engine.RemoveArchive{Sandbox: sb},
		engine.Say{Sandbox: sb, Text: "hello"},
		engine.StopChat{Sandbox: sb},
		engine.AnswerApproval{Message: "ms-aaaaaaaaaa", Answer: engine.AnswerNo},
		engine.IssueKey{Sandbox: sb},
		engine.RevokeKey{Key: "vk-aaaaaaaaaa"},
		engine.ExecSession{Session: "se-aaaaaaaaaa", Command: engine.Command{Shell: "true"}},
		engine.PauseSession{Session: "se-aaaaaaaaaa"},
		engine.ResumeSession{Session: "se-aaaaaaaaaa"},
		engine.EndSession{Session: "se-aaaaaaaaaa"},
	}
}

func unknownSubjects(t *testing.T, s *suite, sb engine.SandboxID, ps engine.ProcessID) {
	actions := aboutNobody(sb, ps)
	want := 0
	for _, e := range engine.ActionTable {
		if strings.Contains(e.Path, "{id}") {
			want++
		}
	}
	if len(actions) != want {
		t.Errorf("%d kinds of actions are tried, want all %d that have a subject", len(actions), want)
	}
	for _, body := range actions {
		_, err := s.Engine.Do(s.ctx(t), engine.NewAction(body))
		wantCode(t, engine.EntryOf(body).Kind, err, engine.NotFound)
	}
}

// unknownIDs: what isn't there is NotFound by every way to ask for it.
func unknownIDs(t *testing.T, s *suite) {
	const sb, ps = engine.SandboxID("sb-aaaaaaaaaa"), engine.ProcessID("ps-aaaaaaaaaa")
	unknownSubjects(t, s, sb, ps)
	reads := map[string]func(ctx context.Context) error{
		"checkpoints": func(ctx context.Context) error { _, err := s.Engine.Checkpoints(ctx, sb); return err },
		"diff":        func(ctx context.Context) error { _, err := s.Engine.Diff(ctx, sb, "cp-aaaaaaaaaa", ""); return err },
		"diff of an unknown checkpoint": func(ctx context.Context) error {
			_, err := s.Engine.Diff(ctx, s.home.ID, "cp-aaaaaaaaaa", "cp-bbbbbbbbbb")
			return err
		},
		"process":   func(ctx context.Context) error { _, err := s.Engine.ProcessByID(ctx, ps); return err },
		"processes": func(ctx context.Context) error { _, err := s.Engine.ListProcesses(ctx, sb); return err },
		"pipe":      func(ctx context.Context) error { _, err := s.Engine.Pipe(ctx, ps, 0); return err },
		"directory": func(ctx context.Context) error { _, err := s.Engine.ReadDir(ctx, sb, ""); return err },
		"file":      func(ctx context.Context) error { _, err := s.Engine.ReadFile(ctx, sb, "a"); return err },
		"content":   func(ctx context.Context) error { _, _, err := s.Engine.OpenFile(ctx, sb, "a", 0); return err },
		"upload": func(ctx context.Context) error {
			_, err := s.Engine.Upload(ctx, sb, strings.NewReader("a"))
			return err
		},
		"archives": func(ctx context.Context) error { _, err := s.Engine.Archives(ctx, sb); return err },
		"find": func(ctx context.Context) (last error) {
			for _, last = range s.Engine.Find(ctx, engine.FindQuery{Sandbox: sb}) {
			}
			return last
		},
		"logs": func(ctx context.Context) (last error) {
			for _, last = range s.Engine.Logs(ctx, engine.LogQuery{Sandbox: sb}) {
			}
			return last
		},
		"logs of an unknown process": func(ctx context.Context) (last error) {
			for _, last = range s.Engine.Logs(ctx, engine.LogQuery{Sandbox: s.home.ID, Process: string(ps), Follow: true}) {
			}
			return last
		},
	}
	for name, read := range reads {
		wantCode(t, name, read(s.ctx(t)), engine.NotFound)
	}
}
