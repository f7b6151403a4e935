package enginetest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"sbx/engine"
)

var terminalCases = []testCase{
	{"ATerminalIsTypedAtAndTellsItsEnd", terminalTyped},
	{"ATerminalIsAsLargeAsItsSmallestViewer", terminalSizes},
	{"AViewerComesBackWhereItWas", terminalReturns},
	{"ViewersSeeTheSameAndASlowOneStallsNobody", terminalViewers},
	{"WhoWatchesDoesNotType", terminalWatched},
	{"KillingATerminalEndsItForItsViewers", terminalKilled},
	{"ATerminalIsRecordedWithItsSizes", terminalRecorded},
	{"WhatIsNoTerminalIsRefused", terminalRefusals},
}

var wide = engine.TermSize{Cols: 100, Rows: 30}

// terminal opens one, whose viewers and program go with the test.
func (s *suite) terminal(t *testing.T, shell string) engine.Process {
	t.Helper()
	p, err := engine.OpenShell(s.ctx(t), s.Engine, engine.OpenTerminal{
		Sandbox: s.home.ID, Command: engine.Command{Shell: shell}, Size: wide, Record: true,
	})
	if err != nil {
		t.Fatalf("open a terminal: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		if _, err := engine.KillTree(ctx, s.Engine, p.ID); err != nil {
			t.Errorf("kill it: %v", err)
		}
	})
	return p
}

// sight is a viewer and what it has seen.
type sight struct {
	engine.Terminal
	t *testing.T

	mu   sync.Mutex
	seen bytes.Buffer
	more chan struct{}
	end  error
}

