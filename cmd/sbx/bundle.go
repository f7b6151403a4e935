package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
	"sbx/engine/redact"
)

// Bounds of a bundle.
const (
	bundleVersion  = 1
	bundleLogLines = 5000
	bundleFileSize = 8 << 20 // of one file in it; what is longer is cut at its beginning
)

func newBundleCmd(c *cli) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "bundle SANDBOX",
		Short: "Pack what is known of a sandbox into one file, without its secrets",
		Long: `Pack what is known of a sandbox into one file, without its secrets: its rows, what the
healer saw and did, the chat, logs, changes since it was last good, settings and
versions. It is for somebody else to read: sbx bundle show FILE. Hidden are the
secrets that this command knows, the values of the sandbox's .env files, and whatever
has the shape of a key. Files of the workspace aren't in it, but for what diffs show.`,
		Example: "  sbx bundle api\n  sbx bundle api --output trouble.tar.gz\n  sbx bundle show trouble.tar.gz",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.bundle(cmd.Context(), args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to write; - for standard output")
	cmd.AddCommand(newBundleShowCmd(c))
	return cmd
}

func (c *cli) bundle(ctx context.Context, ref, out string) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	sb, err := snap.Find(ref)
	if err != nil {
		return err
	}
	if out == "-" {
		return c.pack(ctx, e, snap, sb, c.out)
	}
	out = cmp.Or(out, fmt.Sprintf("sbx-%s-%s.tar.gz", sb.ID, time.Now().UTC().Format("20060102-150405")))
	f, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return engine.Errorf(engine.Invalid, "%w", err).WithHint("name another file with --output")
	}
	if err := errors.Join(c.pack(ctx, e, snap, sb, f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(out)) // half a bundle is none
	}
	_, err = fmt.Fprintln(c.out, out)
	return err
}

// pack writes the bundle. What the engine can't tell is left out, and said in
// the bundle itself.
func (c *cli) pack(ctx context.Context, e engine.Engine, snap *engine.Snapshot, sb engine.Sandbox, to io.Writer) error {
	zip := gzip.NewWriter(to)
	p := &packer{tar: tar.NewWriter(zip), hide: redact.New(c.cfg.secrets()...), now: time.Now().UTC()}
	p.learn(ctx, e, sb)
	p.json("bundle.json", map[string]any{
		"version": bundleVersion, "created": p.now, "sbx": version, "go": runtime.Version(), "engine": snap.About, "position": snap.Position,
		"sandbox": sb.ID, "name": sb.Name,
	})
	p.json("sandbox.json", sb)
	p.json("run.json", snap.Runs[sb.ID])
	procs, err := e.ListProcesses(ctx, sb.ID)
	p.missed("processes", err)
	p.json("processes.json", procs)
	p.lines("heals.ndjson", anyOf(e.Heals(ctx, engine.HealQuery{Sandbox: sb.ID, Limit: 5000})))
	p.lines("audit.ndjson", anyOf(e.Audit(ctx, engine.AuditQuery{Subject: string(sb.ID), Limit: 1000})))
	said, err := e.Messages(ctx, engine.MessageQuery{Sandbox: sb.ID})
	p.missed("chat", err)
	p.json("chat.json", said)
	keys, err := e.Keys(ctx, sb.ID)
	p.missed("keys", err)
	p.json("keys.json", keys)
	p.changes(ctx, e, sb)
	p.logs(ctx, e, procs)
	p.json("settings.json", c.plainSettings())
	p.json("missing.json", p.left)
	return errors.Join(p.err, p.tar.Close(), zip.Close())
}

// plainSettings are the settings that are no secret.
func (c *cli) plainSettings() map[string]string {
	all := map[string]string{}
	flags, err := setFlags(c.set)
	file, name, err2 := readConfigFile(c)
	if err != nil || err2 != nil {
		return all // they were read when the command began; there is nothing to tell
	}
	for _, s := range settings {
		v, _ := settle(c, s, flags, file, name)
		if s.secret && v != "" {
			v = "(set)"
		}
		all[s.key] = v
	}
	return all
}

// packer writes files into a bundle, each of them redacted whole.
type packer struct {
	tar  *tar.Writer
	hide *redact.Redactor
	now  time.Time
	left []string // what could not be had
	err  error
}

func (p *packer) missed(what string, err error) {
	if err != nil {
		p.left = append(p.left, p.hide.String(what+": "+err.Error()))
	}
}

// learn hides the values of the sandbox's own environment files.
func (p *packer) learn(ctx context.Context, e engine.Engine, sb engine.Sandbox) {
	for name, value := range sb.Spec.App.Env {
		p.hide.Hide(redact.Env(name + "=" + value)...)
	}
	for _, name := range []string{".env", ".env.local", ".env.development", ".env.development.local", ".env.production", ".env.test"} {
		f, err := e.ReadFile(ctx, sb.ID, name)
		if err == nil {
			p.hide.Hide(redact.Env(string(f.Data))...)
		} else if engine.AsCode(err) != engine.NotFound {
			p.missed(name, err)
		}
	}
}

func (p *packer) json(name string, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	p.missed(name, err)
	p.file(name, b)
}

func (p *packer) file(name string, b []byte) {
	b = []byte(p.hide.String(string(b)))
	if len(b) > bundleFileSize {
		b = b[len(b)-bundleFileSize:]
	}
	err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(b)), ModTime: p.now})
	if err == nil {
		_, err = p.tar.Write(b)
	}
	p.err = errors.Join(p.err, err)
}

// anyOf is a stream of values of any kind.
func anyOf[T any](seq func(func(T, error) bool)) func(func(any, error) bool) {
	return func(yield func(any, error) bool) {
		seq(func(v T, err error) bool { return yield(v, err) })
	}
}

func (p *packer) lines(name string, seq func(func(any, error) bool)) {
	var b bytes.Buffer
	for v, err := range seq {
		if err != nil {
			p.missed(name, err)
			break
		}
		text, err := json.Marshal(v)
		p.missed(name, err)
		b.Write(append(text, '\n'))
	}
	p.file(name, b.Bytes())
}

// changes are what differs from the last good checkpoint.
func (p *packer) changes(ctx context.Context, e engine.Engine, sb engine.Sandbox) {
	list, err := e.Checkpoints(ctx, sb.ID)
	p.missed("checkpoints", err)
	p.json("checkpoints.json", list)
	for _, cp := range list {
		if !cp.Good {
			continue
		}
		d, err := e.Diff(ctx, sb.ID, cp.ID, "")
		p.missed("changes", err)
		p.file("changes.diff", []byte(d.Patch))
		return
	}
}

// logs are the ends of what the processes wrote.
func (p *packer) logs(ctx context.Context, e engine.Engine, procs []engine.Process) {
	for _, proc := range procs {
		for _, s := range []engine.Stream{engine.Stdout, engine.Stderr} {
			var b strings.Builder
			for l, err := range e.Logs(ctx, engine.LogQuery{Sandbox: proc.Sandbox, Process: string(proc.ID), Stream: s, Tail: bundleLogLines}) {
				if err != nil {
					p.missed(fmt.Sprintf("log %s %s", proc.ID, s), err)
					break
				}
				fmt.Fprintf(&b, "%s %s\n", l.Time.UTC().Format(time.RFC3339Nano), l.Text)
			}
			if b.Len() > 0 {
				p.file(fmt.Sprintf("logs/%s.%s.log", proc.ID, s), []byte(b.String()))
			}
		}
	}
}
