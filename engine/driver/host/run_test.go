//go:build linux

package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// shell is a launch as an app.
func shell(text string) launch {
	return launch{Argv: []string{"/bin/sh", "-c", text}, Profile: driver.ProfileApp}
}

func TestRunGivesBothStreamsAndReadsItsInput(t *testing.T) {
	b := newTestBox(t)
	out, said, err := b.run(t.Context(), shell("cat; echo aside >&2"), strings.NewReader("fed"), 100)
	if string(out) != "fed" || string(said) != "aside\n" || err != nil {
		t.Errorf("got %q, %q, %v", out, said, err)
	}
}

func TestRunTellsHowACommandFailed(t *testing.T) {
	b := newTestBox(t)
	_, _, err := b.run(t.Context(), shell("echo why >&2; exit 3"), nil, 100)
	failed := (*runError)(nil)
	if !errors.As(err, &failed) || failed.Exit.Code != 3 || !strings.Contains(err.Error(), "why") {
		t.Errorf("got %v", err)
	}
	_, _, err = b.run(t.Context(), launch{Argv: []string{"no-such-program"}, Profile: driver.ProfileApp}, nil, 100)
	if b.host.iso.Name != noneName && !errors.Is(err, engine.NotFound) {
		t.Errorf("a missing program: %v", err)
	}
}

func TestRunEndsACommandThatWritesTooMuch(t *testing.T) {
	b := newTestBox(t)
	out, _, err := b.run(t.Context(), shell("while :; do echo 0123456789; done"), nil, 1000)
	if !errors.Is(err, errCut) || len(out) != 1000 {
		t.Errorf("got %d bytes, %v", len(out), err)
	}
	out, _, err = b.run(t.Context(), shell("printf 0123456789"), nil, 10)
	if err != nil || len(out) != 10 {
		t.Errorf("exactly as much as it may: %q, %v", out, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	b := newTestBox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := b.run(ctx, shell("sleep 600 & sleep 600"), nil, 100)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if groups, procs := b.host.strays(b.id); len(procs) != 0 {
		t.Errorf("left are %v, %v", groups, procs)
	}
}

func TestRunMayBeKeptFromTheWorkspaceButForGit(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"file": "x", ".git/config": "x"})
	l := shell("(echo y > .git/config) && ! (echo y > file) 2> /dev/null && ! (echo y > new) 2> /dev/null")
	l.Profile, l.ReadOnlyWorkspace, l.WritableGit = driver.ProfileAgent, true, true
	if _, _, err := b.run(t.Context(), l, nil, 100); err != nil {
		t.Error(err)
	}
	l.WritableGit = false
	if _, _, err := b.run(t.Context(), l, nil, 100); err == nil {
		t.Error("git's own files could be written")
	}
}

func TestListenersAreReadFromTheKernelsTable(t *testing.T) {
	line := "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0"
	if inode, ok := parseListener(line, 8080); !ok || inode != "31337" {
		t.Errorf("got %q, %t", inode, ok)
	}
	for _, other := range []string{"", "x", strings.Replace(line, " 0A ", " 01 ", 1), strings.Replace(line, "1F90", "1F91", 1), strings.Replace(line, "1F90", "zz", 1)} {
		if _, ok := parseListener(other, 8080); ok {
			t.Errorf("%q listens on 8080", other)
		}
	}
}
