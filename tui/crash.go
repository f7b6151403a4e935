package tui

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/tui/clean"
)

// crash is what is known of a panic. It holds no text of a sandbox, no key that
// was typed and nothing of the environment: only where, and which kinds of
// messages came before.
type crash struct {
	what  string
	stack string
	kinds []string
}

// crashMsg says that something outside of the program's loop panicked.
type crashMsg struct{ crash *crash }

// crashOf is a panic's crash, on whose goroutine it is called.
func crashOf(value any) *crash {
	return &crash{what: panicWords(value), stack: string(debug.Stack())}
}

// panicWords is what a panic said, if the program itself wrote it: an error's
// text may quote what it failed on.
func panicWords(value any) string {
	var own runtime.Error
	if err, ok := value.(error); ok && errors.As(err, &own) {
		return clean.Cut(clean.Line(own.Error()), 300)
	}
	if s, ok := value.(string); ok {
		return clean.Cut(clean.Line(s), 300)
	}
	return fmt.Sprintf("a %T", value)
}

// kindsKept is how many kinds of messages a report has.
const kindsKept = 200

// guard runs the dashboard such that a panic in it leaves the terminal as it
// was: the program is told to end, which restores it, and Run reports.
type guard struct {
	*App

	mu    sync.Mutex
	crash *crash
	kinds []string
}

// Update is the dashboard's, or its last.
func (g *guard) Update(msg tea.Msg) (m tea.Model, cmd tea.Cmd) {
	m = g
	if fell, ok := msg.(crashMsg); ok {
		g.fall(fell.crash)
	}
	if g.fallen() != nil {
		return m, tea.Quit
	}
	g.kinds = append(tail(g.kinds, kindsKept-1), fmt.Sprintf("%T", msg))
	defer func() {
		if v := recover(); v != nil {
			g.fall(crashOf(v))
			cmd = tea.Quit
		}
	}()
	_, cmd = g.App.Update(msg)
	return m, cmd
}

// View is the dashboard's, or nothing.
func (g *guard) View() (v tea.View) {
	if g.fallen() != nil {
		return tea.View{}
	}
	defer func() {
		if value := recover(); value != nil {
			g.fall(crashOf(value)) // the next message ends the program
			v = tea.View{}
		}
	}()
	return g.App.View()
}

func (g *guard) fall(c *crash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.crash == nil {
		c.kinds = g.kinds
		g.crash = c
	}
}

func (g *guard) fallen() *crash {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crash
}

// report writes what is known to a file of its own, and says where it is.
func (c *crash) report(dir string) error {
	name := filepath.Join(dir, fmt.Sprintf("sbx-crash-%s-%d.txt", time.Now().UTC().Format("20060102T150405"), os.Getpid()))
	var b strings.Builder
	fmt.Fprintf(&b, "sbx dashboard: %s\n%s %s/%s", c.what, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprintf(&b, " %s", info.Main.Version)
	}
	fmt.Fprintf(&b, "\n\n%s\nmessages before it, latest last:\n%s\n", c.stack, strings.Join(c.kinds, "\n"))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the dashboard crashed (%s), and its report can't be written: %w", c.what, err)
	}
	_, err = f.WriteString(b.String())
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("the dashboard crashed (%s), and its report can't be written: %w", c.what, err)
	}
	return fmt.Errorf("the dashboard crashed: %s; the report is in %s", c.what, name)
}
