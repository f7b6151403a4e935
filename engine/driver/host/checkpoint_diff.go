//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"sbx/engine"
)

// maxPatch bounds the patch of a Diff.
const maxPatch = 256 << 10

// Diff is what changed from one saved tree to another. Renames are told as
// what they are on disk, a deletion and an addition.
func (c *checkpoints) Diff(ctx context.Context, from, to string) (engine.Diff, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return engine.Diff{}, err
	}
	defer unlock()
	out, err := c.read(ctx, maxGitOut, `git diff-tree -r -z --raw --no-abbrev --no-renames "$1" "$2"`, from, to)
	if err != nil {
		return engine.Diff{}, gitFailed("compare checkpoints", err)
	}
	changes, err := parseRaw(out)
	if err != nil {
		return engine.Diff{}, err
	}
	diff := engine.Diff{}
	if len(changes) == 0 {
		return diff, nil
	}
	for _, ch := range changes {
		diff.Changes = append(diff.Changes, ch.Change)
	}
	diff.Patch, diff.Cut, err = c.patch(ctx, from, to)
	return diff, err
}

// patch is the unified diff, cut at the end of a line if it is too long.
func (c *checkpoints) patch(ctx context.Context, from, to string) (text string, cut bool, err error) {
	out, err := c.read(ctx, maxPatch, `git diff-tree -r -p --no-renames --no-color --no-ext-diff --no-textconv "$1" "$2"`, from, to)
	switch {
	case errors.Is(err, errCut):
		out = out[:bytes.LastIndexByte(out, '\n')+1]
		return strings.ToValidUTF8(string(out), "\uFFFD"), true, nil
	case err != nil:
		return "", false, gitFailed("compare checkpoints", err)
	}
	return strings.ToValidUTF8(string(out), "\uFFFD"), false, nil
}

// rawChange is a change with the modes that git knows of it.
type rawChange struct {
	engine.Change
	before, after string // modes
}

// parseRaw reads the output of diff-tree -z --raw --no-renames:
// ":oldmode newmode oldid newid letter NUL path NUL", again and again.
func parseRaw(out []byte) ([]rawChange, error) {
	var changes []rawChange
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		head := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(head) != 5 {
			return nil, engine.Errorf(engine.Internal, "compare checkpoints: git said %.80q", fields[i])
		}
		ch := rawChange{before: head[0], after: head[1]}
		ch.Path, ch.Before, ch.After = fields[i+1], head[2], head[3]
		switch head[4] {
		case "A":
			ch.Status, ch.Before = engine.Added, ""
		case "D":
			ch.Status, ch.After = engine.Deleted, ""
		default: // M, and T for another type
			ch.Status = engine.Modified
		}
		changes = append(changes, ch)
	}
	return changes, nil
}
