//go:build linux

package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sbx/engine"
	"sbx/engine/driver"
)

// workspaceName is the workspace's directory in the box's.
const workspaceName = "workspace"

// makeWorkspace makes the workspace of a new box, in dir unless it is adopted,
// and returns its real path. It is made beside its place and renamed, so that
// one is either whole or not there; one that is there stays as it is.
//
// A copy keeps its owners; everything else is the engine's own user's, for the
// caller to give away.
func (h *Host) makeWorkspace(ctx context.Context, b driver.Boot, dir string) (workspace string, adopted bool, err error) {
	if b.Origin.Kind == engine.FromAdopted {
		if b.Archive != nil {
			return "", false, engine.Errorf(engine.Forbidden, "an adopted directory is not made of an archive")
		}
		workspace, err := h.checkSource(b.Origin.Ref)
		if err != nil {
			return "", false, err
		}
		return workspace, true, checkAdopted(workspace)
	}
	place := filepath.Join(dir, workspaceName)
	if st, err := os.Lstat(place); err == nil && st.IsDir() {
		return place, false, nil
	}
	temp := place + ".new"
	if err := os.RemoveAll(temp); err != nil { // what a crash left
		return "", false, engine.Errorf(engine.Internal, "clear the way for a workspace: %w", err)
	}
	if err := h.fill(ctx, b, temp); err != nil {
		return "", false, errors.Join(err, os.RemoveAll(temp))
	}
	if err := os.Rename(temp, place); err != nil {
		return "", false, errors.Join(makeError(err), os.RemoveAll(temp))
	}
	return place, false, nil
}

// fill makes the directory temp and what is to be in it.
func (h *Host) fill(ctx context.Context, b driver.Boot, temp string) error {
	if b.Archive != nil {
		return layOut(ctx, b.Archive, temp, &extractor{}, maxCopy)
	}
	switch b.Origin.Kind {
	case engine.FromTemplate:
		return unpack(temp, b.Template)
	case engine.FromCopy:
		from, err := h.checkSource(b.Origin.Ref)
		if err != nil {
			return err
		}
		return copyWorkspace(ctx, from, temp, int64(b.Spec.Limits.Disk))
	case engine.FromGit:
		return h.clone(ctx, b.Origin.Ref, temp)
	}
	return engine.Errorf(engine.Invalid, "a workspace can't come from %q", b.Origin.Kind)
}

// makeError gives an error of making a workspace its code.
func makeError(err error) error {
	switch {
	case err == nil || errors.As(err, new(*engine.Error)):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return engine.Errorf(engine.Exhausted, "make the workspace: the disk is full").WithHint("free space and try again")
	case errors.Is(err, fs.ErrPermission):
		return engine.Errorf(engine.Forbidden, "make the workspace: %w", err)
	}
	return engine.Errorf(engine.Internal, "make the workspace: %w", err)
}

// checkSource finds the real path of a directory that a workspace is to come
// from. It must have nothing to do with the engine's own directory.
func (h *Host) checkSource(dir string) (string, error) {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return "", engine.Errorf(engine.Invalid, "directory %.200q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", engine.Errorf(engine.NotFound, "there is no directory %q", dir)
	}
	if err != nil {
		return "", makeError(err)
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", makeError(err)
	}
	if !st.IsDir() {
		return "", engine.Errorf(engine.Invalid, "%q is no directory", dir)
	}
	if real == "/" {
		return "", engine.Errorf(engine.Forbidden, "the root directory can't be a workspace")
	}
	data, err := filepath.EvalSymlinks(h.cfg.Dir)
	if err != nil {
		return "", makeError(err)
	}
	if within(real, data) || within(data, real) {
		return "", engine.Errorf(engine.Forbidden, "%q holds the engine's data, or lies in it", dir).
			WithHint("choose a directory outside of %s", data)
	}
	return real, nil
}

// sharedDirs are never adopted, nor is what is above them or, for the second
// kind, beneath.
var (
	sharedDirs  = []string{"/home", "/root", "/tmp", "/var", "/opt", "/srv", "/mnt", "/media", "/run", "/usr/local"}
	systemTrees = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys"}
)

// checkAdopted refuses to hand a sandbox a directory that others live on.
func checkAdopted(dir string) error {
	for _, tree := range systemTrees {
		if within(dir, tree) {
			return engine.Errorf(engine.Forbidden, "%q is the system's: it can't be a workspace", dir)
		}
	}
	homes := slices.Clone(sharedDirs)
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			homes = append(homes, real)
		}
	}
	for _, home := range homes {
		if within(home, dir) {
			return engine.Errorf(engine.Forbidden, "%q is a home or the system's: it can't be a workspace", dir).
				WithHint("adopt the project's own directory")
		}
	}
	return nil
}
