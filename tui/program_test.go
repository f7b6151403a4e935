package tui

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"sbx/engine"
)

// terminal is a real one: a program on its one side, a reader on the other.
type terminal struct {
	t        testing.TB
	tty, far *os.File

	mu   sync.Mutex
	buf  []byte
	wake chan struct{}
}

func newTerminal(t testing.TB) *terminal {
	far, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 40, Cols: 150}); err != nil {
		t.Fatal(err)
	}
	// A read of what the library opened isn't ended by closing it.
	fd, err := syscall.Dup(int(far.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	far = os.NewFile(uintptr(fd), "terminal")
	s := &terminal{t: t, tty: tty, far: far, wake: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.read()
	}()
	t.Cleanup(func() {
		// tty stays open: the library's reader may be about to look at it for
		// the last time, and is waited for by nobody.
		_ = far.Close()
		<-done
	})
	return s
}

func (s *terminal) read() {
	chunk := make([]byte, 32<<10)
	for {
		n, err := s.far.Read(chunk)
		s.mu.Lock()
		s.buf = append(s.buf, chunk[:n]...)
		close(s.wake)
		s.wake = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait until the program has written want since the last wait.
func (s *terminal) wait(want string) {
	s.t.Helper()
	timeout := time.NewTimer(20 * time.Second)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		text, wake := string(s.buf), s.wake
		if strings.Contains(ansi.Strip(text), want) {
			s.buf = nil
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case <-wake:
		case <-timeout.C:
			s.t.Fatalf("the program never showed %q; it wrote %q", want, text)
		}
	}
}

// wrote waits until the program has written exactly this, in one go or another.
func (s *terminal) wrote(want string) {
	s.t.Helper()
	timeout := time.NewTimer(20 * time.Second)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		text, wake := string(s.buf), s.wake
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-wake:
		case <-timeout.C:
			s.t.Fatalf("the program never wrote %q; it wrote %q", want, text)
		}
	}
}

func (s *terminal) press(k string) {
	if _, err := s.far.WriteString(k); err != nil {
		s.t.Error(err)
	}
}

type ending struct {
	choice Choice
	err    error
}

// start runs the dashboard on the terminal.
func (s *terminal) start(ctx context.Context, fake engine.Engine) <-chan ending {
	ended := make(chan ending, 1)
	go func() {
		choice, err := Run(ctx, Config{
			Engine: fake, Name: "prod-eu", Input: s.tty, Output: s.tty,
			Environ: []string{"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8"},
		})
		ended <- ending{choice, err}
	}()
	return ended
}

func (s *terminal) ends(ended <-chan ending) ending {
	s.t.Helper()
	select {
	case e := <-ended:
		return e
	case <-time.After(20 * time.Second):
		s.t.Fatal("the program did not end")
		return ending{}
	}
}

func TestAHealIsWatchedFromTheSignalToTheEnd(t *testing.T) {
	fake, s := seeded(12, time.Now()), newTerminal(t)
	ended := s.start(t.Context(), fake)
	s.wait("NEEDS YOU")
	s.press("2")
	s.wait("ECONNREFUSED") // words that are on no other screen: only what differs is written
	s.press("0")
	s.wait("SANDBOX")
	run := fake.snap.Runs[seedID(0)]
	run.State, run.Outcome, run.Ended, run.FixedBy = engine.RunEnded, engine.Healed, time.Now(), "model"
	fake.tell(engine.HealFinished{Run: run})
	s.wait("healed")
	s.press("q")
	if e := s.ends(ended); e.err != nil || e.choice != Unasked {
		t.Errorf("it ended with %q, %v", e.choice, e.err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newTerminal(t)
	ended := s.start(ctx, seeded(3, time.Now()))
	s.wait("HEALING")
	cancel()
	if e := s.ends(ended); !errors.Is(e.err, context.Canceled) {
		t.Errorf("error is %v", e.err)
	}
}

func TestLocaleAndBackgroundComeFromTheEnvironment(t *testing.T) {
	for locale, want := range map[string]bool{"LANG=C": false, "LANG=en_US.UTF-8": true, "LC_ALL=C.utf8": true, "": false} {
		if got := unicode([]string{locale}); got != want {
			t.Errorf("%q is UTF-8: %v", locale, got)
		}
	}
	for env, want := range map[string]bool{"": true, "COLORFGBG=0;15": false, "COLORFGBG=15;0": true, "COLORFGBG=0;default;15": false} {
		if got := darkBefore([]string{env}); got != want {
			t.Errorf("%q is dark: %v", env, got)
		}
	}
}
