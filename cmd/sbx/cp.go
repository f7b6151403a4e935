package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newCpCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy a file or directory into or out of a sandbox: SANDBOX:PATH is a place in one",
		Long: `Copy a file or directory into or out of a sandbox: SANDBOX:PATH is a place in one.
Files that are there are replaced. A directory is copied with all that is in it but
node_modules and its like; out of a sandbox links come as they are, and nothing is
written through one.`,
		Example: "  sbx cp .env api:.env\n  sbx cp api:dist ./dist\n  sbx cp ./fixtures api:test/fixtures",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			from, fromPath, out := splitPlace(args[0])
			to, toPath, in := splitPlace(args[1])
			switch {
			case in == out:
				return usagef("one of both is a place in a sandbox, like api:src, and the other a local one, like ./src")
			case out:
				return c.toSandbox(ctx, toLook, from, func(e engine.Engine, sb engine.Sandbox) error {
					return c.copyOut(ctx, e, sb, fromPath, args[1])
				})
			}
			return c.toSandbox(ctx, toChange, to, func(e engine.Engine, sb engine.Sandbox) error {
				return c.copyIn(ctx, e, sb, args[0], toPath)
			})
		},
	}
	addJSON(c, cmd)
	return cmd
}

// splitPlace takes SANDBOX:PATH apart. A local path with a colon in it begins
// with a dot or a slash.
func splitPlace(s string) (sandbox, name string, ok bool) {
	sandbox, name, ok = strings.Cut(s, ":")
	if !ok || sandbox == "" || strings.ContainsAny(sandbox, `/\`) || strings.HasPrefix(s, ".") {
		return "", "", false
	}
	if name == "" {
		name = "."
	}
	return sandbox, name, true
}

// copyIn copies a local file or directory into a sandbox: into a directory that
// is there, else to the name that is given.
func (c *cli) copyIn(ctx context.Context, e engine.Engine, sb engine.Sandbox, from, to string) error {
	st, err := os.Stat(from)
	if err != nil {
		return usagef("%w", err)
	}
	if _, err := e.ReadDir(ctx, sb.ID, to); err == nil && !st.IsDir() || strings.HasSuffix(to, "/") {
		to = path.Join(to, filepath.Base(from))
	}
	if !st.IsDir() {
		f, err := os.Open(from)
		if err != nil {
			return usagef("%w", err)
		}
		defer f.Close()
		return c.put(ctx, e, sb, engine.PlaceFile{Name: to, Overwrite: true, Mode: st.Mode().Perm()}, f)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return usagef("%w", err)
	}
	defer root.Close()
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pw.CloseWithError(packTree(ctx, root, pw))
	}()
	err = c.put(ctx, e, sb, engine.PlaceFile{Name: to, Tree: true}, pr)
	pr.CloseWithError(errors.New("the upload has ended"))
	<-done
	return err
}

// leftBehind are directories that an install makes again.
var leftBehind = map[string]bool{"node_modules": true, ".venv": true, "__pycache__": true}

// packTree writes a local directory as a tar.
func packTree(ctx context.Context, root *os.Root, w io.Writer) error {
	buf := bufio.NewWriterSize(w, 256<<10)
	tw := tar.NewWriter(buf)
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || name == "." {
			return err
		}
		if d.IsDir() && leftBehind[d.Name()] {
			return fs.SkipDir
		}
		return packEntry(root, tw, name, d)
	})
	return errors.Join(err, tw.Close(), buf.Flush())
}

func packEntry(root *os.Root, tw *tar.Writer, name string, d fs.DirEntry) error {
	fi, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(fi.Mode().Perm()), ModTime: fi.ModTime(), Format: tar.FormatPAX}
	switch {
	case fi.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return tw.WriteHeader(h)
	case fi.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = root.Readlink(name); err != nil {
			return err
		}
		return tw.WriteHeader(h)
	case !fi.Mode().IsRegular():
		return nil // a socket or device is no file to copy
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h.Typeflag, h.Size = tar.TypeReg, fi.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(tw, f, h.Size); err != nil {
		return fmt.Errorf("%s changed while it was read: %w", name, err)
	}
	return nil
}

// copyOut copies a sandbox's file or directory to a local place.
func (c *cli) copyOut(ctx context.Context, e engine.Engine, sb engine.Sandbox, from, to string) error {
	f, r, err := e.OpenFile(ctx, sb.ID, from, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	total := int64(-1)
	if !f.Mode.IsDir() {
		total = f.Size
	}
	p := c.progress(from, total)
	defer p.end()
	if st, err := os.Stat(to); err == nil && st.IsDir() && !f.Mode.IsDir() {
		name := path.Base(path.Clean(from))
		if !filepath.IsLocal(name) || name == "." {
			return usagef("%s is a directory: name the file", to)
		}
		to = filepath.Join(to, name)
	}
	if f.Mode.IsDir() {
		return c.unpackTree(p.reader(r), to)
	}
	return writeLocal(p.reader(r), to, f.Mode.Perm())
}

// writeLocal writes a file beside its place and renames it.
func writeLocal(r io.Reader, to string, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(to), ".sbx-get-*")
	if err != nil {
		return usagef("%w", err)
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// unpackTree lays out a sandbox's tar beneath a local directory. Its names are
// the sandbox's: nothing leaves the directory, and nothing is written through
// a link.
func (c *cli) unpackTree(r io.Reader, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return usagef("%w", err)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return usagef("%w", err)
	}
	defer root.Close()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackEntry(root, h, tr)
		}
		if err != nil {
			return fmt.Errorf("copy to %s: %w", to, err)
		}
	}
}

func unpackEntry(root *os.Root, h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return engine.Errorf(engine.Forbidden, "the sandbox names %.80q, which leads out", h.Name)
	}
	if err := noLinkOnTheWay(root, path.Dir(name)); err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeSymlink:
		_ = root.Remove(name) // a directory stays, and the next line says so
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		_ = root.Remove(name)
		return root.Link(path.Clean(h.Linkname), name)
	case tar.TypeReg:
		_ = root.Remove(name) // a link there is replaced, not followed
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Chmod(mode), f.Close(), root.Chtimes(name, h.ModTime, h.ModTime))
	}
	return nil
}

// noLinkOnTheWay refuses to go through a link that came before.
func noLinkOnTheWay(root *os.Root, dir string) error {
	for at := dir; at != "."; at = path.Dir(at) {
		if st, err := root.Lstat(at); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			return engine.Errorf(engine.Forbidden, "%.80q is a link: nothing is written through it", at)
		}
	}
	return root.MkdirAll(dir, 0o755)
}
