package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newNotifyCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "What was sent to your own systems, and a test of it",
		Long: `What was sent to your own systems, and a test of it.

notify.webhook and notify.command are told when a sandbox is broken or quarantined,
when a budget is spent and when an incident has several sandboxes: once for each,
with a header Sbx-Notice-Id that stays the same when a try is repeated. With
notify.secret, Sbx-Signature is "v1=" and the HMAC-SHA256 in hex of the header
Sbx-Timestamp, a dot and the body.`,
		Example: "  sbx notify test\n  sbx notify ls",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	ls := &cobra.Command{
		Use: "ls", Short: "List the newest notices", Example: "  sbx notify ls --json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.listNotices(cmd.Context()) },
	}
	addJSON(c, ls)
	test := &cobra.Command{
		Use: "test", Short: "Send a notice that tells of nothing, and say whether it arrived", Example: "  sbx notify test", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.testNotice(cmd.Context()) },
	}
	addJSON(c, test)
	for _, sub := range []*cobra.Command{ls, test} {
		checkArgs(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func (c *cli) listNotices(ctx context.Context) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	list, err := e.Notices(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"AGE", "KIND", "STATE", "TRIES", "WHAT", "TROUBLE"}}
	for _, n := range list {
		if c.json {
			if err := c.printJSON(n); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{age(time.Now(), n.At), string(n.Kind), string(n.State), fmt.Sprint(n.Tries), oneLine(n.Text, 80), oneLine(n.Trouble, 80)})
	}
	if c.json {
		return nil
	}
	return c.printTable(rows)
}

func (c *cli) testNotice(ctx context.Context) error {
	e, err := c.open(ctx, toChange)
	if err != nil {
		return err
	}
	defer e.Close()
	r, err := e.Do(ctx, engine.NewAction(engine.TestNotify{}))
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := e.Notices(ctx)
		if err != nil {
			return err
		}
		for _, n := range list {
			switch {
			case n.ID != r.Notice || n.State == engine.NoticeQueued:
				continue
			case c.json:
				err = c.printJSON(n)
			case n.State == engine.NoticeSent:
				_, err = fmt.Fprintf(c.out, "%s was sent\n", n.ID)
			}
			if err == nil && n.State == engine.NoticeGivenUp {
				return engine.Errorf(engine.Internal, "it did not arrive: %s", n.Trouble).WithHint("see notify.* in: sbx config")
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
