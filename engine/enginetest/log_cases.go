package enginetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

var logCases = []testCase{
	{"AnAppsLogHasItsStart", appLog},
	{"LogsResumeAfterAnyLine", logsResume},
	{"LogsTailTheLastLines", logsTail},
	{"FollowingEndsWithTheCommand", followEnds},
	{"FollowingSeesTheNextStart", followRestart},
}

// lines reads a log to its end.
func (s *suite) lines(t *testing.T, q engine.LogQuery) []engine.LogLine {
	t.Helper()
	var list []engine.LogLine
	for line, err := range s.Engine.Logs(s.ctx(t), q) {
		if err != nil {
			t.Fatalf("logs %+v: %v", q, err)
		}
		list = append(list, line)
	}
	return list
}

func texts(lines []engine.LogLine) []string {
	var list []string
	for _, l := range lines {
		list = append(list, l.Text)
	}
	return list
}

func appLog(t *testing.T, s *suite) {
	app := s.snapshot(t).App(s.home.ID)
	for _, process := range []string{"", engine.AppName, string(app.ID)} {
		lines := s.lines(t, engine.LogQuery{Sandbox: s.home.ID, Process: process})
		if !slices.Contains(texts(lines), "started") {
			t.Errorf("the log of %q is %q, want the line that says it started", process, texts(lines))
			continue
		}
		if l := lines[0]; l.Process != app.ID || l.Stream != engine.Stdout || l.Time.IsZero() {
			t.Errorf("the first line is %+v, want whose it is and when it came", l)
		}
	}
	last := s.lines(t, engine.LogQuery{Sandbox: s.home.ID, SinceStart: true})
	if len(last) == 0 || last[0].Pos < engine.LogPosition(app.LogStart) {
		t.Errorf("since the start at %d there are the lines %+v", app.LogStart, last)
	}
}

// counted runs a command that prints 1 to n and returns a query of its output.
func (s *suite) counted(t *testing.T, n int) engine.LogQuery {
	t.Helper()
	res, _ := s.exec(t, engine.Command{Shell: fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; done", n)})
	return engine.LogQuery{Sandbox: s.home.ID, Process: string(res.Process)}
}

func logsResume(t *testing.T, s *suite) {
	q := s.counted(t, 50)
	whole := s.lines(t, q)
	if len(whole) != 50 || whole[0].Text != "1" || whole[49].Text != "50" {
		t.Fatalf("got the lines %q, want 1 to 50", texts(whole))
	}
	for i := 0; i < len(whole); i += 7 {
		q.After = whole[i].Next
		if diff := cmp.Diff(texts(whole[i+1:]), texts(s.lines(t, q))); diff != "" {
			t.Fatalf("resumed after line %d (-want +got):\n%s", i, diff)
		}
	}
}

func logsTail(t *testing.T, s *suite) {
	q := s.counted(t, 30)
	q.Tail = 3
	if got, want := texts(s.lines(t, q)), []string{"28", "29", "30"}; !slices.Equal(got, want) {
		t.Errorf("the last 3 lines are %q, want %q", got, want)
	}
}

func followEnds(t *testing.T, s *suite) {
	r := s.do(t, engine.Spawn{Sandbox: s.home.ID, Command: engine.Command{Shell: "for i in 1 2 3; do echo $i; sleep 0.05; done; printf end"}})
	got := texts(s.lines(t, engine.LogQuery{Sandbox: s.home.ID, Process: string(r.Process), Follow: true}))
	if want := []string{"1", "2", "3", "end"}; !slices.Equal(got, want) {
		t.Errorf("followed %q, want %q and the end", got, want)
	}
}

func followRestart(t *testing.T, s *suite) {
	whole := s.lines(t, engine.LogQuery{Sandbox: s.home.ID})
	q := engine.LogQuery{Sandbox: s.home.ID, After: whole[len(whole)-1].Next, Follow: true}
	starts := s.snapshot(t).App(s.home.ID).Starts
	s.do(t, engine.RestartApp{Sandbox: s.home.ID})
	ctx, cancel := context.WithCancel(s.ctx(t))
	defer cancel()
	seen := false
	for line, err := range s.Engine.Logs(ctx, q) {
		if err != nil {
			t.Fatalf("follow: %v", err)
		}
		if line.Pos < q.After {
			t.Fatalf("line %q at %d came again", line.Text, line.Pos)
		}
		if seen = line.Text == "started"; seen {
			break
		}
	}
	if !seen {
		t.Error("a follower of an app was not told of its next start")
	}
	s.until(t, "be ready after a restart", s.home.ID, func(sb engine.Sandbox, snap *engine.Snapshot) bool {
		return sb.Health == engine.Ready && snap.App(sb.ID).Starts > starts
	})
}
