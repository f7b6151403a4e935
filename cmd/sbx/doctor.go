package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sbx/engine"
)

func newDoctorCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check what this host offers: isolation, git, the model, the data directory",
		Example: "  sbx doctor\n  sbx doctor --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.doctor(cmd.Context()) },
	}
	addJSON(c, cmd)
	return cmd
}

// finding is one line of the doctor's.
type finding struct {
	What  string `json:"what"`
	State string `json:"state"` // ok, weaker, missing
	Says  string `json:"says"`
	Do    string `json:"do,omitempty"`
}

func (c *cli) doctor(ctx context.Context) error {
	list, err := c.isolationFindings(ctx)
	if err != nil {
		return err
	}
	list = append(list, toolFindings()...)
	list = append(list, c.modelFinding(), c.dataFinding())
	if c.json {
		return c.printJSON(list)
	}
	rows := [][]string{}
	for _, f := range list {
		says := f.Says
		if f.Do != "" {
			says += ": " + f.Do
		}
		rows = append(rows, []string{f.State, f.What, says})
	}
	return c.printTable(rows)
}

// isolationFindings opens a driver of this host without any sandbox, on a
// directory of its own: the one of an engine that runs is that engine's alone,
// cgroups included.
func (c *cli) isolationFindings(ctx context.Context) ([]finding, error) {
	where, _ := nearest(filepath.Dir(c.cfg.home)) // beside it: what can be reached depends on the way there
	dir, err := os.MkdirTemp(where, "sbx-doctor-")
	if err != nil {
		dir, err = os.MkdirTemp("", "sbx-doctor-")
	}
	if err != nil {
		return nil, engine.Errorf(engine.Internal, "directory to try isolation in: %w", err)
	}
	defer os.RemoveAll(dir)
	cfg := *c.cfg
	cfg.home = dir
	d, err := newDriver(&cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		err = d.Open(ctx)
	}
	if err != nil {
		return []finding{{What: "isolation", State: "missing", Says: err.Error(), Do: engine.Hint(err)}}, nil
	}
	defer d.Close()
	iso := d.Isolation()
	first := finding{What: "isolation", State: "ok", Says: iso.Name}
	if !iso.Confines {
		first.State = "weaker"
		first.Says += " · the healer uses playbooks only, unless heal.unconfined"
	}
	list := []finding{first}
	for _, fact := range iso.Facts {
		list = append(list, finding{What: "  in force", State: first.State, Says: fact})
	}
	list = append(list, limitFindings(iso.Limits)...)
	for _, s := range iso.Stronger {
		list = append(list, finding{What: "  stronger", State: "weaker", Says: s})
	}
	return list, nil
}

// limitFindings say what holds sandboxes to the limits of their specs.
func limitFindings(by engine.Enforcement) []finding {
	var list []finding
	for _, l := range []struct{ name, by string }{
		{"memory", by.Memory}, {"cpu", by.CPU}, {"processes", by.Processes}, {"disk", by.Disk},
	} {
		f := finding{What: "limits", State: "ok", Says: l.name + ": " + l.by}
		switch {
		case l.by == "":
			f.State, f.Says = "weaker", l.name+": not enforced, only shown"
		case strings.HasPrefix(l.by, "rlimit"):
			f.State = "weaker"
		}
		list = append(list, f)
	}
	return list
}

func toolFindings() []finding {
	var list []finding
	for _, t := range []struct{ name, for_, do string }{
		{"git", "checkpoints, rollback and commits of fixes", "install git"},
		{"node", "sandboxes of the node template", "install nodejs"},
		{"python3", "sandboxes of the python template", "install python3"},
		{"go", "sandboxes of the go template", "install go"},
	} {
		path, err := exec.LookPath(t.name)
		if err != nil {
			list = append(list, finding{t.name, "missing", "needed for " + t.for_, t.do})
			continue
		}
		list = append(list, finding{t.name, "ok", path, ""})
	}
	return list
}

func (c *cli) modelFinding() finding {
	if why := c.cfg.noModel(); why != "" {
		what, do, _ := strings.Cut(why, ": ")
		return finding{"model", "weaker", what + " · the healer uses playbooks only", do}
	}
	where := c.cfg.modelURL
	if where == "" {
		where = "api.anthropic.com"
	}
	return finding{"model", "ok", fmt.Sprintf("%s at %s (not called)", c.cfg.modelName, where), ""}
}

// dataFinding looks at the data directory, or at where it would be made.
func (c *cli) dataFinding() finding {
	says := c.cfg.home
	dir, there := nearest(c.cfg.home)
	if !there {
		says += " · not made yet"
	}
	const elsewhere = "set SBX_HOME to a directory that you may write"
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return finding{"data", "missing", fmt.Sprintf("%s can't be a directory: %s is in the way", c.cfg.home, dir), elsewhere}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return finding{"data", "missing", fmt.Sprintf("%s: %s is not writable: %v", c.cfg.home, dir, err), elsewhere}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return finding{"data", "missing", err.Error(), elsewhere}
	}
	free := engine.Size(st.Bavail) * engine.Size(st.Bsize)
	f := finding{"data", "ok", fmt.Sprintf("%s · %d GiB free", says, free/engine.GiB), ""}
	if free < engine.GiB {
		f.State, f.Do = "weaker", "make room: sandboxes and logs live there"
	}
	if _, err := os.Stat(socketPath(c.cfg.home)); err == nil {
		f.Says += " · an engine has its socket there"
	}
	return f
}

// nearest is a path, or the nearest above it that is there.
func nearest(path string) (dir string, there bool) {
	for dir = path; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir, dir == path
		}
	}
}
