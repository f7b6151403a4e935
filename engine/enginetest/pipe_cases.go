package enginetest

import (
	"context"
	"io"
	"testing"

	"sbx/engine"
)

var pipeCases = []testCase{
	{"ClosingAPipeReleasesItsWriter", pipeCloseReleases},
	{"TheEndOfItsContextReleasesAPipesWriter", pipeContextReleases},
	{"KillingTheProcessReleasesAPipesWriter", pipeKillReleases},
	{"AReleasedWriterLeavesNothingToTheNext", pipeReleaseIsItsOwn},
	{"WritingToWhatHasExitedIsAConflict", pipeAfterExit},
}

// flood is more than all buffers on the way to a process take.
var flood = make([]byte, 32<<20)

// stuck writes to a process that doesn't read, and returns what the Write will.
func (s *suite) stuck(ctx context.Context, t *testing.T, id engine.ProcessID) (engine.Pipe, <-chan error) {
	t.Helper()
	p, err := s.Engine.Pipe(ctx, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(p, ready); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := p.Write(flood)
		wrote <- err
	}()
	return p, wrote
}

func (s *suite) released(t *testing.T, wrote <-chan error) {
	t.Helper()
	select {
	case err := <-wrote:
		if err == nil {
			t.Error("a write that nobody read was taken whole")
		}
	case <-s.ctx(t).Done():
		t.Fatal("the writer is stuck")
	}
}

// deaf is a command that has an input and doesn't read it.
func (s *suite) deaf(t *testing.T) *engine.Handle {
	t.Helper()
	h := s.spawn(t, "echo ready; exec sleep 60", engine.SpawnOptions{Stdin: true})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		if _, err := h.Kill(ctx); err != nil {
			t.Error(err)
		}
	})
	return h
}

func pipeCloseReleases(t *testing.T, s *suite) {
	p, wrote := s.stuck(s.ctx(t), t, s.deaf(t).ID())
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	s.released(t, wrote)
	if _, err := p.Write([]byte("x")); err == nil {
		t.Error("a closed pipe takes more")
	}
}

func pipeContextReleases(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(s.ctx(t))
	_, wrote := s.stuck(ctx, t, s.deaf(t).ID())
	cancel()
	s.released(t, wrote)
}

func pipeKillReleases(t *testing.T, s *suite) {
	h := s.deaf(t)
	p, wrote := s.stuck(s.ctx(t), t, h.ID())
	go func() { _, _ = io.Copy(io.Discard, p) }() // a client is told of it by what it reads
	if killed, err := h.Kill(s.ctx(t)); !killed || err != nil {
		t.Fatalf("kill: %t, %v", killed, err)
	}
	s.released(t, wrote)
}

// pipeReleaseIsItsOwn: several pipes share one stdin.
func pipeReleaseIsItsOwn(t *testing.T, s *suite) {
	h := s.spawn(t, "echo ready; until [ -e go-on ]; do sleep 0.02; done; exec wc -l", engine.SpawnOptions{Stdin: true})
	first, wrote := s.stuck(s.ctx(t), t, h.ID())
	second, err := s.Engine.Pipe(s.ctx(t), h.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	s.released(t, wrote)
	s.exec(t, engine.Command{Shell: "touch go-on"})
	if _, err := second.Write([]byte("one\ntwo\n")); err != nil {
		t.Errorf("write: %v", err)
	}
	if err := second.CloseInput(); err != nil {
		t.Errorf("close the input: %v", err)
	}
	if res := s.wait(t, h); res.Stdout != "ready\n2\n" {
		t.Errorf("it read %q, want the two lines of the second pipe", res.Stdout)
	}
	s.exec(t, engine.Command{Shell: "rm go-on"})
}

func pipeAfterExit(t *testing.T, s *suite) {
	h := s.spawn(t, "echo bye", engine.SpawnOptions{Stdin: true})
	p, err := s.Engine.Pipe(s.ctx(t), h.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if b, err := io.ReadAll(p); err != nil || string(b) != "bye\n" {
		t.Errorf("read %q, %v", b, err)
	}
	s.wait(t, h)
	_, err = p.Write([]byte("x"))
	wantCode(t, "writing to what has exited", err, engine.Conflict)
}
