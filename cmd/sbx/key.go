package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

func newKeyCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Virtual keys: how sandboxes reach a model's provider through the gateway",
		Long: `Virtual keys: how sandboxes reach a model's provider through the gateway.

With gateway.on, each sandbox's processes get one in their environment; further ones
are issued here. A key spends its sandbox's budget and nothing else. The engine keeps
its hash: the key itself is shown once.`,
		Example: "  sbx key ls\n  sbx key issue api --name ci --for 24h\n  sbx key revoke vk-k3vq7w2mab",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newKeyLsCmd(c), newKeyIssueCmd(c), newKeyRevokeCmd(c)} {
		checkArgs(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func newKeyLsCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls [SANDBOX]",
		Short:   "List virtual keys and what they were used for",
		Example: "  sbx key ls\n  sbx key ls api --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.listKeys(cmd.Context(), append(args, "")[0])
		},
	}
	addJSON(c, cmd)
	return cmd
}

func (c *cli) listKeys(ctx context.Context, ref string) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	var sb engine.Sandbox
	if ref != "" {
		if sb, err = snap.Find(ref); err != nil {
			return err
		}
	}
	list, err := e.Keys(ctx, sb.ID)
	if err != nil {
		return err
	}
	now := time.Now()
	rows := [][]string{{"KEY", "SANDBOX", "NAME", "STATE", "AGE", "REQUESTS", "TOKENS", "COST", "USED"}}
	for _, k := range list {
		if c.json {
			if err := c.printJSON(k); err != nil {
				return err
			}
			continue
		}
		state := "valid"
		switch {
		case !k.Revoked.IsZero():
			state = "revoked"
		case !k.Valid(now):
			state = "expired"
		}
		rows = append(rows, []string{
			string(k.ID), snap.Sandboxes[k.Sandbox].Name, k.Name, state, age(now, k.Created), fmt.Sprint(k.Use.Requests),
			fmt.Sprint(k.Use.Spent.Tokens()), fmt.Sprintf("$%.4f", k.Use.Spent.Dollars), age(now, k.Use.Last),
		})
	}
	if c.json {
		return nil
	}
	return c.printTable(rows)
}

func newKeyIssueCmd(c *cli) *cobra.Command {
	var name string
	var valid time.Duration
	cmd := &cobra.Command{
		Use:     "issue SANDBOX",
		Short:   "Issue a virtual key, and print it: this once",
		Example: "  sbx key issue api --name ci --for 24h",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withSandbox(ctx, args[0], func(e engine.Engine, sb engine.Sandbox) error {
				r, err := e.Do(ctx, engine.NewAction(engine.IssueKey{Sandbox: sb.ID, Name: name, For: engine.Duration(valid)}))
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(r)
				}
				c.say("%s of %s: it is shown this once; end it with: sbx key revoke %s", r.Key, sb.Name, r.Key)
				_, err = fmt.Fprintln(c.out, r.Secret)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what it is for")
	cmd.Flags().DurationVar(&valid, "for", 0, "how long it is valid (0: until it is revoked)")
	addJSON(c, cmd)
	return cmd
}

func newKeyRevokeCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke KEY",
		Short:   "End a virtual key, and the requests that it is used for",
		Example: "  sbx key revoke vk-k3vq7w2mab",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := c.open(cmd.Context(), toChange)
			if err != nil {
				return err
			}
			defer e.Close()
			r, err := e.Do(cmd.Context(), engine.NewAction(engine.RevokeKey{Key: engine.KeyID(args[0])}))
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(r)
			}
			if r.Note != "" {
				c.say("%s", r.Note)
			}
			return nil
		},
	}
	addJSON(c, cmd)
	return cmd
}
