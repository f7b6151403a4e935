package process_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/logs"
	"sbx/engine/process"
	"sbx/store"
)

// box is a driver.Box whose processes are scripts of the test.
type box struct {
	driver.Box // what the supervisor doesn't use

	// run plays a process: what it returns is its exit code. ctx ends when the
	// process is killed.
	run func(ctx context.Context, p *proc) int

	mu      sync.Mutex
	started []*proc
	refuse  error         // of Start
	back    time.Duration // that the host's clock was put back before an exit
	nextPID int
}

type proc struct {
	box    *box
	id     engine.ProcessID
	cmd    driver.Command
	pid    int
	out    io.Writer
	stdin  *io.PipeReader
	input  *io.PipeWriter
	at     time.Time
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	exit engine.Exit
}

func (b *box) Start(_ context.Context, id engine.ProcessID, cmd driver.Command, out, errs io.WriteCloser) (driver.Proc, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return nil, b.refuse
	}
	b.nextPID++
	ctx, cancel := context.WithCancel(context.Background())
	p := &proc{box: b, id: id, cmd: cmd, pid: 1000 + b.nextPID, out: out, at: time.Now(), cancel: cancel, done: make(chan struct{})}
	if cmd.Stdin {
		p.stdin, p.input = io.Pipe()
	}
	b.started = append(b.started, p)
	run, back := b.run, b.back
	go func() {
		code := run(ctx, p)
		p.mu.Lock()
		p.exit.Code, p.exit.At = code, time.Now().Add(-back)
		p.mu.Unlock()
		out.Close()
		if errs != nil {
			errs.Close()
		}
		close(p.done)
	}()
	return p, nil
}

func (b *box) FreePort(_ context.Context, taken func(int) bool) (int, error) {
	for port := 20000; port < 30000; port++ {
		if !taken(port) {
			return port, nil
		}
	}
	return 0, errors.New("no port")
}

func (b *box) setRefuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = err
}

// plays changes what processes that start from now on do.
func (b *box) plays(run func(context.Context, *proc) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run = run
}

func (b *box) procs() []*proc {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*proc(nil), b.started...)
}

func (p *proc) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *proc) PID() int { return p.pid }

func (p *proc) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, ctx.Err()
	}
}

func (p *proc) Signal(context.Context, string) error { return nil }

func (p *proc) Kill(_ context.Context, _ time.Duration) error {
	if p.alive() {
		p.mu.Lock()
		p.exit.Killed, p.exit.Signal = true, "SIGTERM"
		p.mu.Unlock()
	}
	p.cancel()
	<-p.done
	return nil
}

func (p *proc) Input() io.WriteCloser {
	if p.input == nil {
		return nil
	}
	return p.input
}

// lives is a process that runs until it is killed.
func lives(ctx context.Context, _ *proc) int {
	<-ctx.Done()
	return 143
}

// livesFor is a process that exits by itself.
func livesFor(d time.Duration, code int) func(context.Context, *proc) int {
	return func(ctx context.Context, _ *proc) int {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return code
		case <-ctx.Done():
			return 143
		}
	}
}

// world is a supervisor over a real store, real logs and a fake box.
type world struct {
	t     testing.TB
	box   *box
	store *store.Store
	logs  *logs.Store
	sup   *process.Supervisor
	said  *bytes.Buffer // by the supervisor's log
	stop  func()        // ends Run and waits for it

	sandbox engine.SandboxID
	app     engine.ProcessID
}

const (
	sandboxID = engine.SandboxID("sb-aaaaaaaaaa")
	appID     = engine.ProcessID("ps-aaaaaaaaaa")
)

// spec has SPEC §3's numbers.
func spec() engine.ProcessSpec {
	return engine.ProcessSpec{
		Command: "serve", Env: map[string]string{"MODE": "test"},
		MaxRestarts: engine.DefaultMaxRestarts, MinUptime: engine.Duration(engine.DefaultMinUptime),
		RestartDelay: engine.Duration(engine.DefaultRestartDelay), StopGrace: engine.Duration(engine.DefaultStopGrace),
	}
}

