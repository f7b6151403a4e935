// Package drivertest is the contract of package driver, as tests: what a
// driver must do for the rest of the engine to work on it.
//
// The one rule: it speaks to a driver through its interfaces alone, so that
// every driver, on whatever it runs sandboxes, passes the same suite.
package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// Suite is the contract for one driver.
type Suite struct {
	// Open returns a driver that is ready for use, for one case; all may share
	// one.
	Open func(t *testing.T) driver.Driver
	// Shell: commands are run by a real shell in real processes. Without it the
	// cases need echo, exit, sleep, cat and ; only.
	Shell bool
}

// Run runs every case that makes sense for the driver.
func (s Suite) Run(t *testing.T) {
	for _, c := range cases {
		if c.shell && !s.Shell {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if !c.alone {
				t.Parallel()
			}
			c.run(&env{T: t, driver: s.Open(t)})
		})
	}
}

// cases are all there is to being a driver.
var cases = []struct {
	name  string
	shell bool
	run   func(*env)
	alone bool // it looks at all boxes: before those that run in parallel
}{
	{"BootingTwiceMakesNothingTwice", false, bootTwice, false},
	{"AttachFindsOnlyWhatWasBooted", false, attach, false},
	{"TheTemplateIsInTheWorkspace", false, templateIsThere, false},
	{"DestroyLeavesNothing", false, destroy, false},
	{"OneBoxDoesNotSeeAnothersFiles", false, boxesApart, false},
	{"TheExitCodeIsTheCommands", false, exitCodes, false},
	{"WaitAnswersManyAndAgain", false, waitAgain, false},
	{"WaitEndsWithItsContext", false, waitContext, false},
	{"StreamsAreKeptApart", false, streams, false},
	{"WithoutStderrBothStreamsAreOne", false, oneStream, false},
	{"StdinIsFed", false, stdin, false},
	{"WithoutStdinItReadsTheEnd", false, noStdin, false},
	{"KillEndsTheProcess", false, kill, false},
	{"KillAfterTheExitIsNothing", false, killLate, false},
	{"ALiveProcessHasItsIdAlone", false, sameID, false},
	{"WhatIsWrongWithACommandIsSaid", false, invalid, false},
	{"AnUnknownSignalIsRefused", false, unknownSignal, false},
	{"FreePortsAreDifferent", false, freePorts, false},
	{"NobodyHoldsAFreePort", false, nobodyHolds, false},
	{"UsageCountsWhatRuns", false, usage, false},
	{"ReapLeavesLiveProcessesAlone", false, reapSpares, true},
	{"OutputIsCompleteAndInOrderAtTheExit", true, completeOutput, false},
	{"AGrandchildDoesNotDelayTheExit", true, grandchild, false},
	{"ASignalIsTheShellsCode", true, signalCode, false},
	{"TermIsHeardAndGraceIsGiven", true, grace, false},
	{"KillEndsTheWholeTree", true, killTree, false},
	{"TheEnvironmentIsTheAllowList", true, environment, false},
	{"TheWorkingDirectoryIsInTheWorkspace", true, workingDirectory, false},
	{"OutputCanBeOpenedAgain", true, reopenOutput, false},
	{"ATerminalIsAllThreeStreams", true, isTerminal, false},
	{"ATerminalIsResized", true, resizes, false},
	{"CtrlCInterruptsTheCommandAlone", true, interrupts, false},
	{"JobsAreStoppedAndGoOn", true, jobControl, false},
	{"KillEndsAnInteractiveShell", true, killShell, false},
	{"ATerminalsOutputIsWholeAtTheExit", true, fullOutput, false},
}

// env is one case's driver and what it needs all the time.
type env struct {
	*testing.T
	driver driver.Driver
}

// patience is how long what must happen may take on a busy machine.
const patience = 20 * time.Second

func (e *env) context() context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	e.Cleanup(cancel)
	return ctx
}

// boot makes a box with one file in it, destroyed when the test ends.
func (e *env) boot() (engine.SandboxID, driver.Box) {
	e.Helper()
	id := engine.SandboxID(engine.NewID(engine.SandboxPrefix))
	box, err := e.driver.Boot(e.context(), bootOf(id))
	e.must(err)
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := box.Destroy(ctx); err != nil {
			e.Errorf("destroy: %v", err)
		}
	})
	return id, box
}

func bootOf(id engine.SandboxID) driver.Boot {
	return driver.Boot{
		ID: id, Origin: engine.Origin{Kind: engine.FromTemplate, Ref: "test"},
		Template: func(w driver.FileWriter) error {
			return w.WriteFile("sub/file.txt", 0o644, []byte("from the template\n"))
		},
	}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// A run is a started process with what it writes.
type run struct {
	driver.Proc
	out, err *Output
}

// start starts a shell command as an app's.
func (e *env) start(box driver.Box, shell string) *run {
	e.Helper()
	return e.startCommand(box, driver.Command{Command: engine.Command{Shell: shell}, Profile: driver.ProfileApp})
}

func (e *env) startCommand(box driver.Box, cmd driver.Command) *run {
	e.Helper()
	r := &run{out: NewOutput(), err: NewOutput()}
	p, err := box.Start(e.context(), engine.ProcessID(engine.NewID(engine.ProcessPrefix)), cmd, r.out, r.err)
	e.must(err)
	r.Proc = p
	return r
}

// wait is how a process ended.
func (e *env) wait(r *run) engine.Exit {
	e.Helper()
	exit, err := r.Wait(e.context())
	e.must(err)
	return exit
}

// output runs a command to its end and returns what it wrote to both streams.
func (e *env) output(box driver.Box, shell string) string {
	e.Helper()
	r := e.start(box, shell)
	e.wait(r)
	return r.out.String() + r.err.String()
}

// Output is a writer that tests can wait on.
type Output struct {
	closed chan struct{}

	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

// NewOutput returns an empty Output.
func NewOutput() *Output {
	return &Output{closed: make(chan struct{}), changed: make(chan struct{})}
}

// Write keeps what is written.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.buf.Write(p)
}

// Close says that no more will come; twice is a driver's bug, and panics.
func (o *Output) Close() error {
	close(o.closed)
	return nil
}

// String is what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Closed is closed when the writer was.
func (o *Output) Closed() <-chan struct{} { return o.closed }

// Await waits until the output has text in it.
func (o *Output) Await(ctx context.Context, text string) error {
	for {
		o.mu.Lock()
		found, changed := bytes.Contains(o.buf.Bytes(), []byte(text)), o.changed
		o.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %q in %q: %w", text, o.String(), ctx.Err())
		}
	}
}

var _ io.WriteCloser = (*Output)(nil)
