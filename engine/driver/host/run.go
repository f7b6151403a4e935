//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// A launch is a command and the view of the host that it gets.
type launch struct {
	Argv []string
	Env  []string // K=V, over the allow-list
	Dir  string   // in the workspace; "" is its root
	// Profile says which of the rest apply; Protected and .git are read-only
	// for [driver.ProfileAgent] alone.
	Profile   driver.Profile
	Protected []string
	// Mounts are shown beside the workspace, at the same or another path.
	Mounts            []mount
	ReadOnlyWorkspace bool
	WritableGit       bool
	Network           bool
	Terminal          *driver.Terminal
}

// A mount shows Source at Target.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// errCut: a command wrote more than it was allowed to; it was killed.
var errCut = errors.New("output is too long")

// A runError is a short-lived command that ran and didn't succeed.
type runError struct {
	Argv   []string
	Exit   engine.Exit
	Stderr string
}

func (e *runError) Error() string {
	text := strings.TrimSpace(e.Stderr)
	if text == "" {
		return fmt.Sprintf("%s: %s", e.Argv[0], e.Exit)
	}
	return fmt.Sprintf("%s: %s: %s", e.Argv[0], e.Exit, text)
}

// run runs a short-lived command as the workspace's owner, confined, and
// returns what it wrote. The whole tree is killed when ctx ends or when stdout
// grows over maxOut (then the error is errCut and stdout is the first maxOut
// bytes). Another exit than 0 is a *runError.
func (b *box) run(ctx context.Context, l launch, stdin io.Reader, maxOut int) (stdout, stderr []byte, err error) {
	out := newLimited(maxOut)
	errs := newLimited(64 << 10)
	p, err := b.start(ctx, engine.ProcessID(engine.NewID(engine.ProcessPrefix)), l, stdin != nil, out, errs)
	if err != nil {
		return nil, nil, err
	}
	var feed sync.WaitGroup
	if stdin != nil {
		feed.Go(func() {
			io.Copy(p.Input(), stdin) // the command may end without reading it all
			p.Input().Close()
		})
	}
	exit, err := b.watchRun(ctx, p, out)
	feed.Wait()
	for _, w := range []*limited{out, errs} {
		<-w.closed
	}
	stdout, stderr = out.bytes(), errs.bytes()
	switch {
	case err != nil:
		return stdout, stderr, err
	case out.isCut():
		return stdout, stderr, fmt.Errorf("%s: %w", l.Argv[0], errCut)
	case exit.Code != 0:
		return stdout, stderr, &runError{Argv: l.Argv, Exit: exit, Stderr: string(stderr)}
	}
	return stdout, stderr, nil
}

// watchRun waits for the command, or ends it.
func (b *box) watchRun(ctx context.Context, p *proc, out *limited) (engine.Exit, error) {
	var cause error
	select {
	case <-p.child.Done():
		exit, err := p.Wait(context.WithoutCancel(ctx)) // it is there
		if p.child.Tree().Inside {
			return exit, err // the kernel takes the rest down
		}
		return exit, errors.Join(err, p.child.End(ctx))
	case <-out.full:
	case <-ctx.Done():
		cause = ctx.Err()
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := p.Kill(kill, 0); err != nil {
		return engine.Exit{}, errors.Join(cause, err)
	}
	exit, _ := p.Wait(kill) // Kill has waited for it
	return exit, cause
}

// limited keeps the first max bytes that are written to it.
type limited struct {
	max    int
	full   chan struct{} // closed when more was written
	closed chan struct{}

	mu  sync.Mutex
	buf bytes.Buffer
	cut bool
}

func newLimited(max int) *limited {
	return &limited{max: max, full: make(chan struct{}), closed: make(chan struct{})}
}

func (w *limited) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(p), w.max-w.buf.Len())
	w.buf.Write(p[:n])
	if n < len(p) && !w.cut {
		w.cut = true
		close(w.full)
	}
	return len(p), nil
}

func (w *limited) Close() error {
	close(w.closed)
	return nil
}

func (w *limited) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.buf.Bytes())
}

func (w *limited) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}
