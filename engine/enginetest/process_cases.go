package enginetest

import (
	"io"
	"strings"
	"testing"

	"sbx/engine"
)

var processCases = []testCase{
	{"ExecReturnsOutputAndExitCode", execReturns},
	{"CommandsRunInTheirDirectoryWithTheirEnvironment", commandSurroundings},
	{"ACommandOverItsTimeoutIsKilled", commandTimeout},
	{"KillEndsACommand", killEnds},
	{"ExitedCommandsStayReadable", exitedStay},
	{"AnEmptyCommandIsInvalid", emptyCommand},
	{"APipeCarriesBothWays", pipeBothWays},
	{"AnAppHasNoPipe", appHasNoPipe},
}

// exec runs a command in home and returns what it wrote to each stream.
func (s *suite) exec(t *testing.T, cmd engine.Command) (engine.ExecResult, map[engine.Stream]string) {
	t.Helper()
	out := map[engine.Stream]string{}
	res, err := engine.Exec(s.ctx(t), s.Engine, s.home.ID, cmd, func(l engine.LogLine) { out[l.Stream] += l.Text + "\n" })
	if err != nil {
		t.Fatalf("exec %q: %v", cmd.Shell, err)
	}
	return res, out
}

func execReturns(t *testing.T, s *suite) {
	res, out := s.exec(t, engine.Command{Shell: "echo one; echo two >&2; exit 3"})
	if res.ExitCode != 3 || res.Success || res.TimedOut {
		t.Errorf("the result is %+v, want exit code 3", res)
	}
	if out[engine.Stdout] != "one\n" || out[engine.Stderr] != "two\n" {
		t.Errorf("the output is %q, want the two streams apart", out)
	}
	if res, _ = s.exec(t, engine.Command{Shell: "true"}); res.ExitCode != 0 || !res.Success {
		t.Errorf("the result of true is %+v", res)
	}
	if res, _ = s.exec(t, engine.Command{Shell: "kill -TERM $$"}); res.ExitCode != 128+15 {
		t.Errorf("the exit code of a SIGTERM is %d, want 143", res.ExitCode)
	}
}

func commandSurroundings(t *testing.T, s *suite) {
	s.exec(t, engine.Command{Shell: "mkdir -p enginetest-dir"})
	_, out := s.exec(t, engine.Command{Shell: `basename "$PWD"; echo "$GREETING"`, Dir: "enginetest-dir", Env: map[string]string{"GREETING": "hello there"}})
	if want := "enginetest-dir\nhello there\n"; out[engine.Stdout] != want {
		t.Errorf("got %q, want %q", out[engine.Stdout], want)
	}
}

func commandTimeout(t *testing.T, s *suite) {
	timeout := engine.Command{Shell: "sleep 60"}
	if err := timeout.Timeout.UnmarshalText([]byte("200ms")); err != nil {
		t.Fatal(err)
	}
	res, _ := s.exec(t, timeout)
	if res.ExitCode != engine.ExitTimeout || !res.TimedOut {
		t.Errorf("the result is %+v, want a timeout's", res)
	}
}

// over waits until a command is.
func (s *suite) over(t *testing.T, id engine.ProcessID) engine.Process {
	t.Helper()
	s.until(t, "have no more of "+string(id), s.home.ID, func(_ engine.Sandbox, snap *engine.Snapshot) bool {
		_, runs := snap.Processes[id]
		return !runs
	})
	p, err := s.Engine.ProcessByID(s.ctx(t), id)
	if err != nil {
		t.Fatalf("process %s: %v", id, err)
	}
	return p
}

func killEnds(t *testing.T, s *suite) {
	r := s.do(t, engine.Spawn{Sandbox: s.home.ID, Command: engine.Command{Shell: "sleep 60"}})
	s.do(t, engine.KillProcess{Process: r.Process})
	p := s.over(t, r.Process)
	if p.State != engine.ProcessExited || p.Exit == nil || !p.Exit.Killed {
		t.Errorf("the process is %s with the exit %+v, want it exited because it was killed", p.State, p.Exit)
	}
	if again := s.do(t, engine.KillProcess{Process: r.Process}); again.Note == "" {
		t.Error("killing what has exited leaves no note")
	}
}

func exitedStay(t *testing.T, s *suite) {
	res, _ := s.exec(t, engine.Command{Shell: "exit 7"})
	p, err := s.Engine.ProcessByID(s.ctx(t), res.Process)
	if err != nil {
		t.Fatal(err)
	}
	if p.ID != res.Process || p.Sandbox != s.home.ID || p.Kind != engine.Spawned || p.Exit == nil || p.Exit.Code != 7 {
		t.Errorf("the process is %+v, want the command with its exit", p)
	}
	if _, there := s.snapshot(t).Processes[p.ID]; there {
		t.Error("a command that is over is in the snapshot")
	}
}

func emptyCommand(t *testing.T, s *suite) {
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.Spawn{Sandbox: s.home.ID, Command: engine.Command{Shell: "  "}}))
	wantCode(t, "an empty command", err, engine.Invalid)
}

func pipeBothWays(t *testing.T, s *suite) {
	r := s.do(t, engine.Spawn{Sandbox: s.home.ID, Stdin: true, Command: engine.Command{Shell: "cat; echo over"}})
	p, err := s.Engine.Pipe(s.ctx(t), r.Process, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const line = "a line\x00 with a NUL and \xff\n"
	if _, err := p.Write([]byte(line)); err != nil {
		t.Fatalf("write: %v", err)
	}
	got := make([]byte, len(line))
	if _, err := io.ReadFull(p, got); err != nil || string(got) != line {
		t.Fatalf("read %q, %v; want what was written", got, err)
	}
	big := strings.Repeat("0123456789abcdef", 8<<10) // more than any buffer on the way
	wrote := make(chan error, 1)
	go func() {
		_, err := p.Write([]byte(big))
		if err == nil {
			err = p.CloseInput()
		}
		wrote <- err
	}()
	rest, err := io.ReadAll(p)
	if err != nil || string(rest) != big+"over\n" {
		t.Errorf("read %d bytes, %v; want %d and the end", len(rest), err, len(big)+5)
	}
	if err := <-wrote; err != nil {
		t.Errorf("write: %v", err)
	}
	if p := s.over(t, r.Process); p.Exit == nil || p.Exit.Code != 0 {
		t.Errorf("the exit is %+v, want 0", p.Exit)
	}
	s.pipeResumes(t, r.Process, line)
}

// pipeResumes reads the output of a pipe from a position on.
func (s *suite) pipeResumes(t *testing.T, id engine.ProcessID, skip string) {
	p, err := s.Engine.Pipe(s.ctx(t), id, engine.LogPosition(len(skip)))
	if err != nil {
		t.Fatalf("pipe of a command that is over: %v", err)
	}
	defer p.Close()
	head := make([]byte, 16)
	if _, err := io.ReadFull(p, head); err != nil || string(head) != "0123456789abcdef" {
		t.Errorf("read %q, %v; want what follows the first line", head, err)
	}
}

func appHasNoPipe(t *testing.T, s *suite) {
	_, err := s.Engine.Pipe(s.ctx(t), s.snapshot(t).App(s.home.ID).ID, 0)
	wantCode(t, "a pipe to an app", err, engine.Invalid)
}
