//go:build linux

package tui

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sbx/engine"
)

// fallingEngine panics where a command of the dashboard's asks it something.
type fallingEngine struct{ *fakeEngine }

func (fallingEngine) Checkpoints(context.Context, engine.SandboxID) ([]engine.Checkpoint, error) {
	var none []engine.Checkpoint
	return none[3:], nil
}

func TestAPanicRestoresTheTerminalAndLeavesAReport(t *testing.T) {
	for name, fall := range map[string]func(s *terminal, fake *fakeEngine){
		"in a command": func(s *terminal, _ *fakeEngine) { s.press("\r") },
		"in an update": func(_ *terminal, fake *fakeEngine) {
			fake.change(func() {
				fake.journal = append(fake.journal, engine.Event{Seq: fake.snap.Position.Seq + 1, Time: time.Now()})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			fake, s := seeded(12, time.Now()), newTerminal(t)
			before, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			ended := s.start(t.Context(), fallingEngine{fake})
			s.wait("NEEDS YOU")
			fall(s, fake)
			e := s.ends(ended)
			if e.err == nil || strings.Contains(e.err.Error(), "\n") || !strings.Contains(e.err.Error(), "the dashboard crashed: ") {
				t.Fatalf("it ended with %v", e.err)
			}
			after, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the terminal is not as it was:\n%s", diff)
			}
			s.wrote("\x1b[?1049l") // out of the alternate screen
			s.wrote("\x1b[?25h")   // and the cursor shows
			report := regexp.MustCompile(`the report is in (\S+)`).FindStringSubmatch(e.err.Error())
			text, err := os.ReadFile(report[1])
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"runtime error", "goroutine", "tui.frameMsg"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the report lacks %q:\n%s", want, text)
				}
			}
			if strings.Contains(string(text), "dana@acme.io") || strings.Contains(string(text), "zod") {
				t.Errorf("the report tells of a sandbox:\n%s", text)
			}
		})
	}
}
