package tui

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

// fakeTerminal is a viewer's end of a terminal that the test prints on.
type fakeTerminal struct {
	id     engine.ProcessID
	how    engine.Attachment
	prints chan []byte
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	typed []byte
	sizes []engine.TermSize
}

func newFakeTerminal(id engine.ProcessID, how engine.Attachment) *fakeTerminal {
	return &fakeTerminal{id: id, how: how, prints: make(chan []byte, 64), closed: make(chan struct{})}
}

func (t *fakeTerminal) Read(p []byte) (int, error) {
	select {
	case b, ok := <-t.prints:
		if !ok {
			return 0, io.EOF
		}
		return copy(p, b), nil
	case <-t.closed:
		return 0, errors.New("detached")
	}
}

func (t *fakeTerminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.typed = append(t.typed, p...)
	return len(p), nil
}

func (t *fakeTerminal) Resize(s engine.TermSize) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sizes = append(t.sizes, s)
	return nil
}

func (t *fakeTerminal) Position() engine.LogPosition { return 0 }

func (t *fakeTerminal) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

func (t *fakeTerminal) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.typed)
}

// openShell puts a running terminal into the snapshot.
func openShell(d *desk, id engine.ProcessID, sb engine.SandboxID) {
	p := engine.Process{ID: id, Sandbox: sb, Kind: engine.Interactive, State: engine.ProcessRunning, Started: time.Now(), Terminal: &engine.TerminalState{}}
	d.fake.tell(engine.ProcessChanged{Process: p})
	d.send(frameMsg{events: []engine.Event{{Seq: d.w.snap.Position.Seq + 1, Time: time.Now(), Body: engine.ProcessChanged{Process: p}}}})
}

// onTerminal is the fifth tab with one shell attached that has printed a prompt.
func onTerminal(t *testing.T, edit func(*Config), f func(d *desk, shell *fakeTerminal)) {
	t.Helper()
	onDesk(t, edit, func(d *desk) {
		openShell(d, "pr-aaaaaaaaaa", seedID(3))
		d.press("5")
		d.later(time.Second)
		shell := d.fake.terminals[0]
		shell.prints <- []byte("user@shop:~$ ")
		d.later(time.Second)
		f(d, shell)
		d.goHome()
		synctest.Wait()
	})
}

func TestATerminalStaysInNAVUntilItIsAskedForAndGivesTheKeysBack(t *testing.T) {
	onTerminal(t, nil, func(d *desk, shell *fakeTerminal) {
		d.sees("user@shop:~$")
		d.sees(" NAV ")
		d.fits()
		d.press("i")
		d.sees(" TERM ")
		d.sees("every key goes to search-index")
		d.text("qH15:?")
		d.press("enter", "ctrl+c", "ctrl+c", "esc", "ctrl+d")
		d.later(time.Second)
		if got, want := shell.said(), "qH15:?\r\x03\x03\x1b\x04"; got != want {
			t.Errorf("the program was told %q, want %q", got, want)
		}
		d.asked()
		d.send(tea.KeyPressMsg{Code: ']', Mod: tea.ModCtrl})
		d.sees(" NAV ")
		d.send(tea.KeyPressMsg{Code: ']', Mod: tea.ModCtrl})
		d.later(time.Second)
		if got := shell.said(); !strings.HasSuffix(got, "\x1d") {
			t.Errorf("ctrl+] twice did not send one: %q", got)
		}
	})
}

func TestAShellIsOpenedWhereThereIsNone(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("5")
		d.sees("No terminal is open here")
		d.press("i")
		size := engine.TermSize{Cols: 120, Rows: d.layout.main.h - 1}
		d.asked(engine.OpenTerminal{Sandbox: seedID(3), Size: size})
		d.later(time.Second)
		if len(d.fake.terminals) != 1 || d.fake.terminals[0].how.Size != size || !d.fake.terminals[0].how.Live {
			t.Fatalf("it attached to %v", d.fake.terminals)
		}
		d.sees(" TERM ")
		d.goHome()
	})
}

