package playbook

import (
	"context"
	"fmt"
	"strings"
)

// disk makes room where the disk is full, from caches alone.
type disk struct{}

func (disk) Name() string { return "free disk" }
func (disk) Edits() bool  { return false }

var noSpace = lazily(`(?i)ENOSPC: no space|no space left on device|disk quota exceeded|\bErrno 28\b|database or disk is full|file system is full`)

func (disk) Applies(ev Evidence) (string, bool) {
	if len(ev.Caches) == 0 {
		return "", false
	}
	most := ev.Spec.Limits.Disk
	switch {
	case noSpace().MatchString(ev.Log):
		return fmt.Sprintf("it found no space on its disk; %s can be made again", strings.Join(ev.Caches, ", ")), true
	case most > 0 && ev.Usage.Disk >= most-most/20:
		return fmt.Sprintf("it uses %s of the %s of disk that it may; %s can be made again", ev.Usage.Disk, most, strings.Join(ev.Caches, ", ")), true
	}
	return "", false
}

func (disk) Apply(ctx context.Context, ev Evidence, w Workbench) error {
	return removeCaches(ctx, ev, w)
}

func removeCaches(ctx context.Context, ev Evidence, w Workbench) error {
	if err := w.Remove(ctx, ev.Caches); err != nil {
		return err
	}
	return w.Restart(ctx)
}
