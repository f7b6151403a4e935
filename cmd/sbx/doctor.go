package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

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

// isolationFindings opens a driver of this host without any sandbox.
func (c *cli) isolationFindings(ctx context.Context) ([]finding, error) {
	if err := os.MkdirAll(c.cfg.home, 0o700); err != nil {
		return nil, engine.Errorf(engine.Internal, "data directory: %w", err)
	}
	d, err := newDriver(ctx, c.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return []finding{{What: "isolation", State: "missing", Says: err.Error(), Do: engine.Hint(err)}}, nil
	}
	defer d.Close()
	iso := d.Isolation()
	first := finding{What: "isolation", State: "ok", Says: iso.Name}
	if !iso.Confines {
		first.State = "weaker"
		first.Says += " · the healer uses playbooks only"
	}
	list := []finding{first}
	for _, fact := range iso.Facts {
		list = append(list, finding{What: "  in force", State: first.State, Says: fact})
	}
	for _, s := range iso.Stronger {
		list = append(list, finding{What: "  stronger", State: "weaker", Says: s})
	}
	return list, nil
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

func (c *cli) dataFinding() finding {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(c.cfg.home, &fs); err != nil {
		return finding{"data", "missing", err.Error(), "set SBX_HOME to a directory that you may write"}
	}
	free := engine.Size(fs.Bavail) * engine.Size(fs.Bsize)
	f := finding{"data", "ok", fmt.Sprintf("%s · %d GiB free", c.cfg.home, free/engine.GiB), ""}
	if free < engine.GiB {
		f.State, f.Do = "weaker", "make room: sandboxes and logs live there"
	}
	if _, err := os.Stat(filepath.Join(c.cfg.home, "engine.sock")); err == nil {
		f.Says += " · an engine has its socket there"
	}
	return f
}
