package enginetest

import (
	"context"
	"errors"
	"testing"

	"sbx/engine"
)

var sessionCases = []testCase{
	{"ASessionsCommandHasItsResultAndItsEnvironment", sessionExec},
	{"TwoSessionsHaveSandboxesOfTheirOwn", twoSessions},
	{"APausedSessionIsResumedByItsNextCommand", pauseAndResume},
	{"AnAbortTerminatesTheSandboxAndTheNextCommandHasOne", abortSession},
	{"ARememberedSandboxThatIsGoneIsReplaced", staleSandbox},
	{"AnEndedSessionIsNotFound", endSession},
	{"SessionEventsResumeFromAPosition", sessionEvents},
}

func (s *suite) session(t *testing.T, body engine.CreateSession) engine.Session {
	t.Helper()
	body.Origin = s.Origin
	ss, err := engine.OpenSession(s.ctx(t), s.Engine, body)
	if err != nil {
		t.Fatalf("open a session: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		_, err := s.Engine.Do(ctx, engine.NewAction(engine.EndSession{Session: ss.ID}))
		switch engine.AsCode(err) {
		case "", engine.NotFound, engine.Unavailable:
		default:
			t.Errorf("end %s: %v", ss.ID, err)
		}
	})
	return ss
}

// execIn runs a command in a session, and fails unless it has a result.
func (s *suite) execIn(t *testing.T, id engine.SessionID, remembered engine.SandboxID, command string) engine.SessionExec {
	t.Helper()
	end, err := engine.ExecInSession(s.ctx(t), s.Engine, id, remembered, engine.Command{Shell: command}, engine.SpawnOptions{})
	if err != nil || end.Terminated != "" || end.Sandbox == "" {
		t.Fatalf("%q in %s: %+v, %v, want its result", command, id, end, err)
	}
	return end
}

func sessionExec(t *testing.T, s *suite) {
	ss := s.session(t, engine.CreateSession{Owner: "dana", Env: map[string]string{"GREETING": "hello"}})
	end := s.execIn(t, ss.ID, "", "echo $GREETING; exit 3")
	if end.Stdout != "hello\n" || end.ExitCode != 3 || end.Sandbox != ss.Sandbox {
		t.Errorf("got %+v, want the session's own greeting from %s and the exit code 3", end, ss.Sandbox)
	}
	slow, err := engine.ExecInSession(s.ctx(t), s.Engine, ss.ID, "", engine.Command{Shell: "sleep 600", Timeout: engine.Duration(1e8)}, engine.SpawnOptions{})
	if err != nil || !slow.TimedOut || slow.ExitCode != engine.ExitTimeout {
		t.Errorf("a command with a timeout: %+v, %v, want the timeout's exit", slow, err)
	}
}

func twoSessions(t *testing.T, s *suite) {
	a, b := s.session(t, engine.CreateSession{Name: "a"}), s.session(t, engine.CreateSession{Name: "b"})
	s.execIn(t, a.ID, "", "echo secret > note")
	if end := s.execIn(t, b.ID, "", "cat note"); end.ExitCode == 0 || a.Sandbox == b.Sandbox {
		t.Errorf("one session reads the other's files: %+v", end)
	}
	// A client that switched conversations still holds the other's id.
	end := s.execIn(t, b.ID, a.Sandbox, "echo mine")
	if end.Sandbox != b.Sandbox || end.Stdout != "mine\n" {
		t.Errorf("with the other's id: %+v, want it in %s", end, b.Sandbox)
	}
}

func pauseAndResume(t *testing.T, s *suite) {
	ss := s.session(t, engine.CreateSession{})
	s.execIn(t, ss.ID, "", "echo kept > note")
	s.do(t, engine.PauseSession{Session: ss.ID})
	if now := s.snapshot(t).Sessions[ss.ID]; now.State != engine.SessionPaused || now.Live || now.Reason != engine.EndedByPause {
		t.Errorf("paused it is %+v", now)
	}
	if end := s.execIn(t, ss.ID, ss.Sandbox, "cat note"); end.Stdout != "kept\n" {
		t.Errorf("after the pause: %+v, want its files as they were", end)
	}
	if now := s.snapshot(t).Sessions[ss.ID]; now.State != engine.SessionActive || !now.Live {
		t.Errorf("resumed it is %+v", now)
	}
}

