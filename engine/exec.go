package engine

import "context"

// ExecResult is how a command ended (SPEC §6, wait).
type ExecResult struct {
	Process  ProcessID `json:"process"`
	Success  bool      `json:"success"`
	ExitCode int       `json:"exitCode"`
	Millis   int64     `json:"executionTimeMs"`
	TimedOut bool      `json:"timedOut,omitempty"`
	Killed   bool      `json:"killed,omitempty"`
	OOM      bool      `json:"oom,omitempty"` // the kernel ended it for want of memory
	// Error is the exit's: why it was not started, or "the engine stopped".
	Error string `json:"error,omitempty"`
}

// Exec runs a command in a sandbox, hands each line that it writes to out (one
// line at a time, those of a stream in order), and returns how it ended. When
// ctx ends first, the command is killed, and Exec returns when it is gone.
func Exec(ctx context.Context, e Engine, id SandboxID, cmd Command, out func(LogLine)) (ExecResult, error) {
	h, err := SpawnHandle(ctx, e, id, cmd, SpawnOptions{OnStdout: out, OnStderr: out, Keep: -1})
	if err != nil {
		return ExecResult{}, err
	}
	res, err := h.Wait(context.WithoutCancel(ctx)) // the handle ends soon after ctx
	if ctx.Err() != nil && (err != nil || res.Killed) {
		err = ctx.Err()
	}
	return res.ExecResult, err
}

func resultOf(p Process) ExecResult {
	res := ExecResult{Process: p.ID, ExitCode: ExitSignalBase}
	if p.Exit != nil {
		res.ExitCode, res.TimedOut, res.Killed = p.Exit.Code, p.Exit.TimedOut, p.Exit.Killed
		res.OOM, res.Error = p.Exit.OOM, p.Exit.Error
		res.Millis = p.Exit.Uptime.D().Milliseconds()
	}
	res.Success = res.ExitCode == 0
	return res
}
