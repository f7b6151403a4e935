package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"

	"sbx/engine"
)

// cli is one run of the command line: its streams, environment and settings.
type cli struct {
	in       io.Reader
	out, err io.Writer
	env      map[string]string
	// terminal: somebody is there to read colours and answer questions.
	terminal bool

	// flags that every command has
	home, engineURL, token, configFile string
	embed, json                        bool
	set                                []string

	cfg *config
}

func newCLI(in io.Reader, out, err io.Writer, environ []string) *cli {
	c := &cli{in: in, out: out, err: err, env: map[string]string{}}
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		c.env[k] = v
	}
	c.terminal = isTerminal(in) && isTerminal(out)
	return c
}

func isTerminal(s any) bool {
	f, ok := s.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// exit is an error that only sets the exit code: what there was to say has
// been said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// The exit codes of SPEC §8.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitBroken      = 3
	exitNotFound    = 4
	exitBusy        = 5
	exitBudget      = 6
	exitUnreachable = 7
	exitRefused     = 8
	exitTimeout     = 124
	exitInterrupted = 130
)

var exitOf = map[engine.Code]int{
	engine.Invalid:      exitUsage,
	engine.NotFound:     exitNotFound,
	engine.Conflict:     exitBusy,
	engine.Exhausted:    exitFailed,
	engine.Unauthorized: exitRefused,
	engine.Forbidden:    exitRefused,
	engine.Unavailable:  exitUnreachable,
	engine.Compacted:    exitFailed,
	engine.Internal:     exitFailed,
}

// run runs one command line and returns its exit code.
func (c *cli) run(ctx context.Context, args []string) int {
	root := newRootCmd(c)
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil && err != nil {
		return exitInterrupted
	}
	return c.report(err)
}

// report says an error in one line, with what to do next, and gives its code.
func (c *cli) report(err error) int {
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.DeadlineExceeded):
		c.say("timed out: %v", err)
		return exitTimeout
	}
	text := err.Error()
	if hint := engine.Hint(err); hint != "" {
		text += ": " + hint
	}
	c.say("%s", text)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitOf[engine.AsCode(err)]
}

// say writes one line for people to stderr.
func (c *cli) say(format string, args ...any) {
	fmt.Fprintln(c.err, "sbx: "+cleanLine(fmt.Sprintf(format, args...)))
}

// usageError is a command line that can't be right.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}