func abortSession(t *testing.T, s *suite) {
	ss := s.session(t, engine.CreateSession{})
	other := s.session(t, engine.CreateSession{})
	s.execIn(t, ss.ID, "", "true")
	began, ended := make(chan struct{}, 1), make(chan engine.SessionExec, 1)
	go func() {
		end, err := engine.ExecInSession(s.ctx(t), s.Engine, ss.ID, "", engine.Command{Shell: "echo began; sleep 600"},
			engine.SpawnOptions{OnStdout: func(engine.LogLine) { began <- struct{}{} }})
		if err != nil {
			t.Errorf("the aborted command: %v", err)
		}
		ended <- end
	}()
	s.await(t, "the command to begin", began)
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.PauseSession{Session: ss.ID}))
	wantCode(t, "pausing a session that works", err, engine.Conflict)
	s.do(t, engine.PauseSession{Session: ss.ID, Abort: true})
	if end := await(t, s, "the aborted command to end", ended); end.Terminated != engine.EndedByAbort {
		t.Errorf("the aborted command ended with %+v, want it terminated by the abort", end)
	}
	if end := s.execIn(t, ss.ID, ss.Sandbox, "echo again"); end.Stdout != "again\n" {
		t.Errorf("the next command: %+v", end)
	}
	if now := s.snapshot(t).Sessions[other.ID]; now.Sandbox != other.Sandbox || now.State != engine.SessionActive {
		t.Errorf("the other session is %+v, want it left alone", now)
	}
}

func staleSandbox(t *testing.T, s *suite) {
	ss := s.session(t, engine.CreateSession{})
	s.execIn(t, ss.ID, "", "true")
	s.do(t, engine.RemoveSandbox{Sandbox: ss.Sandbox})
	end := s.execIn(t, ss.ID, ss.Sandbox, "echo anew")
	if end.Stdout != "anew\n" || end.Sandbox == ss.Sandbox {
		t.Errorf("with the id of a sandbox that was removed: %+v, want another sandbox and the result", end)
	}
	if end := s.execIn(t, ss.ID, "sb-neverwas00", "echo too"); end.Stdout != "too\n" {
		t.Errorf("with an id that never was: %+v", end)
	}
}

func endSession(t *testing.T, s *suite) {
	ss := s.session(t, engine.CreateSession{})
	s.do(t, engine.EndSession{Session: ss.ID})
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.ExecSession{Session: ss.ID, Command: engine.Command{Shell: "true"}}))
	wantCode(t, "a command in an ended session", err, engine.NotFound)
	if _, there := s.snapshot(t).Sessions[ss.ID]; there {
		t.Error("an ended session is in the snapshot")
	}
	s.until(t, "be removed", ss.Sandbox, func(sb engine.Sandbox, _ *engine.Snapshot) bool { return sb.ID == "" })
}

func sessionEvents(t *testing.T, s *suite) {
	from := s.snapshot(t).Position
	ss := s.session(t, engine.CreateSession{})
	s.execIn(t, ss.ID, "", "true")
	s.do(t, engine.PauseSession{Session: ss.ID})
	s.execIn(t, ss.ID, "", "true")
	s.do(t, engine.EndSession{Session: ss.ID})
	var kinds []engine.SessionEventKind
	var first engine.Position
	collect := func(after engine.Position) (n int) {
		for ev, err := range engine.SessionEvents(s.ctx(t), s.Engine, ss.ID, after) {
			if err != nil {
				t.Fatal(err)
			}
			if kinds = append(kinds, ev.Kind); n == 0 {
				first = ev.Position
			}
			n++
		}
		return n
	}
	if n := collect(from); n != 4 || kinds[0] != engine.SandboxActive || kinds[1] != engine.SandboxTerminated ||
		kinds[2] != engine.SandboxActive || kinds[3] != engine.SandboxTerminated {
		t.Errorf("the session told %q, want active, terminated, active, terminated", kinds)
	}
	if n := collect(first); n != 3 {
		t.Errorf("after the first there were %d more, want 3", n)
	}
}

// await waits for a value, within the suite's patience.
func await[T any](t *testing.T, s *suite, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-s.ctx(t).Done():
		t.Fatal(errors.New("waited in vain for " + what))
	}
	return v
}

func (s *suite) await(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	await(t, s, what, from)
}
