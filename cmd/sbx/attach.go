package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sbx/engine"
	"sbx/tui/clean"
)

func newAttachCmd(c *cli) *cobra.Command {
	var after int64
	cmd := &cobra.Command{
		Use:   "attach PROCESS",
		Short: "Read what a spawned command writes, feed its input, and exit with its code",
		Long: `Read what a spawned command writes, from its first byte on, and exit with its code.
If it was spawned with --stdin, this command's input becomes its own, and the end of
it the end of its own. Ctrl-C detaches: the command goes on.`,
		Example: "  sbx attach ps-k3vq\n  echo 'print(1)' | sbx attach $(sbx spawn api --stdin -- python3)",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if after < 0 {
				return usagef("--after can't be negative")
			}
			e, err := c.open(cmd.Context(), toLook) // without an engine nothing runs
			if err != nil {
				return err
			}
			defer e.Close()
			return c.attach(cmd.Context(), e, args[0], engine.LogPosition(after))
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "begin after so many bytes of its output")
	return cmd
}

func (c *cli) attach(ctx context.Context, e engine.Engine, ref string, after engine.LogPosition) error {
	p, err := engine.FindProcess(ctx, e, ref)
	if err != nil {
		return err
	}
	errs := c.lineWriter(c.err)
	h, err := engine.FindHandle(ctx, e, string(p.ID), engine.SpawnOptions{OnStderr: errs, Keep: -1})
	if err != nil {
		return err
	}
	pipe, err := e.Pipe(ctx, p.ID, after)
	if err != nil {
		return err
	}
	defer pipe.Close()
	if p.Stdin && p.Running() {
		go c.feed(pipe) // a read of a terminal can't be ended: it is left behind
	}
	out := &copier{from: pipe, to: plain(c.out)}
	out.at.Store(int64(after))
	out.until.Store(-1)
	copied := make(chan error, 1)
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		err := out.run()
		if err != nil {
			stop(err) // nobody would see what it writes
		}
		copied <- err
	}()
	res, err := h.Wait(waiting)
	if err == nil {
		err = c.rest(ctx, e, p, out, copied)
	}
	switch {
	case ctx.Err() != nil:
		c.say("detached: %s goes on; attach again with sbx attach %s, end it with sbx kill %s", p.ID, p.ID, p.ID)
		return exit(exitInterrupted)
	case err != nil:
		return err
	case res.TimedOut:
		c.say("%s timed out after %s and was killed with its children", p.ID, p.Command.Timeout)
	case res.OOM:
		c.say("%s is out of memory: the sandbox is over limits.memory of its spec", p.ID)
	case res.Error != "":
		c.say("%s: %s", p.ID, res.Error)
	case res.Killed:
		c.say("%s was killed", p.ID)
	}
	if res.ExitCode != 0 {
		return exit(res.ExitCode)
	}
	return nil
}

// rest copies what the command wrote until its end, and no more: somebody else
// may hold its output open.
func (c *cli) rest(ctx context.Context, e engine.Engine, p engine.Process, out *copier, copied <-chan error) error {
	end, err := engine.LogEnd(ctx, e, p.Sandbox, p.ID, engine.Stdout)
	if err != nil {
		return err
	}
	out.until.Store(int64(end))
	if out.at.Load() >= int64(end) {
		_ = out.from.Close() // it has all been read
	}
	if err := <-copied; err != nil && out.at.Load() < int64(end) {
		return err
	}
	return nil
}

// feed is this command's input, for the process.
func (c *cli) feed(pipe engine.Pipe) {
	_, err := io.Copy(pipe, c.in)
	if err == nil {
		err = pipe.CloseInput()
	}
	if err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, context.Canceled) && engine.AsCode(err) != engine.Conflict {
		c.say("its input: %v", err) // that it takes no more shows in what it does
	}
}

// copier copies a process's output, and stops when it has copied it until a
// position.
type copier struct {
	from  engine.Pipe
	to    io.Writer
	at    atomic.Int64 // the position that was copied
	until atomic.Int64 // negative: its end
}

func (k *copier) run() error {
	buf := make([]byte, 32<<10)
	for {
		n, err := k.from.Read(buf)
		if n > 0 {
			if _, err := k.to.Write(buf[:n]); err != nil {
				return err
			}
		}
		at, until := k.at.Add(int64(n)), k.until.Load()
		switch {
		case err == io.EOF, until >= 0 && at >= until:
			return nil
		case err != nil:
			return err
		}
	}
}

// lineWriter writes lines as they come: to a terminal what can't act on it, to
// a pipe or file what the command wrote.
func (c *cli) lineWriter(w io.Writer) func(engine.LogLine) {
	terminal := isTerminal(w)
	return func(l engine.LogLine) {
		text := l.Text
		if terminal {
			text = clean.Line(text)
		}
		if !l.Partial {
			text += "\n"
		}
		_, _ = io.WriteString(w, text) // a reader that went away is told by the exit
	}
}

// plain is w, or for a terminal a writer that lets nothing act on it.
func plain(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &tamed{to: w}
}

// tamed writes what a sandbox wrote so that it can be read and does nothing
// else. A line without an end is written as far as it came: it may be a prompt.
type tamed struct {
	to   io.Writer
	rest []byte // the beginning of a character
}

func (t *tamed) Write(b []byte) (int, error) {
	whole := append(t.rest, b...)
	cut := len(whole)
	for i := 1; i < utf8.UTFMax && i <= len(whole); i++ {
		if c := whole[len(whole)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(whole[len(whole)-i:]) {
				cut -= i
			}
			break
		}
	}
	t.rest = append([]byte(nil), whole[cut:]...)
	var out strings.Builder
	for line := range strings.SplitAfterSeq(string(whole[:cut]), "\n") {
		text, ended := strings.CutSuffix(line, "\n")
		out.WriteString(clean.Line(strings.TrimSuffix(text, "\r")))
		if ended {
			out.WriteByte('\n')
		}
	}
	_, err := io.WriteString(t.to, out.String())
	return len(b), err
}
