package process

import (
	"context"
	"errors"
	"os"
	"testing"

	"sbx/engine"
)

// deaf is the input of a process that doesn't read, full.
func deaf(t *testing.T) *Input {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	in := newInput("ps-test", w)
	ctx, cancel := context.WithCancel(t.Context())
	wrote := make(chan error, 1)
	go func() {
		n, err := in.WriteContext(ctx, make([]byte, 1<<20))
		if n == 0 || n == 1<<20 {
			t.Errorf("%d bytes were taken, want those that fit", n)
		}
		wrote <- err
	}()
	// It has begun; wherever it is, it is released.
	begun := make([]byte, 1)
	if _, err := r.Read(begun); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-wrote; !errors.Is(err, context.Canceled) {
		t.Fatalf("the writer was released with %v", err)
	}
	return in
}

func TestAWriterThatWaitsForItsTurnIsReleased(t *testing.T) {
	in := deaf(t)
	in.turn <- struct{}{} // somebody writes
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := in.WriteContext(ctx, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("released by its context with %v", err)
	}
	in.end()
	if _, err := in.Write([]byte("x")); !errors.Is(err, engine.Conflict) {
		t.Errorf("released by the end of the process with %v", err)
	}
}

func TestTheEndOfAProcessReleasesItsWriters(t *testing.T) {
	in := deaf(t)
	wrote := make(chan error, 1)
	go func() {
		_, err := in.Write(make([]byte, 1<<20))
		wrote <- err
	}()
	in.end()
	if err := <-wrote; !errors.Is(err, engine.Conflict) {
		t.Errorf("released with %v", err)
	}
	if err := in.Close(); err != nil {
		t.Errorf("closing the input of what has exited: %v", err)
	}
}

func TestClosedInputTakesNoMore(t *testing.T) {
	in := deaf(t)
	for range 2 {
		if err := in.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := in.Write([]byte("x")); !errors.Is(err, engine.Conflict) {
		t.Errorf("a closed input answers %v", err)
	}
}
