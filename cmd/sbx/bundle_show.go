package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
	"sbx/tui/clean"
)

// Bounds of a bundle that is read: it may come from anybody.
const (
	bundleEntries = 2000
	bundleUnpack  = 256 << 20
)

func newBundleShowCmd(c *cli) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "show FILE",
		Short:   "Read a bundle; no engine is needed, and nothing is unpacked",
		Example: "  sbx bundle show trouble.tar.gz\n  sbx bundle show trouble.tar.gz --file sandbox.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := readBundle(args[0])
			if err != nil {
				return err
			}
			if name == "" {
				return c.showBundle(files)
			}
			b, ok := files[name]
			if !ok {
				return engine.Errorf(engine.NotFound, "there is no %q in it", name).WithHint("sbx bundle show %s lists what there is", args[0])
			}
			return c.printClean(string(b))
		},
	}
	cmd.Flags().StringVar(&name, "file", "", "print one file of it")
	checkArgs(cmd)
	return cmd
}

// readBundle reads a bundle into memory. What isn't a plain file under a plain
// name, or is too much, is refused.
func readBundle(file string) (map[string][]byte, error) {
	bad := func(why string, args ...any) error {
		return engine.Errorf(engine.Invalid, "%s is no bundle that can be read: %w", file, fmt.Errorf(why, args...)).
			WithHint("bundles are made with: sbx bundle SANDBOX")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, engine.Errorf(engine.NotFound, "%w", err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return nil, bad("%w", err)
	}
	files, left := map[string][]byte{}, int64(bundleUnpack)
	in := tar.NewReader(io.LimitReader(zip, bundleUnpack+1<<20))
	for range bundleEntries {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			if files["bundle.json"] == nil {
				return nil, bad("it has no bundle.json")
			}
			return files, nil
		}
		switch {
		case err != nil:
			return nil, bad("%w", err)
		case h.Typeflag != tar.TypeReg:
			return nil, bad("%q is no plain file", h.Name)
		case h.Name == "" || path.Clean(h.Name) != h.Name || path.IsAbs(h.Name) || h.Name == ".." || strings.HasPrefix(h.Name, "../") ||
			strings.ContainsAny(h.Name, "\\\x00") || len(h.Name) > 200:
			return nil, bad("%q is no plain name", h.Name)
		case files[h.Name] != nil:
			return nil, bad("%q is in it twice", h.Name)
		case h.Size < 0 || h.Size > left:
			return nil, bad("it is larger than %d bytes", int64(bundleUnpack))
		}
		left -= h.Size
		b, err := io.ReadAll(io.LimitReader(in, h.Size))
		if err != nil {
			return nil, bad("%w", err)
		}
		files[h.Name] = append([]byte{}, b...)
	}
	return nil, bad("it has more than %d files", bundleEntries)
}

// showBundle tells what is in a bundle, in the order in which one would ask.
func (c *cli) showBundle(files map[string][]byte) error {
	var about struct {
		Version int          `json:"version"`
		Created time.Time    `json:"created"`
		SBX     string       `json:"sbx"`
		Engine  engine.About `json:"engine"`
	}
	var sb engine.Sandbox
	if err := errors.Join(json.Unmarshal(files["bundle.json"], &about), json.Unmarshal(files["sandbox.json"], &sb)); err != nil {
		return engine.Errorf(engine.Invalid, "the bundle can't be read: %w", err)
	}
	if about.Version > bundleVersion {
		c.say("the bundle is of a newer sbx (%s): some of it may not be shown", about.SBX)
	}
	lines := []string{
		fmt.Sprintf("%s (%s): %s, %s %s", sb.Name, sb.ID, sb.State, sb.Health, sb.Reason),
		fmt.Sprintf("bundled %s from %s, sbx %s, isolation %s", about.Created.Format(time.RFC3339), about.Engine.Host, about.Engine.Version, sb.Isolation),
		"", "what the healer saw and did:",
	}
	s := story{full: true}
	for raw := range strings.Lines(string(files["heals.ndjson"])) {
		var ev engine.Event
		if json.Unmarshal([]byte(raw), &ev) == nil && ev.Body != nil {
			lines = append(lines, indent(s.tell(ev))...)
		}
	}
	var said []engine.Message
	if json.Unmarshal(files["chat.json"], &said) == nil && len(said) > 0 {
		lines = append(lines, "", "the chat:")
		for _, m := range said {
			lines = append(lines, indent(chatLines(m, false))...)
		}
	}
	lines = append(lines, "", "files (sbx bundle show FILE --file NAME):")
	for _, name := range sortedNames(files) {
		lines = append(lines, fmt.Sprintf("  %-40s %d bytes", name, len(files[name])))
	}
	return c.printClean(strings.Join(lines, "\n"))
}

func sortedNames(files map[string][]byte) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// printClean prints text of anybody's, so that nothing of it acts.
func (c *cli) printClean(text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(c.out, clean.Line(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}
