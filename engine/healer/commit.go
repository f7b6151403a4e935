package healer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/engine"
	"sbx/store"
)

// accept commits what the run changed: only paths that nobody else touched and
// that were clean before. The others stay uncommitted, with the fix in them.
func (h *heal) accept(ctx context.Context, end ending) (result, error) {
	if h.track == nil {
		return result{}, nil
	}
	mine, theirs, err := h.track.mine(ctx)
	if ctx.Err() != nil {
		return result{}, context.Cause(ctx)
	}
	if err != nil {
		return result{notCommitted: "what the run changed could not be found: " + err.Error()}, nil
	}
	done := result{changed: sortedAll(mine, theirs)}
	if len(done.changed) == 0 {
		return done, nil
	}
	dirty, ok, why, err := h.box.Checkpoints().Dirty(ctx)
	switch {
	case err != nil:
		done.notCommitted = err.Error()
		return done, nil
	case !ok || why != "":
		done.notCommitted = why
		if why == "" {
			done.notCommitted = "there is no git repository"
		}
		return done, nil
	}
	paths, out := commitPaths(mine, theirs, h.run.Baseline, dirty)
	paths, leaks := h.leaks(ctx, paths)
	out = append(out, leaks...)
	if len(paths) > 0 {
		done.commit, err = h.box.Checkpoints().Commit(ctx, paths, h.message(end))
		if err != nil {
			out = append(out, list(paths)+": "+err.Error())
		}
	}
	if done.commit != "" {
		err := h.writeEnd(ctx, func(_ *store.Tx, run *engine.HealRun) error {
			run.Commit, run.Changed = done.commit, done.changed // from here on it is not to be undone
			return nil
		})
		if err != nil {
			return done, err
		}
	}
	done.notCommitted = strings.Join(out, "; ")
	return done, h.noteCommit(ctx, done, paths)
}

// commitPaths says which of the run's paths are committed, and which are left
// out and why. dirty are what git shows as changed now: a path of the run that
// isn't among them is ignored by git, which keeps a .env out of history.
func commitPaths(mine, theirs, baseline, dirty []string) (paths, out []string) {
	var before, ignored []string
	for _, p := range mine {
		was, is := covers(baseline, p), covers(dirty, p)
		switch {
		case was && !is: // it is as committed again: there is nothing to commit
		case was:
			before = append(before, p)
		case !is:
			ignored = append(ignored, p)
		default:
			paths = append(paths, p)
		}
	}
	if len(before) > 0 {
		out = append(out, list(before)+" had uncommitted changes before the run")
	}
	if len(theirs) > 0 {
		out = append(out, list(theirs)+" was changed by somebody else during the run")
	}
	if len(ignored) > 0 {
		out = append(out, list(ignored)+" is ignored by git")
	}
	return paths, out
}

// covers reports whether p is one of paths or lies in one (git shows an
// untracked directory as "dir/").
func covers(paths []string, p string) bool {
	return slices.ContainsFunc(paths, func(have string) bool {
		return have == p || strings.HasSuffix(have, "/") && strings.HasPrefix(p, have)
	})
}

func (h *heal) message(end ending) string {
	subject := line(end.summary, 60)
	if subject == "" {
		subject = "made it work again"
	}
	return fmt.Sprintf("sbx heal: %s\n\nHeal run %s of sandbox %s, by %s.\nCause: %s\n",
		subject, h.id, h.sb.Name, end.fixedBy, h.run.Cause)
}

func (h *heal) noteCommit(ctx context.Context, done result, paths []string) error {
	switch {
	case done.commit != "":
		text := fmt.Sprintf("committed %s as %s", list(paths), cutHead(done.commit, 12))
		if done.notCommitted != "" {
			text += "; not committed: " + done.notCommitted
		}
		return h.note(ctx, "commit", engine.StepOK, text)
	case done.notCommitted != "":
		return h.note(ctx, "commit", engine.StepOK, "not committed: "+done.notCommitted)
	}
	return nil
}
