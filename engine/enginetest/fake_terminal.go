package enginetest

import (
	"context"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/creack/pty"

	"sbx/engine"
)

// tty is a process's terminal and who looks at it.
type tty struct {
	master  *os.File
	viewers map[*fakeTerminal]engine.TermSize
	moments []engine.Recorded
}

// openTerminal runs a real command on a real terminal.
func (f *Fake) openTerminal(by author, sb engine.Sandbox, b engine.OpenTerminal, r *engine.Receipt) error {
	if b.Size.Zero() {
		b.Size = engine.DefaultTermSize
	}
	if err := b.Size.Check(); err != nil {
		return err
	}
	if b.Command.Timeout != 0 {
		return engine.Errorf(engine.Invalid, "a terminal has no timeout")
	}
	if strings.TrimSpace(b.Command.Shell) == "" {
		b.Command.Shell = "exec /bin/sh"
	}
	if !sb.State.Live() {
		f.startApp(by, sb)
	}
	cmd := exec.Command("/bin/sh", "-c", b.Command.Shell)
	cmd.Dir = f.workspace(sb.ID)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	master, err := pty.StartWithSize(cmd, winsize(b.Size))
	if err != nil {
		return engine.Errorf(engine.Invalid, "start: %w", err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	p := &proc{born: len(f.procs), cancel: cancel, turn: make(chan struct{}, 1), input: master}
	p.tty = &tty{master: master, viewers: map[*fakeTerminal]engine.TermSize{}, moments: []engine.Recorded{{At: now(), Size: b.Size}}}
	row := engine.Process{
		ID: engine.ProcessID(engine.NewID(engine.ProcessPrefix)), Sandbox: sb.ID, Kind: engine.Interactive, Name: b.Name, Command: b.Command,
		Wanted: engine.WantRunning, State: engine.ProcessRunning, PID: cmd.Process.Pid, Started: now(), Starts: 1, By: by.by,
		Terminal: &engine.TerminalState{Size: b.Size, Recorded: b.Record},
	}
	r.Process = row.ID
	f.procs[row.ID] = p
	f.append(by, engine.ProcessChanged{Process: row})
	f.wg.Go(func() {
		stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_, _ = io.Copy(screen{f, p}, master) // ends when its last holder has gone
		stop()
		cancel()
		f.wait(context.Background(), cmd, p)
	})
	return nil
}

// screen is where a terminal's program prints.
type screen struct {
	f *Fake
	p *proc
}

func (s screen) Write(b []byte) (int, error) {
	s.f.mu.Lock()
	s.p.tty.moments = append(s.p.tty.moments, engine.Recorded{At: now(), Output: append([]byte(nil), b...)})
	s.f.mu.Unlock()
	return sink{s.f, &s.p.out}.Write(b)
}

func winsize(s engine.TermSize) *pty.Winsize {
	return &pty.Winsize{Cols: uint16(s.Cols), Rows: uint16(s.Rows)}
}

// fakeTerminal is a viewer. It knows nothing of screens: all that was printed
// is its screen.
type fakeTerminal struct {
	*fakePipe
	watch bool
}

// AttachTerminal attaches a viewer.
func (f *Fake) AttachTerminal(ctx context.Context, id engine.ProcessID, how engine.Attachment) (engine.Terminal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.process(id)
	switch {
	case err != nil:
		return nil, err
	case p.tty == nil:
		return nil, engine.Errorf(engine.Invalid, "%s has no terminal", id)
	}
	if err := how.Size.Check(); err != nil {
		return nil, err
	}
	if how.Watch {
		how.Size = engine.TermSize{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t := &fakeTerminal{fakePipe: &fakePipe{f: f, p: p, ctx: ctx, cancel: cancel, after: max(0, int(how.From))}, watch: how.Watch}
	p.tty.viewers[t] = how.Size
	f.resized(p)
	return t, nil
}

// resized gives a terminal the size that its viewers agree on.
func (f *Fake) resized(p *proc) {
	var size engine.TermSize
	for _, s := range p.tty.viewers {
		size = size.Least(s)
	}
	row := p.row
	state := *row.Terminal
	if !size.Zero() && size != state.Size && !row.State.Over() {
		_ = pty.Setsize(p.tty.master, winsize(size)) // it may be ending
		state.Size = size
		p.tty.moments = append(p.tty.moments, engine.Recorded{At: now(), Size: size})
	}
	state.Viewers, state.Used = len(p.tty.viewers), now()
	row.Terminal = &state
	if _, kept := f.snap.Sandboxes[row.Sandbox]; kept {
		f.append(itself, engine.ProcessChanged{Process: row})
	}
}

func (t *fakeTerminal) Write(b []byte) (int, error) {
	if t.watch {
		return 0, engine.Errorf(engine.Forbidden, "this viewer only watches")
	}
	return t.fakePipe.Write(b)
}

func (t *fakeTerminal) Resize(size engine.TermSize) error {
	if err := size.Check(); err != nil || t.watch {
		return err
	}
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	if _, in := t.p.tty.viewers[t]; in {
		t.p.tty.viewers[t] = size
		t.f.resized(t.p)
	}
	return nil
}

func (t *fakeTerminal) Position() engine.LogPosition {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	return engine.LogPosition(t.after)
}

func (t *fakeTerminal) Close() error {
	err := t.fakePipe.Close()
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	if _, in := t.p.tty.viewers[t]; in {
		delete(t.p.tty.viewers, t)
		t.f.resized(t.p)
	}
	return err
}

// Recording yields what a terminal printed.
func (f *Fake) Recording(_ context.Context, id engine.ProcessID) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) {
		f.mu.Lock()
		p, err := f.process(id)
		var list []engine.Recorded
		switch {
		case err == nil && p.tty == nil:
			err = engine.Errorf(engine.Invalid, "%s has no terminal", id)
		case err == nil:
			list = p.tty.moments
		}
		f.mu.Unlock()
		if err != nil {
			yield(engine.Recorded{}, err)
			return
		}
		for _, m := range list {
			if !yield(m, nil) {
				return
			}
		}
	}
}
