package playbook

import (
	"context"
	"fmt"
)

// port moves the app off a port that a stranger holds, or a command that
// somebody runs in the sandbox: that one is at work and is left alone. A port
// that the spec fixes stays: whoever fixed it wants to find the app there.
type port struct{}

func (port) Name() string { return "another port" }
func (port) Edits() bool  { return false }

func (port) Applies(ev Evidence) (string, bool) {
	h := ev.Holder
	spec, ok := ev.Spec.Process(ev.Process.Name)
	if !ok || spec.Port != 0 || !h.Held || h.Own && !(h.Live && ev.Down()) {
		return "", false
	}
	return fmt.Sprintf("port %d is held by %s", ev.Process.Port, h), true
}

func (port) Apply(ctx context.Context, _ Evidence, w Workbench) error {
	if err := w.MovePort(ctx); err != nil {
		return err
	}
	return w.Restart(ctx)
}