func TestAResizeReachesTheProgram(t *testing.T) {
	onTerminal(t, nil, func(d *desk, shell *fakeTerminal) {
		d.send(tea.WindowSizeMsg{Width: 90, Height: 24})
		d.later(time.Second)
		shell.mu.Lock()
		defer shell.mu.Unlock()
		if n := len(shell.sizes); n == 0 || shell.sizes[n-1].Cols != 90 {
			t.Errorf("it was told %v", shell.sizes)
		}
	})
}

func TestAPasteIsMarkedWhereTheProgramAskedForThat(t *testing.T) {
	onTerminal(t, nil, func(d *desk, shell *fakeTerminal) {
		shell.prints <- []byte("\x1b[?2004h")
		d.later(time.Second)
		d.press("i")
		d.send(tea.PasteMsg{Content: "a\nb\x1b[201~"})
		d.later(time.Second)
		if got := shell.said(); got != "\x1b[200~a\rb[201~\x1b[201~" {
			t.Errorf("the program was told %q", got)
		}
	})
}

func TestAProgramThatEndedIsToldAndEnterBeginsAnew(t *testing.T) {
	onTerminal(t, nil, func(d *desk, shell *fakeTerminal) {
		d.press("i")
		close(shell.prints)
		d.later(time.Second)
		d.sees("Enter starts a new shell")
		d.sees("user@shop:~$")
		d.sees(" NAV ")
		d.press("enter")
		if len(d.fake.acts) != 1 {
			t.Errorf("asked for %v", d.fake.acts)
		}
	})
}

func TestALostLineIsNotAnEnd(t *testing.T) {
	onTerminal(t, nil, func(d *desk, shell *fakeTerminal) {
		_ = shell.Close()
		d.later(time.Second)
		d.sees("detached")
		d.send(frameMsg{snap: d.w.snap.Clone()})
		d.later(time.Second)
		if n := len(d.fake.terminals); n != 2 {
			t.Errorf("attached %d times, want again after a new snapshot", n)
		}
	})
}

func TestTerminalsAreSwitchedAndClosed(t *testing.T) {
	onTerminal(t, nil, func(d *desk, _ *fakeTerminal) {
		d.later(time.Second)
		openShell(d, "pr-bbbbbbbbbb", seedID(3))
		d.press("]")
		d.later(time.Second)
		d.sees("Terminal 2 of 2")
		d.press("[")
		d.later(time.Second)
		d.sees("Terminal 1 of 2")
		d.press("x")
		d.later(time.Second)
		d.press("y")
		d.asked(engine.KillProcess{Process: "pr-aaaaaaaaaa"})
	})
}

func TestAViewerOnlyWatches(t *testing.T) {
	onTerminal(t, func(c *Config) { c.ReadOnly = "your token may only read" }, func(d *desk, shell *fakeTerminal) {
		if !shell.how.Watch {
			t.Error("it attached to type")
		}
		d.press("i")
		d.sees("your token may only read")
		d.text("x")
		d.later(time.Second)
		if got := shell.said(); got != "" {
			t.Errorf("the program was told %q", got)
		}
		d.asked()
	})
}

func TestAHostileTerminalDrawsOnlyCells(t *testing.T) {
	onTerminal(t, nil, func(d *desk, shell *fakeTerminal) {
		shell.prints <- []byte("\x1b]52;c;aGk=\x07\x1b]8;;file:///x\x1b\\l\x1b]8;;\x1b\\\u202e漢" + strings.Repeat("\u0301", 30) + "\x9b5n\x1b[c")
		d.later(time.Second)
		d.press("i")
		for _, size := range [][2]int{{160, 45}, {80, 24}, {60, 15}} {
			d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			d.fits()
		}
		if got := shell.said(); got != "" {
			t.Errorf("a question was answered: %q", got)
		}
	})
}
