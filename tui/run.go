package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Run shows the dashboard until it is left or ctx ends, and returns what
// should become of the engine. Everything that it started has ended by then,
// and the terminal is as it was.
func Run(ctx context.Context, c Config) (Choice, error) {
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	c.ASCII = c.ASCII || !unicode(c.Environ)
	if u, err := user.Current(); c.Me == "" && err == nil {
		c.Me = u.Username
	}
	c.NoColor = c.NoColor || lookup(c.Environ, "NO_COLOR") != ""
	work, cancel := context.WithCancel(ctx)
	cmds := &commands{engine: c.Engine, ctx: work}
	app, err := newApp(c, cmds)
	if err != nil {
		cancel()
		return Unasked, err
	}
	guarded := &guard{App: app}
	p := tea.NewProgram(guarded, options(ctx, c)...)
	f := &feed{engine: c.Engine, send: p.Send}
	cmds.feed = f
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		f.run(work)
	}()
	_, err = p.Run()
	cancel()
	<-fed
	cmds.wait()
	if fell := guarded.fallen(); fell != nil {
		return Unasked, fell.report(os.TempDir())
	}
	if err != nil && ctx.Err() != nil {
		return Unasked, ctx.Err()
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return Unasked, nil
	}
	if err != nil {
		return Unasked, fmt.Errorf("show the dashboard: %w", err)
	}
	return app.choice, nil
}

// options leave signals to whoever owns ctx. Bubble Tea's own handler would send
// the program a message about the same signal that ends ctx, and wait for ever
// if the program had ended by then.
func options(ctx context.Context, c Config) []tea.ProgramOption {
	list := []tea.ProgramOption{tea.WithContext(ctx), tea.WithEnvironment(c.Environ), tea.WithoutSignalHandler()}
	if c.Input != nil {
		list = append(list, tea.WithInput(c.Input))
	}
	if c.Output != nil {
		list = append(list, tea.WithOutput(c.Output))
	}
	return list
}

// lookup is a variable of an environment; the last one counts.
func lookup(environ []string, name string) string {
	value := ""
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// unicode reports whether the locale's characters go beyond ASCII.
func unicode(environ []string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(lookup(environ, name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// darkBefore guesses the background until the terminal has said it.
func darkBefore(environ []string) bool {
	_, bg, ok := strings.Cut(lookup(environ, "COLORFGBG"), ";")
	if i := strings.LastIndexByte(bg, ';'); i >= 0 {
		bg = bg[i+1:]
	}
	return !ok || bg != "7" && bg != "15"
}
