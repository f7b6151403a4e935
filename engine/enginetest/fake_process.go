package enginetest

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"sbx/engine"
)

// proc is a process that was started; its row stays when it is over.
type proc struct {
	born     int // the how manieth
	row      engine.Process
	out, err output
	input    *os.File      // nil: it reads none
	turn     chan struct{} // held while writing to input
	cancel   context.CancelFunc
	killed   bool
	tty      *tty // nil: it has no terminal
}

func (p *proc) stop() {
	p.killed = true
	p.cancel()
}

// output is all that a process wrote to one stream.
type output struct {
	data  []byte
	ended bool
}

func (o *output) write(s string)          { o.data = append(o.data, s...) }
func (o *output) end() engine.LogPosition { return engine.LogPosition(len(o.data)) }

func (p *proc) stream(s engine.Stream) *output {
	if s == engine.Stderr {
		return &p.err
	}
	return &p.out
}

// sink is where a command writes.
type sink struct {
	f *Fake
	o *output
}

func (s sink) Write(b []byte) (int, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.o.data = append(s.o.data, b...)
	s.f.stir()
	return len(b), nil
}

// spawn runs a real command.
func (f *Fake) spawn(by author, sb engine.Sandbox, b engine.Spawn, r *engine.Receipt) error {
	if strings.TrimSpace(b.Command.Shell) == "" {
		return engine.Errorf(engine.Invalid, "the command is empty")
	}
	if !sb.State.Live() {
		f.startApp(by, sb)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	if b.Command.Timeout > 0 {
		ctx, cancel = context.WithTimeout(f.ctx, b.Command.Timeout.D())
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", b.Command.Shell)
	cmd.Dir = f.workspace(sb.ID) + "/" + b.Command.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for k, v := range sb.Spec.App.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	for k, v := range b.Command.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	p := &proc{born: len(f.procs), cancel: cancel, turn: make(chan struct{}, 1)}
	cmd.Stdout, cmd.Stderr = sink{f, &p.out}, sink{f, &p.err}
	if b.Stdin {
		r, w, err := os.Pipe()
		if err != nil {
			cancel()
			return err
		}
		defer r.Close()
		cmd.Stdin, p.input = r, w
	}
	if err := cmd.Start(); err != nil {
		cancel()
		if p.input != nil {
			_ = p.input.Close() // nothing was written
		}
		return engine.Errorf(engine.Invalid, "start: %w", err)
	}
	row := engine.Process{
		ID: engine.ProcessID(engine.NewID(engine.ProcessPrefix)), Sandbox: sb.ID, Kind: engine.Spawned, Command: b.Command,
		Wanted: engine.WantRunning, State: engine.ProcessRunning, PID: cmd.Process.Pid, Started: now(), Starts: 1, By: by.by,
	}
	r.Process = row.ID
	f.procs[row.ID] = p
	f.append(by, engine.ProcessChanged{Process: row})
	f.wg.Go(func() {
		defer cancel()
		f.wait(ctx, cmd, p)
	})
	return nil
}

// wait records how a command ended.
func (f *Fake) wait(ctx context.Context, cmd *exec.Cmd, p *proc) {
	began := time.Now()
	_ = cmd.Wait() // its state says it all
	if p.input != nil {
		_ = p.input.Close() // nobody reads it any more
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	exit := engine.Exit{Code: cmd.ProcessState.ExitCode(), At: now(), Uptime: engine.Duration(time.Since(began)), Killed: p.killed}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit.Code, exit.Signal = engine.ExitSignalBase+int(ws.Signal()), ws.Signal().String()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		exit.Code, exit.TimedOut = engine.ExitTimeout, true
	}
	p.out.ended, p.err.ended = true, true
	row := p.row
	row.State, row.Exit, row.PID = engine.ProcessExited, &exit, 0
	p.row = row // also when its sandbox is gone
	f.append(itself, engine.ProcessChanged{Process: row})
}

func (f *Fake) kill(id engine.ProcessID, r *engine.Receipt) error {
	p, err := f.process(id)
	if err != nil {
		return err
	}
	r.Process, r.Sandbox = id, p.row.Sandbox
	switch {
	case p.row.Kind == engine.Supervised:
		return engine.Errorf(engine.Invalid, "%s is supervised", p.row.Name)
	case p.row.State.Over():
		r.Note = "it had exited"
	default:
		p.stop()
	}
	return nil
}

func (f *Fake) process(id engine.ProcessID) (*proc, error) {
	p := f.procs[id]
	if p == nil || f.snap.Sandboxes[p.row.Sandbox].ID == "" {
		return nil, engine.Errorf(engine.NotFound, "no process %q", id)
	}
	return p, nil
}

// ProcessByID is a process.
func (f *Fake) ProcessByID(_ context.Context, id engine.ProcessID) (engine.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.process(id)
	if err != nil {
		return engine.Process{}, err
	}
	return p.row, nil
}

// ListProcesses are a sandbox's processes, or all of the fleet's.
func (f *Fake) ListProcesses(_ context.Context, id engine.SandboxID) ([]engine.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id != "" {
		if _, err := f.sandbox(id); err != nil {
			return nil, err
		}
	}
	var found []*proc
	for _, p := range f.procs {
		if _, kept := f.snap.Sandboxes[p.row.Sandbox]; kept && (id == "" || p.row.Sandbox == id) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *proc) int { return a.born - b.born })
	var list []engine.Process
	for _, p := range found {
		list = append(list, p.row)
	}
	return list, nil
}

// find is the process that a query means.
func (f *Fake) find(q engine.LogQuery) (*proc, error) {
	if strings.HasPrefix(q.Process, engine.ProcessPrefix) {
		return f.process(engine.ProcessID(q.Process))
	}
	if _, err := f.sandbox(q.Sandbox); err != nil {
		return nil, err
	}
	if q.Process != "" && q.Process != engine.AppName {
		return nil, engine.Errorf(engine.NotFound, "no process %q", q.Process)
	}
	return f.process(f.snap.App(q.Sandbox).ID)
}

// Logs yields the lines of one process.
func (f *Fake) Logs(ctx context.Context, q engine.LogQuery) iter.Seq2[engine.LogLine, error] {
	return func(yield func(engine.LogLine, error) bool) {
		f.mu.Lock()
		p, err := f.find(q)
		if err == nil {
			q = beginning(q, p)
		}
		f.mu.Unlock()
		for err == nil {
			f.mu.Lock()
			line, ended, wake := next(p, q), p.stream(q.Stream).ended, f.wake
			err = f.gone()
			f.mu.Unlock()
			if line.Next > q.After {
				q.After = line.Next
				if !yield(line, nil) {
					return
				}
				continue
			}
			if ended || !q.Follow {
				return
			}
			if err == nil {
				err = pause(ctx, wake)
			}
		}
		yield(engine.LogLine{}, err)
	}
}

// beginning is q with After where its first line is.
func beginning(q engine.LogQuery, p *proc) engine.LogQuery {
	data := p.stream(q.Stream).data
	switch {
	case q.After > 0:
	case q.SinceStart:
		q.After = engine.LogPosition(p.row.LogStart)
	case q.Tail > 0:
		lines := slices.Collect(strings.Lines(string(data)))
		for _, l := range lines[:max(0, len(lines)-q.Tail)] {
			q.After += engine.LogPosition(len(l))
		}
	}
	return q
}

// next is the line at q.After; one without an end counts when no more comes.
func next(p *proc, q engine.LogQuery) engine.LogLine {
	o := p.stream(q.Stream)
	rest := o.data[min(int(q.After), len(o.data)):]
	text, _, whole := strings.Cut(string(rest), "\n")
	l := engine.LogLine{Process: p.row.ID, Stream: q.Stream, Pos: q.After, Next: q.After, Time: now(), Text: text}
	if l.Stream == "" {
		l.Stream = engine.Stdout
	}
	switch {
	case whole:
		l.Next += engine.LogPosition(len(text) + 1)
	case text != "" && (o.ended || !q.Follow):
		l.Next += engine.LogPosition(len(text))
		l.Partial = !o.ended
	}
	return l
}

// pause waits for a change.
func pause(ctx context.Context, wake <-chan struct{}) error {
	select {
	case <-wake:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