// begin opens a world with one sandbox that is up and one app that is wanted
// running. The supervisor runs until the test ends.
func begin(t testing.TB, sp engine.ProcessSpec, run func(context.Context, *proc) int) *world {
	t.Helper()
	w := open(t, t.TempDir(), run)
	w.update(func(tx *store.Tx) error {
		sb := engine.Sandbox{
			ID: sandboxID, Name: "one", Spec: engine.Spec{App: sp}, Wanted: engine.Up,
			State: engine.Waiting, Health: engine.Starting, Created: tx.Now,
		}
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		return tx.PutProcess(engine.Process{
			ID: appID, Sandbox: sandboxID, Name: engine.AppName, Kind: engine.Supervised,
			Command: engine.Command{Shell: sp.Command}, Wanted: engine.WantRunning, State: engine.ProcessStopped,
		})
	})
	w.run()
	return w
}

func open(t testing.TB, dir string, run func(context.Context, *proc) int) *world {
	t.Helper()
	st, err := store.Open(t.Context(), dir, store.Options{Sync: "normal"})
	if err != nil {
		t.Fatal(err)
	}
	ls, err := logs.Open(dir+"/logs", logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, box: &box{run: run}, store: st, logs: ls, said: &bytes.Buffer{}, sandbox: sandboxID, app: appID}
	w.sup = &process.Supervisor{
		Store: st, Logs: ls, Log: slog.New(slog.NewTextHandler(w.said, nil)),
		Box: func(context.Context, engine.SandboxID) (driver.Box, error) { return w.box, nil },
	}
	t.Cleanup(func() {
		if w.stop != nil {
			w.stop()
		}
		ls.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() && w.said.Len() > 0 {
			t.Log(w.said)
		}
	})
	return w
}

// run starts the supervisor.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.sup.Run(ctx); !errors.Is(err, context.Canceled) {
			w.t.Errorf("the supervisor ended: %v", err)
		}
	}()
	w.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

func (w *world) update(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := w.store.Update(context.Background(), fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) process(id engine.ProcessID) (p engine.Process) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		p, err = tx.Process(id)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) signals() (list []engine.Signal) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		list, err = tx.Signals(sandboxID, time.Time{})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// want changes what is wanted of a process, as an action does.
func (w *world) want(id engine.ProcessID, wanted engine.WantedProcess) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		p, err := tx.Process(id)
		if err != nil {
			return err
		}
		p.Wanted = wanted
		return tx.PutProcess(p)
	})
}

func (w *world) health(on engine.HealthTrigger) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		_, err := tx.FireHealth(sandboxID, on, "a test")
		return err
	})
}

func (w *world) judge(action engine.VerdictAction) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		all, err := tx.Signals(sandboxID, time.Time{})
		for _, sig := range all {
			if sig.Verdict == nil {
				sig.Verdict = &engine.Verdict{Action: action, At: tx.Now}
				err = errors.Join(err, tx.JudgeSignal(sig))
			}
		}
		return err
	})
}

// wait returns the process when ok holds for it.
func (w *world) wait(id engine.ProcessID, ok func(engine.Process) bool) engine.Process {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // of the bubble
	defer cancel()
	pos, err := w.store.Position(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if p := w.process(id); ok(p) {
		return p
	}
	for ev, err := range w.store.Events(ctx, pos.Seq) {
		if err != nil {
			w.t.Fatalf("%s never got there: %+v", id, w.process(id))
		}
		if b, is := ev.Body.(engine.ProcessChanged); is && b.Process.ID == id && ok(b.Process) {
			return b.Process
		}
	}
	panic("unreachable")
}

func is(state engine.ProcessState) func(engine.Process) bool {
	return func(p engine.Process) bool { return p.State == state }
}

func (w *world) spawn(id engine.ProcessID, cmd engine.Command, stdin bool) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		return tx.PutProcess(engine.Process{
			ID: id, Sandbox: sandboxID, Kind: engine.Spawned, Command: cmd, Stdin: stdin,
			Wanted: engine.WantRunning, State: engine.ProcessStarting,
		})
	})
}

func (p *proc) Resize(context.Context, engine.TermSize) error { return nil }
