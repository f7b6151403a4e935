package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Handle is one spawned process, for whoever builds tools: what it wrote,
// how it ends, its input, and the means to kill it (SPEC §6).
//
//	h, err := engine.SpawnHandle(ctx, e, sandbox, engine.Command{Shell: "npm test"}, engine.SpawnOptions{})
//	…
//	res, err := h.Wait(ctx)
//
// It follows the process until that is over or its context ends, and needs no
// closing. Its methods may be called from anywhere.
type Handle struct {
	e       Engine
	id      ProcessID
	sandbox SandboxID
	kind    ProcessKind
	command Command
	options SpawnOptions
	input   inlet

	running chan struct{} // closed when it runs, or never will
	done    chan struct{} // closed when all that it wrote was read

	calls sync.Mutex // the callbacks are called by one stream at a time

	mu          sync.Mutex
	row         Process // as it was last seen
	pid         int
	out, err    kept
	outPosition LogPosition // of what out has not seen yet
	failed      error       // why the end isn't known
}

// SpawnOptions are how a [Handle] listens. The callbacks get one line at a time,
// those of a stream in order; a slow one slows only its handle.
type SpawnOptions struct {
	OnStdout, OnStderr func(LogLine)
	// Stdin: keep the command's input open for SendStdin and Pipe. Only for
	// SpawnHandle.
	Stdin bool
	// Keep is how much of each stream the handle keeps: 0 is [KeptOutput],
	// negative nothing. What is over is cut out of the middle. A stream that is
	// neither kept nor called back for isn't read at all.
	Keep int
}

// KeptOutput is how many bytes of a stream a [Handle] keeps.
const KeptOutput = 1 << 20

// Result is how a command ended and what it wrote (SPEC §6, wait).
type Result struct {
	ExecResult
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// StdoutCut and StderrCut are how many bytes were cut out of the middle.
	StdoutCut int64 `json:"stdoutCut,omitempty"`
	StderrCut int64 `json:"stderrCut,omitempty"`
}

const (
	// abortWithin is how long a command whose caller went away may take to end,
	// and be followed.
	abortWithin = 10 * time.Second
	// settleWithin is how long a Spawn that was sent may take to be accepted
	// after its caller went away: else nobody would know what to kill.
	settleWithin = 2 * time.Second
)

// SpawnHandle starts a command in a sandbox, which is brought up if it is
// cold, and returns at once. When ctx ends, the command is killed with all its
// children.
func SpawnHandle(ctx context.Context, e Engine, sandbox SandboxID, command Command, o SpawnOptions) (*Handle, error) {
	h, _, err := spawnBy(ctx, e, Spawn{Sandbox: sandbox, Command: command, Stdin: o.Stdin}, command, o, settleWithin)
	return h, err
}

// spawnBy is SpawnHandle by an action that spawns, which may take so long after
// ctx's end to be accepted.
func spawnBy(ctx context.Context, e Engine, body ActionBody, command Command, o SpawnOptions, settle time.Duration) (*Handle, Receipt, error) {
	if err := ctx.Err(); err != nil {
		return nil, Receipt{}, err
	}
	sending, cancel := outlast(ctx, settle)
	defer cancel()
	r, err := e.Do(sending, NewAction(body))
	if err != nil {
		return nil, r, err
	}
	h := newHandle(e, Process{ID: r.Process, Sandbox: r.Sandbox, Command: command, Stdin: o.Stdin}, o)
	life, end := outlast(ctx, abortWithin)
	aborted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(aborted)
		if !h.abort(life) {
			end() // there is nothing to wait for
		}
	})
	go func() { // ends with the process, or soon after ctx; Wait waits for it
		defer close(h.done)
		defer end()
		ok := h.follow(life, r.Position)
		if !stop() {
			<-aborted
		} else if !ok {
			h.abort(life) // nobody would know of its end
		}
	}()
	return h, r, nil
}

// FindHandle is a handle on a spawned process that is there already, running or
// over: ref is as for [FindProcess]. When ctx ends, the handle does; the
// process goes on.
func FindHandle(ctx context.Context, e Engine, ref string, o SpawnOptions) (*Handle, error) {
	p, err := FindProcess(ctx, e, ref)
	if err != nil {
		return nil, err
	}
	if !p.Once() {
		return nil, Errorf(Invalid, "%s is supervised, and has no end to wait for", p.Name).
			WithHint("its log: sbx logs %s", p.Sandbox)
	}
	var pos Position
	if !p.State.Over() {
		if pos, err = positionOf(ctx, e); err != nil {
			return nil, err
		}
	}
	h := newHandle(e, p, o)
	go func() { // ends with the process, or with ctx; Wait waits for it
		defer close(h.done)
		h.follow(ctx, pos)
	}()
	return h, nil
}

func newHandle(e Engine, p Process, o SpawnOptions) *Handle {
	if o.Keep == 0 {
		o.Keep = KeptOutput
	}
	return &Handle{
		e: e, id: p.ID, sandbox: p.Sandbox, kind: p.Kind, command: p.Command, options: o, row: p, pid: p.PID,
		input:   inlet{open: p.Stdin, turn: make(chan struct{}, 1)},
		running: make(chan struct{}), done: make(chan struct{}),
		out: kept{max: max(0, o.Keep)}, err: kept{max: max(0, o.Keep)},
	}
}

// ID is the process's id.
func (h *Handle) ID() ProcessID { return h.id }

// Command is what was spawned.
func (h *Handle) Command() Command { return h.command }

// PID waits until the process runs and is its pid as the driver's host knows
// it; 0 if it ended before it was seen running.
func (h *Handle) PID(ctx context.Context) (int, error) {
	if err := await(ctx, h.running); err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pid, h.failed
}

// ExitCode is the exit code, once that is known.
func (h *Handle) ExitCode() (code int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.row.ExitCode()
}

// Stdout is what it wrote so far, and how much of that was cut out.
func (h *Handle) Stdout() (text string, cut int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.text()
}

// Stderr is Stdout of the other stream.
func (h *Handle) Stderr() (text string, cut int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err.text()
}

// Wait waits until the process has ended and all that it wrote until then was
// read. The error is of the waiting or of the engine: a command that fails is a
// result.
func (h *Handle) Wait(ctx context.Context) (Result, error) {
	if err := await(ctx, h.done); err != nil {
		return Result{ExecResult: ExecResult{Process: h.id}}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return Result{ExecResult: ExecResult{Process: h.id}}, h.failed
	}
	res := Result{ExecResult: resultOf(h.row)}
	res.Stdout, res.StdoutCut = h.out.text()
	res.Stderr, res.StderrCut = h.err.text()
	return res, nil
}

// Kill ends the process and all its children, and returns when they are gone.
// It reports false if there was nothing to kill: the process had exited, or is
// not there any more.
func (h *Handle) Kill(ctx context.Context) (bool, error) { return KillTree(ctx, h.e, h.id) }

// Pipe is a stream over the process's stdout, from its first byte on, and its
// stdin. One that only pipes needs no output kept: set Keep to -1.
func (h *Handle) Pipe(ctx context.Context) (Pipe, error) { return h.e.Pipe(ctx, h.id, 0) }

// abort kills the process of a caller that has gone away, and reports whether
// that was accepted.
func (h *Handle) abort(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, abortWithin)
	defer cancel()
	_, err := h.e.Do(ctx, NewAction(KillProcess{Process: h.id}))
	if err == nil || errors.Is(err, NotFound) {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = errors.Join(h.failed, err)
	return false
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// outlast is a context that ends d after ctx does.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(longer, func() { t.Stop() })
	})
	return longer, func() { stop(); cancel() }
}
