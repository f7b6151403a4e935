package playbook

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// state sets aside what a supervisor within the sandbox keeps of itself, where
// that can't be read any more. It is renamed and not removed: what it holds may
// be of use to somebody.
type state struct{}

func (state) Name() string { return "supervisor state" }
func (state) Edits() bool  { return false }

func (state) Applies(ev Evidence) (string, bool) {
	if len(ev.State) == 0 || !ev.Down() {
		return "", false
	}
	return fmt.Sprintf("%s, which a supervisor keeps, is corrupt, and the log names it%s", ev.State[0], andMore(len(ev.State)-1)), true
}

func (state) Apply(ctx context.Context, ev Evidence, w Workbench) error {
	for _, p := range ev.State {
		if err := w.Aside(ctx, p); err != nil {
			return err
		}
	}
	return w.Restart(ctx)
}

// StateDirs are where supervisors keep their state.
var StateDirs = []string{".pm2", ".forever", ".supervisor", ".overmind", ".foreman", ".nodemon", ".honcho"}

// IsState reports whether a file is a supervisor's own state, by its name.
func IsState(name string) bool {
	switch path.Ext(name) {
	case ".json", ".pm2", ".state":
		return true
	}
	return strings.HasSuffix(name, ".dump")
}
