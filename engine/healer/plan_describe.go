package healer

import (
	"context"
	"fmt"

	"sbx/engine/healer/playbook"
)

// describe is what a playbook would do, told by the playbook itself to a bench
// that only listens.
func (h *heal) describe(ctx context.Context, p playbook.Playbook, ev playbook.Evidence) ([]string, error) {
	b := &listener{install: playbook.CleanInstall(h.sb.Spec.App.Install, ev.Lockfiles)}
	err := p.Apply(ctx, ev, b)
	return b.heard, err
}

// listener is a bench on which nothing is done.
type listener struct {
	install string
	heard   []string
}

var _ playbook.Workbench = (*listener)(nil)

func (l *listener) hear(format string, args ...any) error {
	l.heard = append(l.heard, fmt.Sprintf(format, args...))
	return nil
}

func (l *listener) Restart(context.Context) error { return l.hear("restart the app") }
func (l *listener) Install(context.Context) error { return l.hear("install with: %s", l.install) }
func (l *listener) KillStrays(context.Context) error {
	return l.hear("kill what earlier starts of this sandbox left running")
}
func (l *listener) MovePort(context.Context) error { return l.hear("give the app another port") }
func (l *listener) PutBack(_ context.Context, m playbook.Missing) error {
	return l.hear("put back %s as %s has it", m.Path, m.Source())
}

func (l *listener) Remove(_ context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return l.hear("remove %s", list(paths))
}

func (l *listener) Allow(_ context.Context, lacks string, paths []string) error {
	return l.hear("chmod u+%s %s", lacks, list(paths))
}

func (l *listener) Aside(_ context.Context, p string) error {
	return l.hear("rename %s out of the way", p)
}
