// Command floor is the least that a command line costs: a bare cobra binary
// that prints what it fetches from a unix socket. Benchmarks hold sbx ls
// against it.
//
// The one rule: it does nothing else.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "floor SOCKET", Args: cobra.ExactArgs(1), RunE: fetch, SilenceUsage: true}
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}

func fetch(_ *cobra.Command, args []string) error {
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", args[0])
	}}}
	resp, err := c.Get("http://localhost/healthz")
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}
