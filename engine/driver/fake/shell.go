package fake

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/engine"
)

// run runs a command line: programs and their words, separated by ";" and
// lines; >&2 at the end of one sends its output to stderr. That is all the
// shell there is.
func (d *Driver) run(ctx context.Context, p *Process, line string) int {
	code := 0
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ';' || r == '\n' }) {
		cmd := *p
		if rest, ok := strings.CutSuffix(strings.TrimSpace(part), ">&2"); ok {
			part, cmd.Stdout = rest, p.Stderr
		}
		if cmd.Args = strings.Fields(part); len(cmd.Args) == 0 {
			continue
		}
		if cmd.Args[0] == "exit" {
			return number(cmd.Args)
		}
		code = d.program(cmd.Args[0])(ctx, &cmd)
		if ctx.Err() != nil {
			break
		}
	}
	return code
}

func (d *Driver) program(name string) Program {
	if program := d.Programs[name]; program != nil {
		return program
	}
	switch name {
	case "echo":
		return echo
	case "cat":
		return cat
	case "sleep":
		return sleep
	case "env":
		return env
	case "true":
		return func(context.Context, *Process) int { return 0 }
	case "false":
		return func(context.Context, *Process) int { return 1 }
	}
	return func(_ context.Context, p *Process) int {
		fmt.Fprintf(p.Stderr, "%s: not found\n", name)
		return engine.ExitNotFound
	}
}

func number(args []string) int {
	if len(args) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(args[1]) // a shell would complain
	return n & 0xff
}

func echo(_ context.Context, p *Process) int {
	fmt.Fprintln(p.Stdout, strings.Join(p.Args[1:], " "))
	return 0
}

// cat copies files, or its input until that or the process ends.
func cat(ctx context.Context, p *Process) int {
	for _, name := range p.Args[1:] {
		f, err := p.Files.ReadFile(ctx, path.Join(p.Dir, name), 0, 0)
		if err != nil {
			fmt.Fprintf(p.Stderr, "cat: %s: %v\n", name, err)
			return 1
		}
		p.Stdout.Write(f.Data)
	}
	if len(p.Args) > 1 {
		return 0
	}
	if c, ok := p.Stdin.(io.Closer); ok {
		defer context.AfterFunc(ctx, func() { c.Close() })()
	}
	io.Copy(p.Stdout, p.Stdin)
	return 0
}

func sleep(ctx context.Context, p *Process) int {
	seconds, err := strconv.ParseFloat(strings.Join(p.Args[1:], ""), 64)
	if err != nil {
		return 1
	}
	t := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return 0
}

func env(_ context.Context, p *Process) int {
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		fmt.Fprintf(p.Stdout, "%s=%s\n", name, p.Env[name])
	}
	return 0
}
