package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A seat is a person at a terminal: sbx runs on a real one, an emulator shows
// what is drawn and answers what is asked.
type seat struct {
	w      *world
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File // kept, to look at the terminal after sbx has gone
	before unix.Termios
	ended  chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	emu     *vt.Emulator
	raw     strings.Builder
	changed chan struct{}
}

// sits starts sbx on a terminal of its own.
func (w *world) sits(cols, rows int, args ...string) *seat {
	w.t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	s := &seat{w: w, cmd: w.command(args...), master: master, slave: slave, ended: make(chan struct{}), changed: make(chan struct{}), emu: vt.NewEmulator(cols, rows)}
	s.window(cols, rows)
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		w.t.Fatal(err)
	}
	s.before = *before
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.Env = append(s.cmd.Env, "TERM=xterm-256color")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	s.wg.Go(s.look)
	s.wg.Go(func() { _, _ = io.Copy(master, s.emu) }) // the terminal's own answers
	go func() {
		_ = s.cmd.Wait() // its code says it
		close(s.ended)
	}()
	w.t.Cleanup(s.leave)
	return s
}

func (s *seat) leave() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.ended
	_ = s.slave.Close()
	if answers, ok := s.emu.InputPipe().(io.Closer); ok {
		_ = answers.Close()
	}
	s.wg.Wait() // the last holder of the slave has gone
	_ = s.master.Close()
	if s.w.t.Failed() {
		s.w.t.Logf("the screen at the end:\n%s", s.screen())
	}
}

func (s *seat) look() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		_, _ = s.emu.Write(buf[:n]) // it never fails while open
		s.raw.Write(buf[:n])
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *seat) window(cols, rows int) {
	s.w.t.Helper()
	if err := pty.Setsize(s.master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		s.w.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emu.Resize(cols, rows)
}

func (s *seat) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text()
}

// text is the screen without what is blank at the ends of its lines, and below
// the last. The caller holds mu.
func (s *seat) text() string {
	lines := strings.Split(s.emu.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

const sightWait = time.Minute

// sees waits until the screen matches.
func (s *seat) sees(pattern string) {
	s.w.t.Helper()
	re := regexp.MustCompile(pattern)
	timer := time.NewTimer(sightWait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		screen, changed := s.text(), s.changed
		s.mu.Unlock()
		if re.MatchString(screen) {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			s.w.t.Fatalf("not within a minute: %s\nthe screen:\n%s", pattern, screen)
		}
	}
}

func (s *seat) types(keys string) {
	s.w.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.w.t.Fatal(err)
	}
}

// does types a command at a prompt, which must be there.
func (s *seat) does(command, sees string) {
	s.w.t.Helper()
	s.types(command + "\r")
	s.sees(sees)
}

// ends waits for sbx to end, with one of the codes, and for the terminal to be as it was.
func (s *seat) ends(codes ...int) {
	s.w.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.w.t.Fatalf("it doesn't end; the screen:\n%s", s.screen())
	}
	if got := s.cmd.ProcessState.ExitCode(); !slices.Contains(codes, got) {
		s.w.t.Errorf("it ended with %d, want %v; the screen:\n%s", got, codes, s.screen())
	}
	after, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	if err != nil {
		s.w.t.Fatal(err)
	}
	if got, want := fmt.Sprint(*after), fmt.Sprint(s.before); got != want {
		s.w.t.Errorf("the terminal's settings are %s, were %s", got, want)
	}
	s.w.eventually("the alternate screen is left", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.emu.IsAltScreen()
	})
}

func (s *seat) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// shellWorld is a world with one sandbox.
func shellWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.ok("create", "--template", "demo", "--name", "api")
	return w
}
