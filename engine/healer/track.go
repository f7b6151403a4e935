package healer

import (
	"context"
	"slices"

	"sbx/engine/driver"
)

// track tells a run's changes from everybody else's. The workspace is saved
// before and after each call of the run: what changed in between is the run's,
// what changed between two calls is the user's (or the app's).
//
//	base ── call ── (user) ── call ── … ── end
//	      └ run's ┘ └ not ┘ └ run's ┘
//
// To undo, a path goes back to what it was before the run touched it: to base,
// or to what somebody else had made of it since. A path whose content is no
// longer what the run left stays as it is.
type track struct {
	saved driver.Checkpoints
	base  string // the tree before the run
	last  string // the tree after the last call
	// left are the paths whose content is the run's.
	left map[string]bool
	// since is the tree that has what somebody else made of a path after base.
	since map[string]string
	// kept are paths of the run that somebody else changed too.
	kept map[string]bool
	// owed is the path of a call whose end could not be saved.
	owed *string
	// keep writes a moment down.
	keep func(ctx context.Context, m moment) error
}

func newTrack(saved driver.Checkpoints, base string) *track {
	return &track{
		saved: saved, base: base, last: base,
		left: map[string]bool{}, since: map[string]string{}, kept: map[string]bool{},
	}
}

// around saves the workspace before and after do. Changes count as the run's
// if they are under own, "" being all of it. It returns their diff.
func (t *track) around(ctx context.Context, own string, do func() error) (string, error) {
	if err := t.others(ctx); err != nil {
		return "", err
	}
	t.owed = &own
	doErr := do()
	// What was done must be known even if the run was cut in the middle of it.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	after, err := t.saved.Save(saving, "after a call")
	if err != nil {
		return "", firstError(doErr, err)
	}
	diff, err := t.advance(saving, moment{call: true, own: own, tree: after})
	if err == nil {
		t.owed = nil
	}
	return diff, firstError(doErr, err)
}

// others takes note of what somebody else changed since the last call.
func (t *track) others(ctx context.Context) error {
	now, err := t.saved.Save(ctx, "before a call")
	if err != nil {
		return err
	}
	m := moment{tree: now}
	if t.owed != nil { // a call could not be followed to its end: what it did is still the run's
		m.call, m.own = true, *t.owed
	}
	if _, err = t.advance(ctx, m); err == nil {
		t.owed = nil
	}
	return err
}

// moment is the workspace after a call of the run, or before one: after others
// had it. The moments are kept in the store, so that an engine which finds the
// run open can tell the run's changes apart as well.
type moment struct {
	call bool
	own  string // the only path that the call can have changed; "" for any
	tree string
}

// advance takes the step from the last moment to the next.
func (t *track) advance(ctx context.Context, m moment) (patch string, err error) {
	if m.tree == t.last {
		return "", nil
	}
	d, err := t.saved.Diff(ctx, t.last, m.tree)
	if err != nil {
		return "", err
	}
	patch = d.Patch
	for _, c := range d.Changes {
		if m.call && (m.own == "" || m.own == c.Path) {
			t.left[c.Path] = true
			continue
		}
		t.foreign(c.Path, m.tree)
		patch = "" // it would show somebody else's work as the run's
	}
	t.last = m.tree
	if t.keep == nil {
		return patch, nil
	}
	return patch, t.keep(ctx, m)
}

func (t *track) foreign(p, tree string) {
	t.since[p] = tree
	if t.left[p] {
		t.kept[p] = true
		delete(t.left, p) // it is theirs from here on
	}
}

// undo puts back what the run changed. It returns the paths that went back and
// those that were left alone because somebody else changed them after the run.
func (t *track) undo(ctx context.Context) (back, kept []string, err error) {
	if err := t.others(ctx); err != nil {
		return nil, nil, err
	}
	byTree := map[string][]string{}
	for p := range t.left {
		tree := t.base
		if since, ok := t.since[p]; ok {
			tree = since
			t.kept[p] = true // their version comes back, not the one before the run
		}
		byTree[tree] = append(byTree[tree], p)
	}
	for tree, paths := range byTree {
		slices.Sort(paths)
		if err := t.saved.Restore(ctx, tree, paths); err != nil {
			return back, sorted(t.kept), err
		}
		back = append(back, paths...)
	}
	slices.Sort(back)
	return back, sorted(t.kept), nil
}

// mine are the paths that the run changed, that differ from base, and that
// nobody else has touched; theirs are those that somebody has.
func (t *track) mine(ctx context.Context) (mine, theirs []string, err error) {
	if err := t.others(ctx); err != nil {
		return nil, nil, err
	}
	d, err := t.saved.Diff(ctx, t.base, t.last)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range d.Changes {
		ours := t.left[c.Path]
		_, touched := t.since[c.Path]
		switch {
		case ours && !touched:
			mine = append(mine, c.Path)
		case ours || t.kept[c.Path]:
			theirs = append(theirs, c.Path)
		}
	}
	return mine, theirs, nil
}

func sorted(set map[string]bool) []string {
	var list []string
	for p := range set {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
