package drivertest

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

func exitCodes(e *env) {
	_, box := e.boot()
	for _, c := range []struct {
		shell string
		want  int
	}{{"exit 0", 0}, {"exit 3", 3}, {"exit 255", 255}, {"no-such-program-here", engine.ExitNotFound}} {
		exit := e.wait(e.start(box, c.shell))
		if exit.Code != c.want || exit.Killed || exit.At.IsZero() {
			e.Errorf("%s ended as %+v, want code %d", c.shell, exit, c.want)
		}
	}
}

func waitAgain(e *env) {
	_, box := e.boot()
	r := e.startCommand(box, driver.Command{Command: engine.Command{Shell: "cat; exit 4"}, Profile: driver.ProfileApp, Stdin: true})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if exit, err := r.Wait(e.context()); err != nil || exit.Code != 4 {
				e.Errorf("a waiter got %+v, %v", exit, err)
			}
		})
	}
	e.must(r.Input().Close())
	wg.Wait()
	if exit := e.wait(r); exit.Code != 4 {
		e.Errorf("waiting again got %+v", exit)
	}
}

func waitContext(e *env) {
	_, box := e.boot()
	r := e.start(box, "sleep 600")
	ctx, cancel := context.WithCancel(e.context())
	cancel()
	if _, err := r.Wait(ctx); !errors.Is(err, context.Canceled) {
		e.Errorf("wait with an ended context: %v", err)
	}
	e.must(r.Kill(e.context(), 0))
}

func streams(e *env) {
	_, box := e.boot()
	r := e.start(box, "echo to out; echo to err >&2")
	e.wait(r)
	if out, err := r.out.String(), r.err.String(); out != "to out\n" || err != "to err\n" {
		e.Errorf("out %q, err %q", out, err)
	}
	for _, o := range []*Output{r.out, r.err} {
		select {
		case <-o.Closed():
		case <-e.context().Done():
			e.Error("a writer was not closed")
		}
	}
}

func oneStream(e *env) {
	_, box := e.boot()
	out := NewOutput()
	cmd := driver.Command{Command: engine.Command{Shell: "echo one; echo two >&2"}, Profile: driver.ProfileApp}
	p, err := box.Start(e.context(), engine.ProcessID(engine.NewID(engine.ProcessPrefix)), cmd, out, nil)
	e.must(err)
	_, err = p.Wait(e.context())
	e.must(err)
	if got := out.String(); got != "one\ntwo\n" {
		e.Errorf("got %q", got)
	}
}

func stdin(e *env) {
	_, box := e.boot()
	r := e.startCommand(box, driver.Command{Command: engine.Command{Shell: "cat"}, Profile: driver.ProfileApp, Stdin: true})
	for _, text := range []string{"first\n", "second\n"} {
		_, err := io.WriteString(r.Input(), text)
		e.must(err)
		e.must(r.out.Await(e.context(), text))
	}
	e.must(r.Input().Close())
	if exit := e.wait(r); exit.Code != 0 || r.out.String() != "first\nsecond\n" {
		e.Errorf("it ended as %+v with %q", exit, r.out)
	}
}

func noStdin(e *env) {
	_, box := e.boot()
	r := e.start(box, "cat")
	if exit := e.wait(r); exit.Code != 0 {
		e.Errorf("it ended as %+v", exit)
	}
	if r.Input() != nil {
		e.Error("there is an input that was not asked for")
	}
}

func kill(e *env) {
	_, box := e.boot()
	for _, grace := range []time.Duration{0, patience} {
		r := e.start(box, "sleep 600")
		e.must(r.Kill(e.context(), grace))
		exit := e.wait(r)
		if !exit.Killed || exit.Code <= engine.ExitSignalBase {
			e.Errorf("killed with grace %s it ended as %+v", grace, exit)
		}
	}
}

func killLate(e *env) {
	_, box := e.boot()
	r := e.start(box, "exit 5")
	e.wait(r)
	e.must(r.Kill(e.context(), 0))
	if exit := e.wait(r); exit.Code != 5 || exit.Killed {
		e.Errorf("the exit became %+v", exit)
	}
}

func sameID(e *env) {
	_, box := e.boot()
	id := engine.ProcessID(engine.NewID(engine.ProcessPrefix))
	cmd := driver.Command{Command: engine.Command{Shell: "sleep 600"}, Profile: driver.ProfileApp}
	p, err := box.Start(e.context(), id, cmd, NewOutput(), nil)
	e.must(err)
	if _, err := box.Start(e.context(), id, cmd, NewOutput(), nil); !errors.Is(err, engine.Conflict) {
		e.Errorf("starting it twice: %v, want a conflict", err)
	}
	e.must(p.Kill(e.context(), 0))
	cmd.Shell = "exit 0"
	p, err = box.Start(e.context(), id, cmd, NewOutput(), nil)
	e.must(err)
	if exit, err := p.Wait(e.context()); err != nil || exit.Code != 0 {
		e.Errorf("started again it ended as %+v, %v", exit, err)
	}
}

func invalid(e *env) {
	_, box := e.boot()
	app := driver.ProfileApp
	for name, cmd := range map[string]driver.Command{
		"no command":       {Profile: app},
		"only spaces":      {Command: engine.Command{Shell: " \n"}, Profile: app},
		"a NUL":            {Command: engine.Command{Shell: "echo \x00"}, Profile: app},
		"no profile":       {Command: engine.Command{Shell: "exit 0"}},
		"negative timeout": {Command: engine.Command{Shell: "exit 0", Timeout: -1}, Profile: app},
		"= in a name":      {Command: engine.Command{Shell: "exit 0", Env: map[string]string{"A=B": "c"}}, Profile: app},
		"an empty name":    {Command: engine.Command{Shell: "exit 0", Env: map[string]string{"": "c"}}, Profile: app},
		"NUL in a value":   {Command: engine.Command{Shell: "exit 0", Env: map[string]string{"A": "\x00"}}, Profile: app},
		"outside":          {Command: engine.Command{Shell: "exit 0", Dir: "../.."}, Profile: app},
		"absolute":         {Command: engine.Command{Shell: "exit 0", Dir: "/etc"}, Profile: app},
		"missing":          {Command: engine.Command{Shell: "exit 0", Dir: "nowhere"}, Profile: app},
		"a file":           {Command: engine.Command{Shell: "exit 0", Dir: "sub/file.txt"}, Profile: app},
	} {
		_, err := box.Start(e.context(), engine.ProcessID(engine.NewID(engine.ProcessPrefix)), cmd, NewOutput(), nil)
		if !errors.Is(err, engine.Invalid) {
			e.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

func unknownSignal(e *env) {
	_, box := e.boot()
	r := e.start(box, "sleep 600")
	if err := r.Signal(e.context(), "SIGNOTHING"); !errors.Is(err, engine.Invalid) {
		e.Errorf("an unknown signal: %v, want invalid", err)
	}
	e.must(r.Kill(e.context(), 0))
	if err := r.Signal(e.context(), "SIGTERM"); !errors.Is(err, engine.Conflict) {
		e.Errorf("a signal after the exit: %v, want a conflict", err)
	}
}
