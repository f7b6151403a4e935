package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sbx/engine"
)

// version is set when a release is linked: -X main.version=1.2.3.
var version = "dev"

func newVersionCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of sbx, of its protocol and of Go",
		Example: "  sbx version\n  sbx version --json",
		RunE: func(*cobra.Command, []string) error {
			if c.json {
				return c.printJSON(map[string]any{
					"version": version, "protocol": engine.Protocol, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(c.out, "sbx %s · protocol %d · %s %s/%s\n", version, engine.Protocol, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	addJSON(c, cmd)
	return cmd
}
