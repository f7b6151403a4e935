package healer

import (
	"context"
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/engine/driver"
)

// Remove removes what the evidence found to be stale or a cache. It runs as the
// sandbox, in its confinement: a link leads nowhere that the sandbox itself
// could not go.
func (b *bench) Remove(ctx context.Context, paths []string) error {
	return b.mend(ctx, "rm -rf --", "removed", paths)
}

// Allow gives the owner the rights that its files lack.
func (b *bench) Allow(ctx context.Context, lacks string, paths []string) error {
	switch lacks {
	case "r", "x", "rx":
		return b.mend(ctx, "chmod u+"+lacks+" --", "chmod u+"+lacks, paths)
	}
	return engine.Errorf(engine.Invalid, "no mode %q", lacks)
}

// Aside renames a file to a name that is free.
func (b *bench) Aside(ctx context.Context, p string) error {
	q := quote(p)
	shell := fmt.Sprintf(`n=1; while [ -e %s.aside-$n ]; do n=$((n+1)); done; mv -- %s %s.aside-$n`, q, q, q)
	return b.shell(ctx, shell, "renamed "+p+" to "+p+".aside-…")
}

func (b *bench) mend(ctx context.Context, command, words string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	shell := command
	for _, p := range paths {
		if err := checkMend(p, b.h.sb.Spec.Heal.Protected); err != nil {
			return err
		}
		shell += " " + quote("./"+p)
	}
	return b.shell(ctx, shell, words+" "+list(paths))
}

// checkMend is checkPath, but for git's own locks.
func checkMend(p string, protected []string) error {
	if strings.HasPrefix(p, ".git/") && strings.HasSuffix(p, ".lock") && !strings.Contains(p, "..") {
		return nil
	}
	return checkPath(p, protected)
}

// shell runs a repair in the sandbox as the sandbox itself would, since git's
// locks are kept from what a model runs, and says what was done.
func (b *bench) shell(ctx context.Context, shell, words string) error {
	out, exit, err := b.h.exec(ctx, b.h.command(shell, driver.ProfileApp), b.h.p.UndoTimeout, 4<<10)
	if err != nil {
		return err
	}
	if exit.Code != 0 {
		return fmt.Errorf("%s: %s", exit, line(b.h.words(out), maxCause))
	}
	return b.h.note(ctx, "mended", engine.StepOK, words)
}
