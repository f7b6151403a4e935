package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ExecResult is how a command ended (SPEC §6, wait).
type ExecResult struct {
	Process  ProcessID `json:"process"`
	Success  bool      `json:"success"`
	ExitCode int       `json:"exitCode"`
	Millis   int64     `json:"executionTimeMs"`
	TimedOut bool      `json:"timedOut,omitempty"`
	Killed   bool      `json:"killed,omitempty"`
}

// Exec runs a command in a sandbox, hands each line that it writes to out (one
// line at a time, those of a stream in order), and returns how it ended. When
// ctx ends first, the command is killed.
func Exec(ctx context.Context, e Engine, id SandboxID, cmd Command, out func(LogLine)) (ExecResult, error) {
	r, err := e.Do(ctx, NewAction(Spawn{Sandbox: id, Command: cmd}))
	if err != nil {
		return ExecResult{}, err
	}
	if err := execOutput(ctx, e, id, r.Process, out); err != nil {
		return ExecResult{Process: r.Process}, execAbort(ctx, e, r.Process, err)
	}
	p, err := waitOver(ctx, e, r.Process)
	if err != nil {
		return ExecResult{Process: r.Process}, execAbort(ctx, e, r.Process, err)
	}
	return resultOf(p), nil
}

func resultOf(p Process) ExecResult {
	res := ExecResult{Process: p.ID, ExitCode: ExitSignalBase}
	if p.Exit != nil {
		res.ExitCode, res.TimedOut, res.Killed = p.Exit.Code, p.Exit.TimedOut, p.Exit.Killed
		res.Millis = p.Exit.Uptime.D().Milliseconds()
	}
	res.Success = res.ExitCode == 0
	return res
}

// execOutput reads both streams to their ends.
func execOutput(ctx context.Context, e Engine, id SandboxID, ps ProcessID, out func(LogLine)) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // out is called by one stream at a time
		errs [2]error
	)
	for i, stream := range []Stream{Stdout, Stderr} {
		wg.Go(func() {
			q := LogQuery{Sandbox: id, Process: string(ps), Stream: stream, Follow: true}
			for line, err := range e.Logs(ctx, q) {
				if err != nil {
					errs[i] = err
					return
				}
				mu.Lock()
				out(line)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[0], errs[1])
}

// waitOver waits until a process has nothing left to happen.
func waitOver(ctx context.Context, e Engine, id ProcessID) (Process, error) {
	err := Watch(ctx, e, func(s *Snapshot, ev *Event) (bool, error) {
		if p, ok := s.Processes[id]; ok && !p.State.Over() {
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return Process{}, err
	}
	return e.ProcessByID(ctx, id)
}

// execAbort kills the command of a caller that has gone away.
func execAbort(ctx context.Context, e Actions, id ProcessID, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := e.Do(ctx, NewAction(KillProcess{Process: id}))
	if err != nil && !errors.Is(err, NotFound) {
		return errors.Join(cause, err)
	}
	return cause
}
