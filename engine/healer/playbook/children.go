package playbook

import (
	"context"
	"fmt"
)

// children ends what the app and its orphans have started without end, where
// that leaves no room for another process.
type children struct{}

func (children) Name() string { return "runaway children" }
func (children) Edits() bool  { return false }

var noFork = lazily(`(?i)fork: (?:retry: )?resource temporarily unavailable|cannot fork|can't fork|can't start new thread|` +
	`(?:spawn|fork|clone|pthread_create)[^\n]{0,80}(?:EAGAIN|resource temporarily unavailable)|` +
	`BlockingIOError: \[Errno 11\]|failed to create new OS thread|unable to create (?:native |new )?thread`)

func (children) Applies(ev Evidence) (string, bool) {
	most, n := ev.Spec.Limits.Processes, ev.Usage.Processes
	if most > 0 && n*10 >= most*9 {
		return fmt.Sprintf("it runs %d processes of the %d that it may", n, most), true
	}
	if found := noFork().FindString(ev.Log); found != "" {
		return fmt.Sprintf("it could start no further process: %s", found), true
	}
	return "", false
}

func (children) Apply(ctx context.Context, _ Evidence, w Workbench) error {
	if err := w.KillStrays(ctx); err != nil {
		return err
	}
	return w.Restart(ctx) // which ends all that the app itself has started
}
