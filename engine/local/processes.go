package local

import (
	"context"
	"iter"
	"strings"

	"sbx/engine"
	"sbx/engine/logs"
	"sbx/store"
)

// spawn writes the row of a command; the supervisor runs it. A sandbox that is
// cold is brought up first.
func spawn(by engine.Actor, b engine.Spawn) (effect, error) {
	if err := checkCommand(b.Command); err != nil {
		return nil, err
	}
	return once(engine.Process{Sandbox: b.Sandbox, Kind: engine.Spawned, Command: b.Command, Stdin: b.Stdin, By: by}), nil
}

// once writes the row of what runs once.
func once(p engine.Process) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = p.Sandbox
		sb, err := tx.Sandbox(p.Sandbox)
		if err != nil {
			return err
		}
		if err := awake(tx, sb); err != nil {
			return err
		}
		p.ID = engine.ProcessID(engine.NewID(engine.ProcessPrefix))
		p.Wanted, p.State = engine.WantRunning, engine.ProcessStarting
		r.Process = p.ID
		return tx.PutProcess(p)
	}
}

// awake makes sure that a sandbox is up or on its way, and marks it as used.
// Begin is fired here, in the transaction that accepts the work, so that an
// eviction either came before or doesn't come.
func awake(tx *store.Tx, sb engine.Sandbox) error {
	if !sb.State.Live() || sb.Wanted != engine.Up {
		return wantUp(tx, sb)
	}
	sb.Active = tx.Now
	if sb.State == engine.Warm {
		sb.PreWarmed = false // whoever works in it has claimed it
	}
	if err := tx.PutSandbox(&sb); err != nil {
		return err
	}
	if sb.State == engine.Warm {
		claimed, err := tx.Fire(sb.ID, engine.Claim)
		if err != nil {
			return err
		}
		sb = claimed
	}
	if sb.State != engine.Waiting {
		return nil
	}
	_, err := tx.Fire(sb.ID, engine.Begin)
	return err
}

func checkCommand(c engine.Command) error {
	switch {
	case strings.TrimSpace(c.Shell) == "":
		return engine.Errorf(engine.Invalid, "the command is empty").WithHint("sbx exec <id> -- ls -l")
	case strings.ContainsRune(c.Shell, 0):
		return engine.Errorf(engine.Invalid, "the command has a NUL byte")
	case len(c.Shell) > 128<<10:
		return engine.Errorf(engine.Invalid, "the command is longer than 128 KiB").WithHint("put it in a file of the workspace")
	case c.Timeout < 0:
		return engine.Errorf(engine.Invalid, "the timeout is negative")
	}
	return checkEnv(c.Env)
}

func checkEnv(env map[string]string) error {
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return engine.Errorf(engine.Invalid, "%q is no name of an environment variable", k)
		}
		if strings.ContainsRune(v, 0) {
			return engine.Errorf(engine.Invalid, "the environment variable %s has a NUL byte", k)
		}
	}
	return nil
}

func killProcess(b engine.KillProcess) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		p, err := tx.Process(b.Process)
		if err != nil {
			return err
		}
		r.Process, r.Sandbox = p.ID, p.Sandbox
		switch {
		case p.Kind == engine.Supervised:
			return engine.Errorf(engine.Invalid, "%s is supervised: killed, it would be started again", p.Name).
				WithHint("restart it (sbx restart %s) or stop the sandbox (sbx stop %s)", p.Sandbox, p.Sandbox)
		case p.State.Over():
			r.Note = "it had exited"
			return nil
		}
		p.Wanted = engine.WantStopped
		return tx.PutProcess(p)
	}
}

// ProcessByID is a process, over or not.
func (e *Engine) ProcessByID(ctx context.Context, id engine.ProcessID) (p engine.Process, err error) {
	err = e.store.View(ctx, func(tx *store.Tx) error {
		p, err = tx.Process(id)
		return err
	})
	return p, err
}

// ListProcesses are a sandbox's processes, or all of the fleet's.
func (e *Engine) ListProcesses(ctx context.Context, id engine.SandboxID) ([]engine.Process, error) {
	return listProcesses(ctx, e.store, id)
}

func listProcesses(ctx context.Context, st *store.Store, id engine.SandboxID) (list []engine.Process, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		sandboxes, err := someSandboxes(tx, id)
		if err != nil {
			return err
		}
		for _, sb := range sandboxes {
			procs, err := tx.ProcessesOf(sb.ID)
			if err != nil {
				return err
			}
			list = append(list, procs...)
		}
		return nil
	})
	return list, err
}

// someSandboxes is one sandbox, or all if id is "".
func someSandboxes(tx *store.Tx, id engine.SandboxID) ([]engine.Sandbox, error) {
	if id == "" {
		return tx.Sandboxes()
	}
	sb, err := tx.Sandbox(id)
	return []engine.Sandbox{sb}, err
}

// Logs yields the lines of one process.
func (e *Engine) Logs(ctx context.Context, q engine.LogQuery) iter.Seq2[engine.LogLine, error] {
	return func(yield func(engine.LogLine, error) bool) {
		p, err := e.processOf(ctx, q.Sandbox, q.Process)
		if err != nil {
			yield(engine.LogLine{}, err)
			return
		}
		lq := logs.Query{After: q.After, Tail: q.Tail, Since: q.Since, Follow: q.Follow}
		if q.SinceStart && lq.After == 0 {
			lq.After = engine.LogPosition(p.LogStart)
		}
		stream := q.Stream
		if stream == "" {
			stream = engine.Stdout
		}
		for line, err := range e.logs.Lines(ctx, p.ID, stream, lq) {
			line.Process, line.Stream = p.ID, stream
			if !yield(line, err) {
				return
			}
		}
	}
}

// processOf is the process that ref means: an id, the name of a supervised
// one, or "" for the app.
func (e *Engine) processOf(ctx context.Context, id engine.SandboxID, ref string) (found engine.Process, err error) {
	if strings.HasPrefix(ref, engine.ProcessPrefix) {
		p, err := e.ProcessByID(ctx, engine.ProcessID(ref))
		if err == nil && id != "" && p.Sandbox != id {
			return p, engine.Errorf(engine.NotFound, "process %s is not of sandbox %s", ref, id)
		}
		return p, err
	}
	if ref == "" {
		ref = engine.AppName
	}
	err = e.store.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Sandbox(id); err != nil {
			return err
		}
		procs, err := tx.ProcessesOf(id)
		for _, p := range procs {
			if p.Kind == engine.Supervised && p.Name == ref {
				found = p
				return nil
			}
		}
		if err != nil {
			return err
		}
		return engine.Errorf(engine.NotFound, "sandbox %s has no process %q (yet)", id, ref).WithHint("see them with: sbx show %s", id)
	})
	return found, err
}
