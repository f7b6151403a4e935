package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/logs"
	"sbx/store"
)

// launch is how a process is started: worked out once for a start that
// somebody asked for, and used again for each restart.
type launch struct {
	box     driver.Box
	cmd     driver.Command
	spec    engine.ProcessSpec // of a supervised one
	port    int
	timeout time.Duration // of a command
}

// life is a process between its start and its exit, or a start that failed.
type life struct {
	proc     driver.Proc
	started  time.Time
	logStart engine.LogPosition
	outputs  []*output
	kept     driver.Kept // proc, if it outlives this engine
	adopted  bool        // another engine started it
	err      error
}

// dated gives an exit the times of this life.
func (l life) dated(e engine.Exit) engine.Exit {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC().Truncate(time.Millisecond)
	e.Uptime = engine.Duration(max(0, e.At.Sub(l.started)))
	return e
}

// maxReason bounds words that come from elsewhere.
const maxReason = 500

func notStarted(err error) engine.Exit {
	words := err.Error()
	return engine.Exit{
		Code: engine.ExitNotExecutable, At: time.Now().UTC().Truncate(time.Millisecond),
		Error: strings.ToValidUTF8(words[:min(len(words), maxReason)], ""),
	}
}

// output is a log's writer that tells when the box has closed it.
type output struct {
	*logs.Writer
	once   sync.Once
	closed chan struct{}
}

// Close closes the log's writer.
func (o *output) Close() error {
	defer o.once.Do(func() { close(o.closed) })
	return o.Writer.Close()
}

// prepare works out how to start the process: where, with what environment,
// on which port.
func (a *actor) prepare(ctx context.Context) (launch, error) {
	var (
		sb    engine.Sandbox
		app   int
		taken map[int]engine.ProcessID
	)
	err := a.s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if sb, err = tx.Sandbox(a.sandbox); err != nil {
			return err
		}
		if app, err = appPort(tx, a.sandbox); err != nil {
			return err
		}
		taken, err = tx.Ports()
		return err
	})
	if err != nil {
		return launch{}, err
	}
	l := launch{port: a.row.Port}
	if l.box, err = a.s.Box(ctx, a.sandbox); err != nil {
		return launch{}, err
	}
	var extra map[string]string
	if a.s.Env != nil {
		if extra, err = a.s.Env(ctx, sb); err != nil {
			return launch{}, err
		}
	}
	if !a.supervised {
		l.port, l.timeout = app, a.row.Command.Timeout.D()
		l.cmd = command(a.row, sb, over(extra, sb.Spec.App.Env), app)
		return l, nil
	}
	l.spec, _ = sb.Spec.Process(a.row.Name) // without one: no restarts, killed at once
	if l.port == 0 {
		if l.port, err = a.freePort(ctx, l.box, taken); err != nil {
			return launch{}, err
		}
	}
	l.cmd = command(a.row, sb, over(extra, l.spec.Env), l.port)
	return l, nil
}

// over is both environments; own counts.
func over(extra, own map[string]string) map[string]string {
	if len(extra) == 0 {
		return own
	}
	all := maps.Clone(extra)
	maps.Copy(all, own)
	return all
}

// command is the row's command with its whole environment. A command that was
// spawned has the app's, so that it finds what the app finds.
func command(p engine.Process, sb engine.Sandbox, env map[string]string, port int) driver.Command {
	cmd := driver.Command{Command: p.Command, Profile: driver.ProfileApp, Stdin: p.Stdin, Limits: &sb.Spec.Limits}
	cmd.Timeout = 0 // it is the actor's to keep
	if t := p.Terminal; t != nil {
		cmd.Terminal = &driver.Terminal{Size: t.Size}
	}
	cmd.Env = map[string]string{"PYTHONUNBUFFERED": "1"}
	maps.Copy(cmd.Env, env)
	maps.Copy(cmd.Env, p.Command.Env)
	if _, own := p.Command.Env["PORT"]; port != 0 && (!own || p.Kind == engine.Supervised) {
		cmd.Env["PORT"] = strconv.Itoa(port)
	}
	return cmd
}

