package playbook

import (
	"context"
	"fmt"
)

// stray kills what an earlier start of this sandbox left on the app's port.
type stray struct{}

func (stray) Name() string { return "kill stray" }
func (stray) Edits() bool  { return false }

func (stray) Applies(ev Evidence) (string, bool) {
	if h := ev.Holder; h.Held && h.Own && !h.Live {
		return fmt.Sprintf("port %d is held by %s", ev.Process.Port, h), true
	}
	return "", false
}

func (stray) Apply(ctx context.Context, _ Evidence, w Workbench) error {
	if err := w.KillStrays(ctx); err != nil {
		return err
	}
	return w.Restart(ctx)
}