// attach attaches a viewer that reads all the time.
func (s *suite) attach(t *testing.T, id engine.ProcessID, how engine.Attachment) *sight {
	t.Helper()
	term, err := s.Engine.AttachTerminal(t.Context(), id, how)
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	v := &sight{Terminal: term, t: t, more: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(v.look)
	t.Cleanup(func() {
		_ = term.Close()
		wg.Wait()
	})
	return v
}

func (v *sight) look() {
	buf := make([]byte, 4<<10)
	for {
		n, err := v.Read(buf)
		v.mu.Lock()
		v.seen.Write(buf[:n])
		v.end = err
		close(v.more)
		v.more = make(chan struct{})
		v.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits until the viewer has seen something, or the end if text is "".
func (v *sight) until(s *suite, text string) string {
	v.t.Helper()
	ctx := s.ctx(v.t)
	for {
		v.mu.Lock()
		seen, end, more := v.seen.String(), v.end, v.more
		v.mu.Unlock()
		switch {
		case text != "" && strings.Contains(seen, text), text == "" && end == io.EOF:
			return seen
		case end != nil:
			v.t.Fatalf("waiting for %q: it ended with %v after %q", text, end, seen)
		}
		select {
		case <-more:
		case <-ctx.Done():
			v.t.Fatalf("waiting for %q: it saw %q", text, seen)
		}
	}
}

func (v *sight) types(keys string) {
	v.t.Helper()
	if _, err := v.Write([]byte(keys)); err != nil {
		v.t.Fatalf("type %q: %v", keys, err)
	}
}

func terminalTyped(t *testing.T, s *suite) {
	p := s.terminal(t, `test -t 0 && echo rea""dy; read line; echo "it read $line"; exit 7`)
	if p.Kind != engine.Interactive || p.Terminal == nil || p.Terminal.Size != wide || !p.Terminal.Recorded {
		t.Errorf("its row is %+v", p)
	}
	v := s.attach(t, p.ID, engine.Attachment{})
	v.until(s, "ready")
	v.types("a line\r")
	v.until(s, "it read a line")
	v.until(s, "")
	h, err := engine.FindHandle(s.ctx(t), s.Engine, string(p.ID), engine.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res := s.wait(t, h); res.ExitCode != 7 || !strings.Contains(res.Stdout, "it read a line") || res.Stderr != "" {
		t.Errorf("it ended as %+v", res)
	}
	_, err = v.Write([]byte("x"))
	wantCode(t, "typing at what has exited", err, engine.Conflict)
}

const tellsSizes = `trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done`

func terminalSizes(t *testing.T, s *suite) {
	p := s.terminal(t, tellsSizes)
	large := s.attach(t, p.ID, engine.Attachment{Size: wide})
	large.until(s, "30 100\r\n")
	small := s.attach(t, p.ID, engine.Attachment{Size: engine.TermSize{Cols: 120, Rows: 20}})
	large.until(s, "20 100\r\n")
	if err := large.Resize(engine.TermSize{Cols: 90, Rows: 50}); err != nil {
		t.Error(err)
	}
	large.until(s, "20 90\r\n")
	if err := small.Resize(engine.TermSize{}); err != nil { // nobody looks at it
		t.Error(err)
	}
	large.until(s, "50 90\r\n")
	if err := small.Resize(engine.TermSize{Cols: 10, Rows: 10}); err != nil {
		t.Error(err)
	}
	large.until(s, "10 10\r\n")
	if err := small.Close(); err != nil {
		t.Error(err)
	}
	err := engine.Until(s.ctx(t), s.Engine, s.Patience, func(snap *engine.Snapshot) bool {
		state := snap.Processes[p.ID].Terminal
		return state != nil && state.Viewers == 1 && state.Size == engine.TermSize{Cols: 90, Rows: 50}
	})
	if err != nil {
		t.Errorf("its row doesn't say that one viewer is left, and its size: %v", err)
	}
	wantCode(t, "a size that can't be", large.Resize(engine.TermSize{Cols: -1, Rows: 3}), engine.Invalid)
}

func terminalReturns(t *testing.T, s *suite) {
	p := s.terminal(t, `for w in one two three; do echo "$w"; read x; done; echo over`)
	v := s.attach(t, p.ID, engine.Attachment{})
	v.until(s, "one")
	v.types("\r")
	before := v.until(s, "two")
	at := v.Position()
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	seen := len(before)
	if int(at) < seen {
		t.Errorf("after %d bytes it is at %d", seen, at)
	}
	v = s.attach(t, p.ID, engine.Attachment{From: engine.LogPosition(seen)})
	v.types("\r")
	v.until(s, "three")
	v.types("\r")
	after := v.until(s, "")
	whole := s.attach(t, p.ID, engine.Attachment{}).until(s, "")
	if before+after != whole {
		t.Errorf("in two parts it saw %q and %q, in one %q", before, after, whole)
	}
	if screen := s.attach(t, p.ID, engine.Attachment{From: engine.FromScreen}).until(s, ""); !strings.Contains(screen, "over") {
		t.Errorf("its last screen is %q", screen)
	}
}

// terminalViewers: three times what is kept on the way to a viewer, and one
// that reads nothing.
func terminalViewers(t *testing.T, s *suite) {
	p := s.terminal(t, `read x; i=0; while [ $i -lt 40000 ]; do echo "line $i of what all of them see"; i=$((i+1)); done; echo the en""d`)
	stuck, err := s.Engine.AttachTerminal(t.Context(), p.ID, engine.Attachment{})
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	one, two := s.attach(t, p.ID, engine.Attachment{}), s.attach(t, p.ID, engine.Attachment{})
	one.types("\r")
	a, b := one.until(s, ""), two.until(s, "")
	if a != b || !strings.Contains(a, "line 39999 of what all of them see\r\nthe end") {
		t.Errorf("they saw %d and %d bytes, ending in %q", len(a), len(b), a[max(0, len(a)-60):])
	}
	late, err := io.ReadAll(stuck) // it can still read all of it
	if err != nil || string(late) != a {
		t.Errorf("the slow one read %d bytes, want %d: %v", len(late), len(a), err)
	}
}

func terminalWatched(t *testing.T, s *suite) {
	p := s.terminal(t, `echo rea""dy; read x; stty size; echo "got $x"`)
	w := s.attach(t, p.ID, engine.Attachment{Watch: true, Size: engine.TermSize{Cols: 20, Rows: 5}})
	w.until(s, "ready")
	_, err := w.Write([]byte("not me\r"))
	wantCode(t, "typing while watching", err, engine.Forbidden)
	if err := w.Resize(engine.TermSize{Cols: 30, Rows: 6}); err != nil {
		t.Errorf("a watcher's window: %v", err)
	}
	v := s.attach(t, p.ID, engine.Attachment{})
	v.until(s, "ready")
	v.types("me\r")
	if seen := w.until(s, ""); !strings.Contains(seen, "30 100\r\ngot me") {
		t.Errorf("the watcher saw %q, want what the other typed, in the terminal's own size", seen)
	}
}

func terminalKilled(t *testing.T, s *suite) {
	p := s.terminal(t, `echo rea""dy; trap '' HUP TERM; while :; do sleep 0.1; done`)
	v := s.attach(t, p.ID, engine.Attachment{Size: wide})
	v.until(s, "ready")
	if killed, err := engine.KillTree(s.ctx(t), s.Engine, p.ID); !killed || err != nil {
		t.Errorf("kill: %t, %v", killed, err)
	}
	v.until(s, "")
	row, err := s.Engine.ProcessByID(s.ctx(t), p.ID)
	if code, ok := row.ExitCode(); err != nil || !ok || code != 137 || !row.Exit.Killed {
		t.Errorf("its row is %+v, %v", row, err)
	}
}

func terminalRecorded(t *testing.T, s *suite) {
	p := s.terminal(t, `echo rea""dy; read x; stty size; echo by""e`)
	v := s.attach(t, p.ID, engine.Attachment{Size: wide})
	v.until(s, "ready")
	narrow := engine.TermSize{Cols: 60, Rows: 20}
	if err := v.Resize(narrow); err != nil {
		t.Fatal(err)
	}
	err := engine.Until(s.ctx(t), s.Engine, s.Patience, func(snap *engine.Snapshot) bool {
		return snap.Processes[p.ID].Terminal.Size == narrow
	})
	if err != nil {
		t.Fatal(err)
	}
	v.types("\r")
	seen := v.until(s, "")
	var sizes []engine.TermSize
	var text []byte
	var last engine.Recorded
	for r, err := range s.Engine.Recording(s.ctx(t), p.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if r.At.Before(last.At) || r.Lost != 0 {
			t.Errorf("%+v comes after %+v", r, last)
		}
		if last = r; !r.Size.Zero() {
			sizes = append(sizes, r.Size)
		}
		text = append(text, r.Output...)
	}
	if want := []engine.TermSize{wide, narrow}; !slices.Equal(sizes, want) || string(text) != seen {
		t.Errorf("recorded are the sizes %v and %q, want %v and %q", sizes, text, want, seen)
	}
}

func terminalRefusals(t *testing.T, s *suite) {
	for what, body := range map[string]engine.OpenTerminal{
		"a size that can't be": {Size: engine.TermSize{Cols: 4000, Rows: 1}},
		"a timeout":            {Command: engine.Command{Shell: "true", Timeout: 5}},
	} {
		body.Sandbox = s.home.ID
		_, err := s.Engine.Do(s.ctx(t), engine.NewAction(body))
		wantCode(t, what, err, engine.Invalid)
	}
	h := s.spawn(t, "exit 0", engine.SpawnOptions{})
	s.wait(t, h)
	_, err := s.Engine.AttachTerminal(s.ctx(t), h.ID(), engine.Attachment{})
	wantCode(t, "attaching to a command", err, engine.Invalid)
	_, err = s.Engine.AttachTerminal(s.ctx(t), "ps-aaaaaaaaaa", engine.Attachment{})
	wantCode(t, "attaching to nothing", err, engine.NotFound)
	for _, err := range s.Engine.Recording(s.ctx(t), "ps-aaaaaaaaaa") {
		wantCode(t, "the recording of nothing", err, engine.NotFound)
	}
}