func appPort(tx *store.Tx, id engine.SandboxID) (int, error) {
	procs, err := tx.ProcessesOf(id)
	for _, p := range procs {
		if p.Kind == engine.Supervised && p.Name == engine.AppName {
			return p.Port, nil
		}
	}
	return 0, err
}

func (a *actor) freePort(ctx context.Context, box driver.Box, taken map[int]engine.ProcessID) (int, error) {
	port, err := box.FreePort(ctx, func(port int) bool {
		_, held := taken[port]
		return held || a.s.policy.outside(port)
	})
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// errTaken is a port that another row took between the look and the commit.
var errTaken = errors.New("the port was taken meanwhile")

// portTries is how often a start looks for another port.
const portTries = 5

// first makes the first life of a start that somebody asked for. ok is false
// if it isn't wanted any more.
func (a *actor) first(ctx, last context.Context) (l life, ok bool) {
	for try := 1; ; try++ {
		plan, err := a.prepare(ctx)
		if ctx.Err() != nil || engine.AsCode(err) == engine.NotFound && a.removed(last) {
			return life{}, false
		}
		a.plan = plan
		begun, commitErr := a.begin(last, err != nil)
		switch {
		case commitErr != nil && errors.Is(commitErr, errTaken) && try < portTries:
			continue
		case errors.Is(commitErr, errTaken):
			return life{err: commitErr}, true
		case !begun:
			pause(ctx, a.wake)
			return life{}, false
		case err != nil:
			a.endLogs()
			return life{err: err}, true
		}
		return a.launch(last), true
	}
}

// launch starts the process once more.
func (a *actor) launch(last context.Context) life {
	if a.plan.box == nil { // it was taken up without
		plan, err := a.prepare(last)
		if err != nil {
			return life{err: err, started: time.Now()}
		}
		a.plan = plan
	}
	if box, ok := a.plan.box.(driver.Keeper); ok {
		return a.keep(last, box)
	}
	outs, err := a.outputs()
	if err != nil {
		a.endLogs()
		return life{err: err}
	}
	l := life{outputs: outs, logStart: outs[0].Position()}
	if len(outs) == 1 {
		l.proc, l.err = a.plan.box.Start(last, a.id, a.plan.cmd, outs[0], nil)
	} else {
		l.proc, l.err = a.plan.box.Start(last, a.id, a.plan.cmd, outs[0], outs[1])
	}
	l.started = time.Now()
	if l.err != nil {
		for _, o := range outs {
			o.Close() // nothing was written; closing says that nothing will be
		}
		return l
	}
	a.s.mu.Lock()
	a.begun(l.proc)
	a.s.mu.Unlock()
	return l
}

// terminal is what is particular to a terminal; nil for others.
func (a *actor) terminal() *engine.TerminalState {
	if a.supervised {
		return nil
	}
	return a.row.Terminal
}

// outputs opens the logs: one for a supervised process, whose streams share
// it; for a command two that end with it, or one if it is on a terminal.
func (a *actor) outputs() ([]*output, error) {
	streams := []engine.Stream{engine.Stdout}
	if !a.supervised && a.plan.cmd.Terminal == nil {
		streams = append(streams, engine.Stderr)
	}
	// The row of a supervised one may be written at this moment: see atOnce.
	if t := a.terminal(); t != nil && t.Recorded {
		if err := a.s.Logs.Fine(a.id); err != nil {
			return nil, err
		}
	}
	var outs []*output
	for _, st := range streams {
		w, err := a.s.Logs.Writer(a.id, st, !a.supervised)
		if err != nil {
			for _, o := range outs {
				o.Close() // empty
			}
			return nil, err
		}
		outs = append(outs, &output{Writer: w, closed: make(chan struct{})})
	}
	return outs, nil
}

// endLogs ends the logs of a command that never began to write, so that its
// followers don't wait for ever.
func (a *actor) endLogs() {
	if a.supervised {
		return
	}
	if err := a.s.Logs.End(a.id); err != nil {
		a.complain("ending its logs", err)
	}
}

// pause lets the journal catch up with a row that has changed.
func pause(ctx context.Context, wake <-chan struct{}) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-t.C:
	}
}
